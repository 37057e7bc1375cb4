// Instructions of HLO that move elements, or count them.
#pragma once

#include <cfp/graphs/hlo_operators.hpp>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace hlo {

inline hlo_value counted(const hlo_instruction& i) {
  const std::size_t along = axis_of(i.dims.empty() ? -1 : i.dims[0], i.shape.dims.size());
  constant out{std::vector<long>(i.shape.dims.size(), 1), {}, hlo_kind_of(i.shape.type) == hlo_kind::whole};
  out.shape[along] = i.shape.dims[along];
  for (long k = 0; k < checked_known(out.shape); ++k) out.at.push_back(static_cast<double>(k));
  return {held_constant(std::move(out)), i.shape.dims};
}

inline hlo_value converted(row_operators& p, const hlo_instruction& i, const hlo_value& x) {
  onnx_node node;
  node.op = "Cast";
  node.attributes.emplace_back();
  node.attributes[0].name = "to";
  node.attributes[0].integer = hlo_kind_of(i.shape.type) == hlo_kind::numbers ? 1 : i.shape.type == 1 ? 9 : 7;
  const onnx_call c{p, node, {x.small}, {true}, 20};
  if (onnx::folded known = onnx::fold(c)) return {held_constant(std::move(*known)), x.shape};
  const onnx_results out = onnx::cast(c);
  return {out.empty() ? onnx::pointwise(c, true).front() : out.front(), x.shape};
}

inline hlo_value transposed(row_operators& p, const hlo_instruction& i, const hlo_value& x) {
  axes order;
  std::vector<long> shape;
  for (const long d : i.dims) order.push_back(axis_of(d, x.shape.size())), shape.push_back(x.shape[order.back()]);
  if (std::set<std::size_t>(order.begin(), order.end()).size() != x.shape.size())
    throw bad_input("its dimensions are " + shape_text(i.dims) + ", its operand " + shape_text(x.shape));
  return {p.transposed(x.small, order), shape};
}

inline hlo_value joined(row_operators& p, const hlo_instruction& i, const std::vector<hlo_value>& in) {
  const std::size_t along = axis_of(i.dims.empty() ? 0 : i.dims[0], i.shape.dims.size());
  std::vector<held> all;
  for (const hlo_value& v : in) {
    std::vector<long> shape = v.shape;
    if (shape.size() == i.shape.dims.size()) shape[along] = i.shape.dims[along];
    if (shape != i.shape.dims) throw bad_input("its operands do not fit");
    all.push_back(written_out(p, v));
  }
  if (all.size() > static_cast<std::size_t>(max_operands))
    throw bad_input("it has " + std::to_string(all.size()) + " operands, an operator has at most 8");
  return hlo_whole(all.size() == 1 ? all[0] : p.joined(all, along));
}

}  // namespace hlo

}  // namespace cfp::graphs
