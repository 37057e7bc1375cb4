// Instructions of HLO as operators with rules.
#pragma once

#include <cfp/graphs/hlo_file.hpp>
#include <cfp/graphs/hlo_value.hpp>
#include <cfp/graphs/onnx_operators.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace hlo {

using names = std::map<std::string_view, const char*>;
inline const names elements = {
    {"add", "Add"},     {"subtract", "Sub"}, {"multiply", "Mul"},    {"divide", "Div"}, {"maximum", "Max"},
    {"minimum", "Min"}, {"power", "Pow"},    {"and", "And"},         {"or", "Or"},      {"xor", "Xor"},
    {"log", "Log"},     {"tanh", "Tanh"},    {"exponential", "Exp"}, {"sqrt", "Sqrt"},  {"logistic", "Sigmoid"},
    {"sine", "Sin"},    {"cosine", "Cos"},   {"erf", "Erf"},         {"negate", "Neg"}, {"select", "Where"},
    {"abs", "Abs"},     {"floor", "Floor"},  {"ceil", "Ceil"},       {"sign", "Sign"},  {"not", "Not"},
    {"tan", "Tan"}};
inline const names directions = {
    {"EQ", "Equal"}, {"GT", "Greater"}, {"GE", "GreaterOrEqual"}, {"LT", "Less"}, {"LE", "LessOrEqual"}};

/// What goes element by element, as ONNX calls it.
inline std::string element_function(const hlo_instruction& i) {
  const bool compares = i.op == "compare";
  const names& table = compares ? directions : elements;
  const auto at = table.find(compares ? i.direction : i.op);
  return at == table.end() ? "" : at->second;
}
/// The same where nobody has a kernel.
inline bool is_pointwise(std::string_view op) {
  for (const std::string_view known :
       {"compare", "cbrt", "clamp", "exponential-minus-one", "log-plus-one", "round-nearest-afz", "round-nearest-even",
        "is-finite", "atan2", "remainder", "shift-left", "shift-right-logical", "shift-right-arithmetic", "popcnt",
        "reduce-precision", "count-leading-zeros"})
    if (op == known) return true;
  return false;
}

/// What is repeated along the same dimensions in all operands is computed once.
inline hlo_value element_by_element(row_operators& p, const hlo_instruction& i, const std::vector<hlo_value>& in) {
  onnx_node node;
  node.op = element_function(i);
  onnx_call c{p, node, {}, {}, 20};
  for (const hlo_value& v : in) {
    if (v.shape != i.shape.dims && !(elements_of(v.shape) == 1 && i.op == "clamp") &&
        !(v.shape.empty() && i.op == "select"))
      throw bad_input("its operand " + shape_text(v.shape) + " does not fit its result " + shape_text(i.shape.dims));
    c.in.push_back(v.small);
    c.there.push_back(true);
  }
  const bool whole = hlo_kind_of(i.shape.type) == hlo_kind::whole;
  if (i.op == "rsqrt") return {p.elementwise(info<elementary::over_root_t>, c.in), i.shape.dims};
  if (node.op.empty()) {
    node.op = i.op;
    return {onnx::pointwise(c, whole).front(), i.shape.dims};
  }
  if (onnx::folded known = onnx::fold(c)) return {held_constant(std::move(*known)), i.shape.dims};
  return {onnx::translated(c).front(), i.shape.dims};
}

/// Sums, maxima and minima; `by` is what the computation that is called does with two numbers.
inline bool reduced(row_operators& p, const hlo_instruction& i, const hlo_value& x, const hlo_value& begin,
                    const std::string& by, hlo_value& out) {
  if (!begin.small.known || !begin.small.known->is_uniform()) return false;
  const double first = begin.small.known->at.front();
  axes over;
  double times = 1;
  for (const long d : i.dims) {
    over.push_back(axis_of(d, x.shape.size()));
    if (x.small.shape[over.back()] == 1) times *= static_cast<double>(x.shape[over.back()]);
  }
  if (x.small.known && x.small.known->is_uniform() && (by == "and" || by == "or") && first == (by == "and" ? 1 : 0)) {
    out = {held_constant({std::vector<long>(i.shape.dims.size(), 1), {x.small.known->at.front()}, true}), i.shape.dims};
    return true;
  }
  if (x.small.is_whole) return false;
  const bool adds = by == "add" && first == 0, largest = by == "maximum" && first == -infinity<double>;
  if (!adds && !largest && !(by == "minimum" && first == infinity<double>)) return false;
  const held sum = adds ? p.scaled_by(p.sum(x.small, over, false), times) : p.extreme(x.small, over, false, largest);
  out = {sum, i.shape.dims};
  return true;
}

