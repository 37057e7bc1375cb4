// The strategies of an operator: every factor of its rule, and what splitting it owes.
#pragma once

#include <cfp/core/parse.hpp>

namespace cfp::inline v0_1 {

/// What a factor of an operator is to a split.
enum class factor_kind : std::uint8_t {
  parallel,   ///< free: every result is split the same way
  reduction,  ///< results are parts of a sum, a maximum or a minimum: an all-reduce completes them
  one_hot,    ///< positions of a table: results are parts of a sum with one summand
  whole,      ///< must be gathered first
  halo,       ///< neighbours exchange their borders first
  scan,       ///< each device hands a carry to the next
};

/// One way to split an operator over a mesh axis, and what that owes.
struct factor_strategy {
  name factor;
  factor_kind kind = factor_kind::parallel;
  name window;                         ///< halo: the factor that says how far it reaches
  reduction combine = reduction::sum;  ///< reduction: of what the results are parts
  friend constexpr bool operator==(const factor_strategy&, const factor_strategy&) = default;

  constexpr bool free() const { return kind == factor_kind::parallel; }
};

/// Every factor of a rule, and what splitting it owes: the strategies of an operator follow from its rule alone.
constexpr list<factor_strategy, max_factors> strategies_of(const rule& r) {
  list<factor_strategy, max_factors> out;
  for (int f = 0; f < r.factors.size(); ++f) {
    const factor& x = r.factors[f];
    factor_strategy s{x.label, factor_kind::parallel, {}, reduction::sum};
    if (x.whole) s.kind = factor_kind::whole;
    else if (x.scan) s.kind = factor_kind::scan;
    else if (x.window >= 0) s.kind = factor_kind::halo, s.window = r.factors[x.window].label;
    else if (!r.is_parallel(f))
      s.kind = x.one_hot ? factor_kind::one_hot : factor_kind::reduction, s.combine = r.combine;
    out.push(s);
  }
  return out;
}

template <const auto& Op>
inline constexpr list<factor_strategy, max_factors> strategies = strategies_of(parse(Op.rule_source));

}  // namespace cfp
