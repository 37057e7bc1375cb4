// Solving while times are not known yet: with lower bounds in their places, and what matters asked for.
#pragma once

#include <cfp/solve/exact/exact.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A cost graph of which some times are not known.
struct partly_known {
  cost_graph least;     ///< lower bounds in their places
  cost_graph expected;  ///< guesses in their places
};

/// How much a plan may take beyond what it seemed to, before no more of it need be known: beyond its bound, or beyond
/// what was expected of it.
struct excess_wanted {
  double least = std::numeric_limits<double>::infinity(), expected = std::numeric_limits<double>::infinity();
};

/// What measuring what a plan uses came to.
struct asked {
  long figures = 0;  ///< that were not known
  bool all = true;   ///< by now all are
};

/// The best plan of what `make()` gives; or, sooner, a plan that takes at most 1 + `tolerance` of the time that no plan
/// is below. `ask(choices, excess)` has times of a plan made known in the graphs that follow, until it takes so much
/// more than it seemed to (none if that is negative). The bound of what is returned is of all plans; guesses say only
/// what is asked for first. Where another plan is at hand that takes `have`, a bound that makes it good enough is an
/// answer, without choices.
///
/// A plan to compare with comes first: the one that is expected to be the best, until one that is known throughout is
/// expected to be near enough. Then those that bounds do not exclude, each as far as it takes to exclude it.
template <class Make, class Ask>
solution solve_lazily(double tolerance, const Make& make, const Ask& ask,
                      double have = std::numeric_limits<double>::infinity()) {
  std::vector<std::vector<int>> known;  // plans
  for (;;) {
    const partly_known now = make();
    solution s = solve(now.least);
    if (!s.feasible) return s;
    std::vector<int> best;
    plan_cost of_best{have, 0};
    for (const std::vector<int>& choices : known) {
      const plan_cost cost = evaluate(now.least, choices);
      if (cost.time >= of_best.time || (now.least.memory_limit && cost.memory > *now.least.memory_limit)) continue;
      best = choices;
      of_best = cost;
    }
    if (of_best.time <= (1 + tolerance) * s.bound) {
      s.optimal = false;
      s.choices = std::move(best);
      s.time = of_best.time;
      s.memory = of_best.memory;
      return s;
    }
    if (ask(s.choices, {-1, -1}).all) return s;
    const double excluded = of_best.time / (1 + tolerance), excelled = of_best.time / (1 + tolerance / 2);
    const auto learn = [&](const solution& of, const excess_wanted& excess) {
      const asked out = ask(of.choices, excess);
      const bool news = out.figures > 0 || std::find(known.begin(), known.end(), of.choices) == known.end();
      if (out.all) known.push_back(of.choices);
      return news;
    };
    const solution hoped = solve(now.expected);
    if (hoped.feasible && hoped.time <= excelled)
      if (const double least = evaluate(now.least, hoped.choices).time; least <= excluded)
        if (learn(hoped, {excluded - least, excelled - hoped.time})) continue;
    learn(s, {std::max(0.0, excluded - s.bound)});
  }
}

}  // namespace cfp
