// Whether a chain of operators is one parallel block: which dimensions of its input cross it without communication.
#pragma once

#include <cfp/core/ask.hpp>

namespace cfp::inline v0_1 {

/// Names of dimensions that a chain of operators carries.
template <lit... Dim>
struct carried {
  template <class Chain>
  static constexpr bool by = (Chain::carries(Dim.view()) && ...);
};

namespace detail {

// Follows dimensions of the first operand through a chain, each operator taking the last result as its first operand:
// each must be a factor that every operator splits freely.
template <class Dims, const auto&... Op>
struct chain {
  static constexpr bool carries(std::string_view label) {
    dimensions at = Dims::value;
    int part = at.find(label);
    bool free = part >= 0;
    const auto pass = [&](std::string_view source) {
      if (!free) return;
      // The other operands are free to follow: any dimensions that fit will do.
      list<int, max_operands> ranks;
      ranks.push(at.written());
      const rule r = parse(source, outline(source).ellipsis(ranks));
      list<dimensions, max_operands> shapes;
      list<partition, max_operands> held;
      for (int i = 0; i < r.operands.size(); ++i) {
        dimensions d = at;
        if (i > 0) {
          d = {};
          for (int k = 0; k < r.operands[i].factors.size(); ++k)
            d.push(r.factors[r.operands[i].factors[k]].label, 0, r.operands[i].group[k], true);
        }
        shapes.push(d);
        held.push(partition::replicated(d.rank()));
      }
      list<operand_view, max_operands> views;
      for (int i = 0; i < r.operands.size(); ++i) views.push({&shapes[i], &held[i]});
      const binding b = bind(r, views);
      if (b.problem) {
        free = false;
        return;
      }
      int f = -1;
      for (int k = 0; k < b.r.operands[0].factors.size() && f < 0; ++k)
        if (b.given_part[0][k] == part) f = b.r.operands[0].factors[k];
      free = f >= 0 && b.r.is_parallel(f);
      if (!free) return;
      part = b.r.results[0].dim_of(f);
      at = result_dimensions(b, 0);
      for (long& e : at.sizes) e = 0;
      for (std::string_view& l : at.parts)  // a name of this rule outlives it in the rule's text
        if (const int from = position(source, l); from >= 0)
          l = source.substr(static_cast<std::size_t>(from), l.size());
    };
    (pass(Op.rule_source), ...);
    return free;
  }
};

}  // namespace detail

/// Whether a chain of operators, the result of each the first operand of the next, is one parallel block for these
/// dimensions of its input: a split of any of them crosses the whole chain without communication.
template <class Dims, class Carried, const auto&... Op>
inline constexpr bool parallel_block = Carried::template by<detail::chain<Dims, Op...>>;

}  // namespace cfp
