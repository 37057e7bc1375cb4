// What can be computed while a file is read: chains of shapes and other small numbers.
#pragma once

#include <cfp/graphs/known_functions.hpp>
#include <cfp/graphs/onnx_elements.hpp>
#include <cfp/graphs/onnx_shapes.hpp>

#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace onnx {

using folded = std::optional<constant>;

namespace folding {

inline constant element_by_element(const onnx_call& c, two_numbers f) {
  const constant &x = c.known(0), &y = c.known(1);
  if (f == &known::divided && x.whole && y.whole) f = &known::whole_divided;
  return of_two(x, y, f, (x.whole && y.whole) || is_comparison(c.node.op));
}

inline constant gathered(const onnx_call& c) {
  const constant &x = c.known(0), &index = c.known(1);
  const std::size_t axis = axis_of(c.integer("axis", 0), x.shape.size()), n = index.shape.size();
  std::vector<long> shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), index.shape.begin(), index.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  const std::vector<long> of_x = strides_of(x.shape), of_index = strides_of(index.shape);
  return taken(x, shape, [&](const std::vector<long>& at) {
    long which = 0, place = 0;
    for (std::size_t d = 0; d < n; ++d) which += at[axis + d] * of_index[d];
    const double given = index.at[static_cast<std::size_t>(which)];
    const double row = given < 0 ? given + static_cast<double>(x.shape[axis]) : given;
    if (!(row >= 0 && row < static_cast<double>(x.shape[axis]))) throw bad_input("an index lies outside of its tensor");
    for (std::size_t d = 0; d < x.shape.size(); ++d)
      place += of_x[d] * (d < axis ? at[d] : d == axis ? static_cast<long>(row) : at[d + n - 1]);
    return place;
  });
}

inline constant joined(const onnx_call& c) {
  const std::size_t axis = axis_of(c.integer("axis", 0), c.known(0).shape.size());
  constant out{c.known(0).shape, {}, c.known(0).whole};
  long rows = 1, all = 0;
  for (std::size_t d = 0; d < axis; ++d) rows *= out.shape[d];
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    std::vector<long> one = c.known(i).shape;
    if (one.size() != out.shape.size()) throw bad_input("its operands do not fit");
    all += one[axis], one[axis] = out.shape[axis];
    if (one != out.shape) throw bad_input("its operands do not fit");
  }
  for (long r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < c.in.size(); ++i) {
      const std::vector<double>& from = c.known(i).at;
      const auto run = static_cast<std::ptrdiff_t>(from.size()) / rows;
      out.at.insert(out.at.end(), from.begin() + r * run, from.begin() + (r + 1) * run);
    }
  out.shape[axis] = all;
  return out;
}

inline constant sliced(const onnx_call& c) {
  const constant& x = c.known(0);
  axes over;
  std::vector<std::vector<long>> all;
  slices(c, x.shape.size(), over, all);
  std::vector<long> shape = x.shape, first(shape.size(), 0), step(shape.size(), 1);
  for (std::size_t k = 0; k < over.size(); ++k) {
    const range r = clamped(all[0][k], all[1][k], all[2][k], x.shape[over[k]]);
    first[over[k]] = r.first, step[over[k]] = all[2][k], shape[over[k]] = r.count;
  }
  const std::vector<long> of_x = strides_of(x.shape);
  return taken(x, shape, [&](const std::vector<long>& at) {
    long place = 0;
    for (std::size_t d = 0; d < at.size(); ++d) place += of_x[d] * (first[d] + at[d] * step[d]);
    return place;
  });
}

inline constant counted(const onnx_call& c) {
  const double first = c.known(0).at.at(0), end = c.known(1).at.at(0), step = c.known(2).at.at(0);
  const double n = std::ceil((end - first) / step);
  if (!(n <= static_cast<double>(most_known))) throw bad_input("a range of too many numbers");
  constant out{{std::max(0l, static_cast<long>(n))}, {}, c.known(0).whole};
  for (long i = 0; i < out.shape[0]; ++i) out.at.push_back(first + static_cast<double>(i) * step);
  return out;
}

