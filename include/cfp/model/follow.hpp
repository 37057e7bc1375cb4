// What follows from the forward assignments: gradient operations split what their forward operation splits; sums of
// gradients and updates split what the tensor they belong to is split by.
#pragma once

#include <cfp/model/graph.hpp>

namespace cfp::inline v0_1 {

/// The assignment of a gradient operation: what splits a factor forward splits it backward. A gradient of something
/// partial is replicated.
constexpr assignment gradient_assignment(const operation& backward, const operation& forward, const assignment& a) {
  assignment out;
  for (int axis = 0; axis < max_axes; ++axis)
    if (a.factor[axis] >= 0)
      out.factor[axis] = static_cast<signed char>(backward.r.find(forward.r.factors[a.factor[axis]].label.view()));
  return out;
}

/// The assignment of a sum or update of a tensor held in partition `p`: sums stay partial where a contribution is.
constexpr assignment shared_assignment(const graph& g, const operation& op, const partition& p, const mesh_shape& mesh,
                                       const std::vector<assignment>& assigned) {
  assignment out;
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    const int d = p.dim_of(axis);
    if (d >= 0) {
      out.factor[axis] = static_cast<signed char>(hub_factor_of(op, d));
    } else if (op.when != phase::update) {
      for (int v : op.operands) {
        const int from = g[v].producer;
        if (from < 0) continue;
        const operation& producer = g.at(from);
        const int k = producer.results.find(v);
        if (result_partition(producer.r, k, assigned[static_cast<std::size_t>(from)]).partial[axis].owed)
          out.factor[axis] = assignment::partial;
      }
    }
  }
  return out;
}

/// The partition in which the first of these operations that uses a tensor needs it.
constexpr partition need(const graph& g, int v, const std::vector<int>& operations,
                         const std::vector<assignment>& assigned) {
  for (int o : operations) {
    const operation& op = g.at(o);
    for (int k = 0; k < op.operands.size(); ++k)
      if (op.operands[k] == v) return operand_partition(op.r, k, assigned[static_cast<std::size_t>(o)]);
  }
  return partition::replicated(g[v].rank());
}

/// Sets the assignments of all operations among these (ascending) that are not forward.
constexpr void follow(const graph& g, const mesh_shape& mesh, const std::vector<int>& operations,
                      std::vector<assignment>& assigned) {
  for (int o : operations) {
    const operation& op = g.at(o);
    if (op.when == phase::forward) continue;
    assignment& a = assigned[static_cast<std::size_t>(o)];
    if (op.origin >= 0) a = gradient_assignment(op, g.at(op.origin), assigned[static_cast<std::size_t>(op.origin)]);
    else a = shared_assignment(g, op, need(g, op.hub, operations, assigned), mesh, assigned);
  }
}

}  // namespace cfp
