// What a kernel must know of a map operator when it is compiled, also of a slope, whose rule is made during
// differentiation.
#pragma once

#include <cfp/op/op.hpp>

namespace cfp::inline v0_1 {

namespace detail {

constexpr bool has_reduced(const rule& r) {
  for (int f = 0; f < r.factors.size(); ++f)
    if (r.is_reduction(f) && !r.factors[f].one_hot) return true;
  return false;
}
constexpr bool lacks_a_factor(const rule& r, int operand) {
  for (int f = 0; f < r.factors.size(); ++f)
    if (r.operands[operand].dim_of(f) < 0) return true;
  return false;
}
// Whether an operand has no factor but the last of one that has more.
constexpr bool lacks_rows(const rule& r, int operand) {
  const pattern& p = r.operands[operand];
  if (p.factors.size() != 1) return false;
  for (const pattern& q : r.operands)
    if (q.factors.size() > 1 && q.factors.back() == p.factors[0]) return true;
  return false;
}
// The factor that rows run along, if they run along the last one: a reduced factor, else the result's last; or -1.
constexpr int last_factor(const rule& r) {
  for (int f = r.factors.size() - 1; f >= 0; --f)
    if (r.is_reduction(f)) return f;
  return r.results[0].factors.empty() ? -1 : r.results[0].factors.back();
}

}  // namespace detail

template <class Op>
struct signature {
  static constexpr int operands = bare_rule<Op>.operands.size();
  static constexpr int coordinates = bare_rule<Op>.coordinates.size();
  static constexpr reduction combine = bare_rule<Op>.combine;
  static constexpr bool selects = detail::has_one_hot(bare_rule<Op>);
  static constexpr bool reduces = detail::has_reduced(parse(Op::rule_source, 1));  // "..." may be what is reduced
  /// Whether an operand changes along a row of the operator's rule, or is one number for all of it.
  static constexpr bool along_row(int operand) {
    const int row = detail::last_factor(bare_rule<Op>);
    return row < 0 || bare_rule<Op>.operands[operand].dim_of(row) >= 0;
  }
  /// Whether an operand is the same for all rows.
  static constexpr bool lacks_rows(int operand) { return detail::lacks_rows(parse(Op::rule_source, 1), operand); }
};
template <class Op, int I>
struct signature<slope<Op, I>> {
  static constexpr int operands = signature<Op>::operands + 1;
  static constexpr int coordinates = signature<Op>::coordinates;
  static constexpr reduction combine = reduction::sum;
  static constexpr bool selects = false;
  static constexpr bool reduces = detail::lacks_a_factor(parse(Op::rule_source, 1), I);  // its result is like operand I
  static constexpr bool along_row(int) { return true; }
  static constexpr bool lacks_rows(int) { return false; }
};

}  // namespace cfp