inline hlo_value product(row_operators& p, const hlo_instruction& i, const hlo_value& a, const hlo_value& b) {
  const auto of = [&](std::uint32_t field) {
    const auto at = i.dot.find(field);
    return at == i.dot.end() ? std::vector<long>{} : at->second;
  };
  const std::vector<long> sums[2] = {of(1), of(2)}, batch[2] = {of(3), of(4)};
  if (sums[0].size() != sums[1].size() || batch[0].size() != batch[1].size())
    throw bad_input("its dimensions are not equally many on both sides");
  std::vector<int> numbers[2] = {std::vector<int>(a.shape.size(), -1), std::vector<int>(b.shape.size(), -1)}, out;
  int next = 0;
  const auto tie = [&](const std::vector<long>& left, const std::vector<long>& right, bool stays) {
    for (std::size_t k = 0; k < left.size(); ++k) {
      int &x = numbers[0][axis_of(left[k], a.shape.size())], &y = numbers[1][axis_of(right[k], b.shape.size())];
      if (x >= 0 || y >= 0) throw bad_input("a dimension is named twice");
      if (a.shape[axis_of(left[k], a.shape.size())] != b.shape[axis_of(right[k], b.shape.size())])
        throw bad_input("its operands " + shape_text(a.shape) + ", " + shape_text(b.shape) + " do not fit");
      x = y = next++;
      if (stays) out.push_back(x);
    }
  };
  tie(batch[0], batch[1], true);
  tie(sums[0], sums[1], false);
  for (std::vector<int>& side : numbers)
    for (int& n : side)
      if (n < 0) out.push_back(n = next++);
  const held all = p.einsum(written_out(p, a), numbers[0], written_out(p, b), numbers[1], out);
  if (all.shape != i.shape.dims)
    throw bad_input("its result is " + shape_text(all.shape) + ", the file says " + shape_text(i.shape.dims));
  return hlo_whole(all);
}

inline hlo_value sliced(row_operators& p, const hlo_instruction& i, const hlo_value& x) {
  if (i.slices.size() != x.shape.size()) throw bad_input("its ranges are not as many as its operand's dimensions");
  hlo_value out = x;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    const long first = i.slices[d][0], end = i.slices[d][1], step = i.slices[d][2];
    if (first < 0 || end > x.shape[d] || first >= end || step < 1)
      throw bad_input("its range " + std::to_string(first) + " to " + std::to_string(end) + " is not in " +
                      shape_text(x.shape));
    out.shape[d] = (end - first - 1) / step + 1;
    if (out.small.shape[d] == 1) continue;
    std::vector<long> shape = out.small.shape;
    shape[d] = out.shape[d];
    out.small = step == 1 ? p.piece(out.small, d, first, end - first)
                          : p.along({out.small}, "slice", std::to_string(first) + ":" + std::to_string(step), d, shape);
  }
  return out;
}

/// One dimension is indexed and the others taken whole, perhaps one for each of the indices' dimensions. False for
/// other gathers.
inline bool gathered(row_operators& p, const hlo_instruction& i, const hlo_value& x, const hlo_value& at,
                     hlo_value& out) {
  const auto of = [&](std::uint32_t field) {
    const auto found = i.gather.find(field);
    return found == i.gather.end() ? std::vector<long>{} : found->second;
  };
  const auto has = [](const std::vector<long>& all, std::size_t d) {
    return std::find(all.begin(), all.end(), static_cast<long>(d)) != all.end();
  };
  const std::vector<long> offsets = of(1), collapsed = of(2), indexed = of(3), batch = of(5), places_of = of(6);
  const long vector = of(4).empty() ? 0 : of(4).front();
  const std::size_t rank = x.shape.size(), result = i.shape.dims.size();
  if (indexed.size() != 1 || i.slice_sizes.size() != rank || batch.size() != places_of.size() || x.is_repeated() ||
      vector < 0 || vector > static_cast<long>(at.shape.size()))
    return false;
  const std::size_t along = axis_of(indexed[0], rank);
  hlo_value index = at;
  if (static_cast<std::size_t>(vector) < at.shape.size()) {
    if (at.shape[static_cast<std::size_t>(vector)] != 1) return false;
    index.shape.erase(index.shape.begin() + vector);
    std::vector<long> small = at.small.shape;
    small.erase(small.begin() + vector);
    index.small = p.reshaped(at.small, small);
  }
  std::vector<int> rows(rank, -1), places(index.shape.size(), -1), all(result, -1);
  std::vector<std::size_t> kept;  // dimensions of the table that the result has, in order
  for (std::size_t d = 0; d < rank; ++d) {
    rows[d] = static_cast<int>(d);
    const bool one = d == along || has(batch, d);
    if (i.slice_sizes[d] != (one ? 1 : x.shape[d]) || (one && !has(collapsed, d) && !has(batch, d))) return false;
    if (!one && has(collapsed, d)) return false;
    if (!one) kept.push_back(d);
  }
  if (kept.size() != offsets.size() || result != kept.size() + index.shape.size()) return false;
  for (std::size_t k = 0; k < offsets.size(); ++k) all[axis_of(offsets[k], result)] = static_cast<int>(kept[k]);
  for (std::size_t d = 0; d < places.size(); ++d) places[d] = static_cast<int>(rank + d);
  for (std::size_t k = 0; k < batch.size(); ++k) {
    long place = places_of[k];
    if (place > vector) --place;  // the indices' own dimension is gone
    places[axis_of(place, places.size())] = static_cast<int>(axis_of(batch[k], rank));
  }
  std::size_t next = 0;
  for (int& d : all)
    if (d < 0) {
      if (next == places.size()) return false;
      d = places[next++];
    }
  held made;
  if (!p.selected(x.small, rows, static_cast<int>(along), index.small, places, all, made)) return false;
  out = {made, i.shape.dims};
  return true;
}

}  // namespace hlo

}  // namespace cfp::graphs
