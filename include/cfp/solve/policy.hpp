// Policies: ways to choose from a cost graph, behind one concept, so that they can be compared.
#pragma once

#include <cfp/solve/exact/exact.hpp>
#include <cfp/solve/other/exhaustive.hpp>

#include <concepts>
#include <string_view>

namespace cfp::inline v0_1 {

/// A policy has a name and answers a valid cost graph within a budget. What it cannot prove it does not claim:
/// `optimal` is false and `bound` says what it knows (see `solution`).
template <class P>
concept policy = requires(const P& p, const cost_graph& g, const solve_options& o) {
  { P::name } -> std::convertible_to<std::string_view>;
  { p.solve(g, o) } -> std::same_as<solution>;
};

/// Elimination: proves what it answers.
struct exact_policy {
  static constexpr std::string_view name = "exact";
  solution solve(const cost_graph& g, const solve_options& o = {}) const { return cfp::solve(g, o); }
};

/// Every plan there is; up to `max_exhaustive_plans`.
struct exhaustive_policy {
  static constexpr std::string_view name = "exhaustive";
  solution solve(const cost_graph& g, const solve_options& o = {}) const { return exhaustive(g, o); }
};

static_assert(policy<exact_policy> && policy<exhaustive_policy>);

}  // namespace cfp
