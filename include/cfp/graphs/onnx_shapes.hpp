// Operators of ONNX that move elements, or take some of them.
#pragma once

#include <cfp/graphs/onnx_elements.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace onnx {

/// The first operand, whatever the node makes of it in training.
inline onnx_results same(const onnx_call& c) { return {c.operand(0)}; }

/// From numbers to whole numbers something is lost; else nothing happens.
inline onnx_results cast(const onnx_call& c) {
  const onnx_element to = onnx_element_of(c.integer("to", 1));
  if (to.bytes == 0)
    throw bad_input("attribute 'to' is type " + std::to_string(c.integer("to", 1)) + ", which is not read");
  held out = c.operand(0);
  if ((to.whole && !out.is_whole) || c.integer("to", 1) == 9) return pointwise(c, true);
  if (!to.whole && out.given && out.is_whole) {  // numbers from here on
    const int id = c.p.build.numbers(out);
    out = c.p.build.computed(id, out.shape);
  }
  out.is_whole = to.whole;
  return {out};
}

inline onnx_results transposed(const onnx_call& c) {
  const held& x = c.operand(0);
  std::vector<long> order = c.integers("perm");
  if (order.empty())
    for (std::size_t d = x.shape.size(); d-- > 0;) order.push_back(static_cast<long>(d));
  axes to;
  for (const long d : order) to.push_back(axis_of(d, x.shape.size()));
  if (to.size() != x.shape.size() || std::set<std::size_t>(to.begin(), to.end()).size() != to.size())
    throw bad_input("attribute 'perm' is " + shape_text(order) + ", its operand " + shape_text(x.shape));
  return {c.p.transposed(x, to)};
}

/// -1 stands for what is left, 0 for the size that was there.
inline std::vector<long> asked_shape(const std::vector<long>& from, std::vector<long> to, bool zeros) {
  long rest = elements_of(from), known = 1;
  int open = -1;
  for (std::size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 0 && !zeros) {
      if (d >= from.size()) throw bad_input("its shape " + shape_text(to) + " keeps a dimension that is not there");
      to[d] = from[d];
    }
    if (to[d] == -1 && open >= 0) throw bad_input("its shape " + shape_text(to) + " leaves two sizes open");
    if (to[d] == -1) open = static_cast<int>(d);
    else if (to[d] < 1 || to[d] > rest / known)
      throw bad_input("its shape " + shape_text(to) + " does not fit " + shape_text(from));
    else known *= to[d];
  }
  if (open >= 0 && rest % known != 0)
    throw bad_input("its shape " + shape_text(to) + " does not fit " + shape_text(from));
  if (open >= 0) to[static_cast<std::size_t>(open)] = rest / known;
  if (elements_of(to) != rest) throw bad_input("its shape " + shape_text(to) + " does not fit " + shape_text(from));
  return to;
}
inline onnx_results reshaped(const onnx_call& c) {
  const held& x = c.operand(0);
  const std::vector<long> to = c.has(1) ? c.known_integers(1) : c.integers("shape");
  return {c.p.reshaped(x, asked_shape(x.shape, to, c.integer("allowzero", 0) != 0))};
}
inline onnx_results flattened(const onnx_call& c) {
  const held& x = c.operand(0);
  const long rank = static_cast<long>(x.shape.size()), given = c.integer("axis", 1),
             axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank)
    throw bad_input("attribute 'axis' is " + std::to_string(given) + " of a tensor " + shape_text(x.shape));
  std::vector<long> to(2, 1);
  for (long d = 0; d < rank; ++d) to[d < axis ? 0 : 1] *= x.shape[static_cast<std::size_t>(d)];
  return {c.p.reshaped(x, to)};
}
inline onnx_results squeezed(const onnx_call& c) {
  const held& x = c.operand(0);
  axes over;
  const bool given = c.axes_of(1, x.shape.size(), over);
  std::vector<long> to;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    const bool out = given ? std::find(over.begin(), over.end(), d) != over.end() : x.shape[d] == 1;
    if (out && x.shape[d] != 1)
      throw bad_input("axis " + std::to_string(d) + " of " + shape_text(x.shape) + " is not 1");
    if (!out) to.push_back(x.shape[d]);
  }
  return {c.p.reshaped(x, to)};
}
inline onnx_results unsqueezed(const onnx_call& c) {
  const held& x = c.operand(0);
  const std::size_t count = c.has(1) ? c.known_integers(1).size() : c.integers("axes").size();
  axes at;
  c.axes_of(1, x.shape.size() + count, at);
  std::vector<long> to;
  for (std::size_t d = 0, own = 0; d < x.shape.size() + count; ++d)
    to.push_back(std::find(at.begin(), at.end(), d) != at.end() ? 1 : x.shape[own++]);
  return {c.p.reshaped(x, to)};
}
inline onnx_results expanded(const onnx_call& c) {
  const std::vector<long> to = c.known_integers(1);
  if (elements_of(to) < 1) throw bad_input("its shape " + shape_text(to) + " is none");
  return {c.p.expanded(c.operand(0), to)};
}

