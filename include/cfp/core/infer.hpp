// Inference: what an operator makes of its operands' partitions, or what is in its way.
#pragma once

#include <cfp/core/bind.hpp>

namespace cfp::inline v0_1 {

/// What is known of an operator here: its name, its rule, and how it lets partial sums through.
struct operator_view {
  std::string_view label, rule;
  linearity linear = linearity::none;
  bool traced = false;  ///< by a model, whose words for mends are its own
};

struct inference {
  binding bound;
  propagation flow;
  bool same_mesh = true;

  constexpr bool communication_free() const { return same_mesh && !bound.problem && flow.communication_free(); }
};

/// `r` is the operator's rule with its "..." expanded to what these operands have, `o` what it says unbound.
constexpr inference infer(const operator_view& op, const rule_outline& o, const rule& r,
                          const list<operand_view, max_operands>& operands,
                          const list<const mesh_shape*, max_operands>& meshes) {
  inference out;
  const mesh_shape& mesh = *meshes[0];
  for (const mesh_shape* m : meshes) out.same_mesh = out.same_mesh && *m == mesh;
  if (!out.same_mesh) return out;
  out.bound.problem = fits(o, operands);
  if (out.bound.problem) return out;
  out.bound = bind(r, operands);
  if (out.bound.problem) return out;
  for (factor& f : out.bound.r.factors)
    if (f.window >= 0 && out.bound.sizes[f.window] == 1) f.window = -1;  // reaches nobody
  out.flow = propagate(out.bound.r, op.linear, out.bound.operands, mesh);
  if (out.flow.why) return out;
  for (int f = 0; f < out.bound.r.factors.size(); ++f) {
    long n = 1;
    for (int a = 0; a < mesh.rank(); ++a)
      if (out.flow.assigned.factor[a] == f) n *= mesh.size(a);
    if (out.bound.sizes[f] % n == 0) continue;
    // Only a fused dimension can bring this: its own size was checked, the major factor's was not.
    out.bound.problem = {binding_problem::indivisible, -1, -1, out.bound.sizes[f], n, out.bound.r.factors[f].label, {}};
  }
  return out;
}

}  // namespace cfp
