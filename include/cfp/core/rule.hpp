// A rule: which dimensions of an operator's operands and results are one and the same factor. Everything the
// library knows about splitting an operator follows from it.
#pragma once

#include <cfp/core/list.hpp>
#include <cfp/core/partition.hpp>
#include <cfp/core/placement.hpp>
#include <cfp/core/text.hpp>

namespace cfp::inline v0_1 {

inline constexpr int max_factors = 16;
inline constexpr int max_operands = 8;
inline constexpr int max_results = 4;

struct factor {
  name label;
  bool whole = false;    ///< may not be split without gathering first
  bool one_hot = false;  ///< the table position that an index operand selects (lookup, scatter)
  bool scan = false;     ///< each position needs what those before it left: a split owes a carry from rank to rank
  signed char window =
      -1;  ///< the factor that says how far a position reaches: a split owes a halo from its neighbours
  signed char part_of = -1;  ///< the position (`rule::coordinates`) that it is a minor part of, where that is cut
  friend constexpr bool operator==(const factor&, const factor&) = default;
};

/// The factors of one operand or result. A dimension of several factors, `(h d)`, is one group, major first.
struct pattern {
  list<signed char, max_dims> factors;
  list<signed char, max_dims> group;  ///< group[i]: which written dimension factors[i] belongs to

  constexpr int dim_of(int factor_id) const { return factors.find(static_cast<signed char>(factor_id)); }
  friend constexpr bool operator==(const pattern&, const pattern&) = default;
};

struct rule {
  list<factor, max_factors> factors;
  list<pattern, max_operands> operands;
  list<pattern, max_results> results;
  list<signed char, 4> coordinates;  ///< factors whose global index the functor receives, in this order; of one that
                                     ///< is cut the first, whose others follow it
  reduction combine = reduction::sum;

  constexpr int find(std::string_view label) const {
    for (int i = 0; i < factors.size(); ++i)
      if (factors[i].label == label) return i;
    return -1;
  }
  /// The position that a factor is, or is a part of, or -1.
  constexpr int coordinate_of(int f) const {
    const int whole = coordinates.find(static_cast<signed char>(f));
    return whole >= 0 ? whole : factors[f].part_of;
  }
  constexpr bool cuts_coordinates() const {
    for (const factor& f : factors)
      if (f.part_of >= 0) return true;
    return false;
  }
  /// The factor that is scanned, or -1.
  constexpr int scanned() const {
    for (int i = 0; i < factors.size(); ++i)
      if (factors[i].scan) return i;
    return -1;
  }
  /// Splitting it without communication is impossible, whatever the operands' partitions are.
  constexpr bool stays_together(int f) const { return factors[f].whole || factors[f].scan || factors[f].window >= 0; }
  /// Reduced over: in an operand, in no result. (A one-hot factor is carried by its index operand as well.)
  constexpr bool is_reduction(int f) const {
    for (const pattern& r : results)
      if (r.dim_of(f) >= 0) return false;
    return true;
  }
  /// Splitting it is free: every result is split the same way.
  constexpr bool is_parallel(int f) const {
    if (stays_together(f)) return false;
    for (const pattern& r : results)
      if (r.dim_of(f) < 0) return false;
    return true;
  }
  friend constexpr bool operator==(const rule&, const rule&) = default;
};

/// Sizes of the factors, by position in the rule.
using factor_sizes = list<long, max_factors>;

}  // namespace cfp