inline constant filled(const onnx_call& c) {
  constant out{c.known_integers(0), {0.0}, false};
  const onnx_attribute* const a = c.find("value");
  if (a != nullptr && !a->tensor.empty()) {
    const constant one = numbers_of(a->tensor.front(), "attribute 'value'");
    if (one.at.size() != 1) throw bad_input("attribute 'value' must have one element");
    out.at = one.at, out.whole = one.whole;
  }
  out.at.assign(static_cast<std::size_t>(checked_known(out.shape)), out.at.front());
  return out;
}

inline constant triangle(const onnx_call& c) {
  const constant& x = c.known(0);
  const long above = c.has(1) ? c.known_integers(1).at(0) : 0;
  if (x.shape.size() < 2) throw bad_input("its operand is no matrix");
  constant out = x;
  const long columns = x.shape.back(), rows = x.shape[x.shape.size() - 2];
  for (std::size_t i = 0; i < out.at.size(); ++i) {
    const long column = static_cast<long>(i) % columns, row = static_cast<long>(i) / columns % rows;
    if (c.integer("upper", 1) != 0 ? column < row + above : column > row + above) out.at[i] = 0;
  }
  return out;
}

inline folded of_shapes(const onnx_call& c) {
  const std::string& op = c.node.op;
  const auto seen_as = [&](const onnx_results& r) {
    return constant{r.front().shape, c.known(0).at, c.known(0).whole};
  };
  if (op == "Reshape") return seen_as(reshaped(c));
  if (op == "Flatten") return seen_as(flattened(c));
  if (op == "Squeeze") return seen_as(squeezed(c));
  if (op == "Unsqueeze") return seen_as(unsqueezed(c));
  if (op == "Transpose") return *transposed(c).front().known;
  if (op == "Concat") return joined(c);
  if (op == "Gather") return gathered(c);
  if (op == "Slice") return sliced(c);
  if (op == "Range") return counted(c);
  if (op == "Trilu") return triangle(c);
  if (op == "ConstantOfShape") return filled(c);
  if (op == "Expand") {
    std::vector<long> shape = c.known(0).shape;
    if (!broadcast(shape, c.known_integers(1))) throw bad_input("its operands do not fit");
    checked_known(shape);
    return constant{shape, spread(c.known(0), shape), c.known(0).whole};
  }
  if (op == "Identity") return c.known(0);
  if (op == "Cast") {
    constant out = c.known(0);
    const long to = c.integer("to", 1);
    out.whole = onnx_element_of(to).whole;
    for (double& x : out.at) x = to == 9 ? (x != 0 ? 1 : 0) : out.whole ? std::trunc(x) : x;
    return out;
  }
  return std::nullopt;
}

inline bool are_known(const onnx_call& c) {
  for (std::size_t i = 0; i < c.in.size(); ++i)
    if (c.has(i) && !c.in[i].known) return false;
  return true;
}

}  // namespace folding

/// The result of a node whose operands are known, or whose shapes say it.
inline folded fold(const onnx_call& c) {
  if (c.node.op == "Shape" || c.node.op == "Size") {
    const std::vector<long>& shape = c.operand(0).shape;
    constant all{{}, {}, true};
    if (c.node.op == "Size") return constant{{}, {static_cast<double>(elements_of(shape))}, true};
    const range r = clamped(c.integer("start", 0), c.integer("end", 1l << 53), 1, static_cast<long>(shape.size()));
    for (long k = 0; k < r.count; ++k)
      all.at.push_back(static_cast<double>(shape[static_cast<std::size_t>(r.first + k)]));
    all.shape = {r.count};
    return all;
  }
  if (!folding::are_known(c) || c.in.empty()) return std::nullopt;
  if (folded out = folding::of_shapes(c)) return out;
  if (c.node.op == "Where") return where_known(c.known(0), c.known(1), c.known(2));
  if (const auto f = known_functions().find(c.node.op); f != known_functions().end() && c.in.size() == 2)
    return folding::element_by_element(c, f->second);
  if (const auto f = known_functions_of_one().find(c.node.op); f != known_functions_of_one().end()) {
    constant out = c.known(0);
    for (double& x : out.at) x = f->second(x);
    return out;
  }
  return std::nullopt;
}

}  // namespace onnx

}  // namespace cfp::graphs