inline onnx_results joined(const onnx_call& c) {
  const std::size_t axis = axis_of(c.integer("axis", 0), c.operand(0).shape.size());
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    std::vector<long> one = c.operand(i).shape, first = c.operand(0).shape;
    if (one.size() == first.size()) one[axis] = first[axis];
    if (one != first) throw bad_input("its operands do not fit: " + c.p.shapes_of(c.in));
  }
  if (c.in.size() > static_cast<std::size_t>(max_operands))
    throw bad_input("it has " + std::to_string(c.in.size()) + " operands, an operator has at most 8");
  return {c.in.size() == 1 ? c.in[0] : c.p.joined(c.in, axis)};
}

inline onnx_results split(const onnx_call& c) {
  const held& x = c.operand(0);
  const std::size_t axis = axis_of(c.integer("axis", 0), x.shape.size()), count = c.node.outputs.size();
  std::vector<long> sizes = c.has(1) ? c.known_integers(1) : c.integers("split");
  if (sizes.empty()) {
    const long n = static_cast<long>(count), each = (x.shape[axis] + n - 1) / n;
    for (long k = 0; k < n; ++k) sizes.push_back(std::min(each, x.shape[axis] - k * each));
  }
  long all = 0;
  for (const long n : sizes)
    if (n < 1 || n > x.shape[axis] || (all += n) > x.shape[axis]) all = x.shape[axis] + 1;
  if (sizes.size() != count || all != x.shape[axis])
    throw bad_input("parts " + shape_text(sizes) + " of " + std::to_string(x.shape[axis]) + " elements, for " +
                    std::to_string(count) + " results");
  onnx_results out;
  long first = 0;
  for (const long n : sizes) out.push_back(c.p.piece(x, axis, first, n)), first += n;
  return out;
}

/// Where a slice begins and how many it takes, counted in steps.
struct range {
  long first = 0, count = 0;
};
inline range clamped(long begin, long end, long step, long size) {
  const auto place = [&](long at, long least, long most) { return std::clamp(at < 0 ? at + size : at, least, most); };
  if (step > 0) {
    const long from = place(begin, 0, size), to = place(end, 0, size);
    return {from, to > from ? (to - from - 1) / step + 1 : 0};
  }
  const long from = place(begin, 0, size - 1), to = place(end, -1, size - 1);
  return {from, from > to ? (from - to - 1) / -step + 1 : 0};
}
/// Of each axis a range and a step.
inline void slices(const onnx_call& c, std::size_t rank, axes& over, std::vector<std::vector<long>>& all) {
  const bool old = !c.has(1);
  all = {old ? c.integers("starts") : c.known_integers(1), old ? c.integers("ends") : c.known_integers(2), {}};
  if (!c.axes_of(3, rank, over))
    for (std::size_t d = 0; d < all[0].size() && d < rank; ++d) over.push_back(d);
  all[2] = c.has(4) ? c.known_integers(4) : std::vector<long>(over.size(), 1);
  for (const std::vector<long>& one : all)
    if (one.size() != over.size()) throw bad_input("its starts, ends, axes and steps are not equally many");
  for (const long step : all[2])
    if (step == 0) throw bad_input("a step of 0");
}
inline onnx_results sliced(const onnx_call& c) {
  held x = c.operand(0);
  axes over;
  std::vector<std::vector<long>> all;
  slices(c, x.shape.size(), over, all);
  for (std::size_t k = 0; k < over.size(); ++k) {
    const range r = clamped(all[0][k], all[1][k], all[2][k], x.shape[over[k]]);
    if (r.count < 1)
      throw bad_input("it takes nothing of axis " + std::to_string(over[k]) + " of " + shape_text(x.shape));
    std::vector<long> shape = x.shape;
    shape[over[k]] = r.count;
    if (all[2][k] == 1) x = c.p.piece(x, over[k], r.first, r.count);
    else x = c.p.along({x}, "Slice", std::to_string(r.first) + ":" + std::to_string(all[2][k]), over[k], shape);
  }
  return {x};
}

inline onnx_results gathered(const onnx_call& c) {
  const held &x = c.operand(0), &at = c.operand(1);
  const std::size_t axis = axis_of(c.integer("axis", 0), x.shape.size());
  held out;
  if (at.known && elements_of(at.shape) == 1) {  // one position: a slice
    const double n = at.known->at.front();
    const long place = static_cast<long>(n) + (n < 0 ? x.shape[axis] : 0);
    if (!(n > -9e15 && n < 9e15) || place < 0 || place >= x.shape[axis])
      throw bad_input("an index lies outside of axis " + std::to_string(axis) + " of " + shape_text(x.shape));
    std::vector<long> shape = x.shape;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), at.shape.begin(), at.shape.end());
    return {c.p.reshaped(c.p.piece(x, axis, place, 1), shape)};
  }
  if (c.p.lookup(x, axis, at, out)) return {out};
  std::vector<long> shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), at.shape.begin(), at.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  return all_of(c.p.build, c.node.op, c.attributes(), {x, at}, {shape}, x.is_whole);
}

}  // namespace onnx

}  // namespace cfp::graphs
