// Whether an operator can run on what its operands hold, and what is in its way; in as few constants as possible.
#pragma once

#include <cfp/core/infer.hpp>

namespace cfp::inline v0_1::detail {

// Only what later questions need is kept: constants cost the compiler memory.
struct verdict {
  binding_problem::kind_t binding = binding_problem::nothing;
  conflict::kind_t clash = conflict::nothing;
  bool same_mesh = true;
  constexpr bool free() const { return same_mesh && binding == binding_problem::nothing && clash == conflict::nothing; }
};

// Where no dimension is compound the rule needs no binding: its factors are the operands' dimensions.
constexpr bool plain(const rule& r, const list<operand_view, max_operands>& operands) {
  for (const operand_view& v : operands)
    if (v.shape->written() != v.shape->rank()) return false;
  for (const pattern& p : r.operands)
    if (!p.group.empty() && p.group.back() + 1 != p.group.size()) return false;
  for (const factor& f : r.factors)
    if (f.window >= 0) return false;
  return true;
}

constexpr verdict judge_plain(const rule& r, linearity lin, const list<operand_view, max_operands>& operands,
                              const mesh_shape& mesh) {
  std::string_view labels[max_factors]{};
  bool lent[max_factors]{};
  long sizes[max_factors]{};
  factor_sources from;
  list<const partition*, max_operands> held;
  for (int i = 0; i < operands.size(); ++i) {
    const dimensions& d = *operands[i].shape;
    for (int k = 0; k < d.rank(); ++k) {
      const int f = r.operands[i].factors[k];
      if (const binding_problem b = from.take(d, k, i, f, labels[f], lent[f], sizes[f])) return {b.kind};
    }
    held.push(operands[i].held);
  }
  assignment unused;
  return {binding_problem::nothing, settle(r, lin, held, mesh, unused).kind};
}

constexpr verdict judge(const operator_view& op, const rule_outline& o, const rule& r,
                        const list<operand_view, max_operands>& operands,
                        const list<const mesh_shape*, max_operands>& meshes) {
  const inference it = infer(op, o, r, operands, meshes);
  return {it.bound.problem.kind, it.flow.why.kind, it.same_mesh};
}

constexpr verdict judge_quickly(const operator_view& op, const rule_outline& o, const rule& r,
                                const list<operand_view, max_operands>& operands,
                                const list<const mesh_shape*, max_operands>& meshes) {
  for (const mesh_shape* m : meshes)
    if (m != meshes[0]) return judge(op, o, r, operands, meshes);
  if (fits(o, operands) || !plain(r, operands)) return judge(op, o, r, operands, meshes);
  return judge_plain(r, op.linear, operands, *meshes[0]);
}

}  // namespace cfp::detail
