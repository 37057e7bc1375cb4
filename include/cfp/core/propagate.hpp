// Propagation: what a rule says of partitions. An *assignment* gives each mesh axis one factor of an operator; the
// partitions of all operands and results follow from it, and back again.
#pragma once

#include <cfp/core/rule.hpp>

namespace cfp::inline v0_1 {

/// How an operator lets partial sums through.
enum class linearity : std::uint8_t {
  none,  ///< not linear: operands must be complete
  all,   ///< linear in all operands together (add): all of them partial, or none
  each,  ///< linear in each operand alone (products): at most one partial
};

/// Which factor each mesh axis splits in one operator.
struct assignment {
  static constexpr signed char none = -1;     ///< every device does the same work
  static constexpr signed char partial = -2;  ///< operands and result are partial sums (linear operators only)
  signed char factor[max_axes] = {none, none, none, none};
  bool regather = false;   ///< of an update: what backward needs of the weight is gathered anew, not kept since forward
  bool recompute = false;  ///< of a forward operation: what backward needs of its results is computed anew, not kept
  bool on_host = false;  ///< what rests in memory of the host: state, of an update; what backward needs of its results
  bool weight_on_host = false;  ///< of an update: the weight rests there as well
  friend constexpr bool operator==(const assignment& a, const assignment& b) {
    if (a.regather != b.regather || a.recompute != b.recompute || a.on_host != b.on_host ||
        a.weight_on_host != b.weight_on_host)
      return false;
    for (int i = 0; i < max_axes; ++i)
      if (a.factor[i] != b.factor[i]) return false;
    return true;
  }
};

namespace detail {
constexpr partition partition_of(const rule& r, const pattern& p, const assignment& a, bool result) {
  partition out = partition::replicated(p.factors.size());
  for (int axis = 0; axis < max_axes; ++axis) {
    const int f = a.factor[axis];
    if (f == assignment::none) continue;
    if (f == assignment::partial) {
      out.partial[axis] = {true, reduction::sum};
    } else if (const int d = p.dim_of(f); d >= 0) {
      out.split(d, axis);
    } else if (result) {
      out.partial[axis] = {true, r.combine};
    }
  }
  return out;
}
}  // namespace detail

/// The partition an operator under this assignment needs of an operand.
constexpr partition operand_partition(const rule& r, int operand, const assignment& a) {
  return detail::partition_of(r, r.operands[operand], a, false);
}

/// The partition in which it leaves a result: split, or partial where the assigned factor is reduced.
constexpr partition result_partition(const rule& r, int result, const assignment& a) {
  return detail::partition_of(r, r.results[result], a, true);
}

/// Whether the sizes divide, every assigned factor may be split, only an addition lets partial sums through, and axes
/// of size one are left alone. What is scanned may be split by one axis: a run hands on what one device leaves to the
/// next.
constexpr bool admissible(const rule& r, linearity lin, const factor_sizes& sizes, const assignment& a,
                          const mesh_shape& mesh) {
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    const int f = a.factor[axis];
    if (f == assignment::none) continue;
    if (mesh.size(axis) == 1) return false;
    if (f == assignment::partial && (lin != linearity::all || r.combine != reduction::sum)) return false;
    if (f < 0) continue;
    if (r.stays_together(f) && (!r.factors[f].scan || r.factors[f].whole)) return false;
    long n = 1, axes = 0;
    for (int other = 0; other < mesh.rank(); ++other)
      if (a.factor[other] == f) n *= mesh.size(other), ++axes;
    if (sizes[f] % n != 0 || (r.factors[f].scan && axes > 1)) return false;
  }
  return true;
}

/// Why operands do not fit together without communication.
struct conflict {
  enum kind_t : std::uint8_t { nothing, disagree, whole_split, halo, carry, partial_operand, not_major } kind = nothing;
  int axis = -1;     ///< the mesh axis
  int factor = -1;   ///< the factor of the rule
  int operand = -1;  ///< the operand that splits it (or is partial)
  int other = -1;    ///< the operand that holds all of it

  constexpr explicit operator bool() const { return kind != nothing; }

  constexpr std::string_view words() const {
    switch (kind) {
      case disagree: return "two operands hold a common factor differently along a mesh axis";
      case whole_split: return "a factor that must stay whole is split";
      case halo: return "a split dimension is read across its borders: a halo is owed";
      case carry: return "a split dimension is scanned: a carry from rank to rank is owed";
      case partial_operand: return "a partial sum reaches an operator that is not linear in it";
      case not_major: return "axes split a dimension in another order than the mesh has them";
      default: return "communication free";
    }
  }
};

struct propagation {
  assignment assigned;
  list<partition, max_results> results;
  conflict why;

  constexpr bool communication_free() const { return why.kind == conflict::nothing; }
};

/// What each axis splits, from the partitions of all operands, or why they do not fit together.
constexpr conflict settle(const rule& r, linearity lin, const list<const partition*, max_operands>& operands,
                          const mesh_shape& mesh, assignment& assigned) {
  bool several = false;  // axes on one dimension somewhere
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    int split_factor = -1, by = -1, partials = 0, partial_by = -1;
    for (int i = 0; i < operands.size(); ++i) {
      const placement p = operands[i]->on(axis);
      if (p.kind == placement::partial) {
        ++partials;
        partial_by = i;
        if (p.combine != reduction::sum) return {conflict::partial_operand, axis, -1, i, -1};
      }
      if (p.kind != placement::split) continue;
      several = several || operands[i]->dims[p.dim].size() > 1;
      const int f = r.operands[i].factors[p.dim];
      if (split_factor >= 0 && split_factor != f) return {conflict::disagree, axis, f, i, by};
      split_factor = f;
      by = i;
    }
    if (partials > 0) {
      const bool passes =
          split_factor < 0 && r.combine == reduction::sum &&
          ((lin == linearity::all && partials == operands.size()) || (lin == linearity::each && partials == 1));
      if (!passes) return {conflict::partial_operand, axis, -1, partial_by, -1};
      assigned.factor[axis] = assignment::partial;
      continue;
    }
    if (split_factor < 0) continue;
    const factor& f = r.factors[split_factor];
    if (r.stays_together(split_factor))
      return {f.whole ? conflict::whole_split : f.scan ? conflict::carry : conflict::halo, axis, split_factor, by, -1};
    for (int i = 0; i < operands.size(); ++i)
      if (r.operands[i].dim_of(split_factor) >= 0 && operands[i]->on(axis).kind != placement::split)
        return {conflict::disagree, axis, split_factor, by, i};
    assigned.factor[axis] = static_cast<signed char>(split_factor);
  }
  for (int i = 0; several && i < operands.size(); ++i)
    if (!(operands[i]->dims == operand_partition(r, i, assigned).dims)) return {conflict::not_major, 0, -1, i, -1};
  return {};
}

/// What follows from the partitions of all operands: the results' partitions, or the conflict.
constexpr propagation propagate(const rule& r, linearity lin, const list<partition, max_operands>& operands,
                                const mesh_shape& mesh) {
  propagation out;
  list<const partition*, max_operands> held;
  for (const partition& p : operands) held.push(&p);
  out.why = settle(r, lin, held, mesh, out.assigned);
  if (out.why) return out;
  for (int i = 0; i < r.results.size(); ++i) out.results.push(result_partition(r, i, out.assigned));
  return out;
}

}  // namespace cfp
