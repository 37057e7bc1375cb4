// What plans for a described machine take: all priced alike, by the program they become or by one with fewer of its
// equal segments.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/plan/priced_plans.hpp>
#include <cfp/plan/program_prices.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

class plan_evaluator {
 public:
  /// All must outlive this.
  plan_evaluator(const graph& g, const decision_graph& d, const machine_options& options, program_prices& programs)
      : g_(g), d_(d), options_(options), programs_(programs) {}

  /// Prices a plan by its program. `additive_ms`: the sum of its parts.
  evaluated whole(const std::string& label, const std::vector<int>& choices, const schedule& order,
                  double additive_ms) {
    evaluated out = begun(label, choices, order, additive_ms);
    out.p.code = programs_.lowered(g_, out.p.shards, out.order);
    set(out, programs_.of(out.p.code, g_));
    return out;
  }

  /// The same by few of its equal segments, if there are many and it does not take about as much memory as there is, or
  /// if they stand for more. Throws bad_input where these cannot be told by few.
  evaluated by_few(const std::string& label, const std::vector<int>& choices, const schedule& order,
                   double additive_ms) {
    evaluated out = begun(label, choices, order, additive_ms);
    const std::optional<program_price> price = programs_.by_few(out.p.shards, out.order);
    constexpr double near = 0.05;
    const auto limit = static_cast<double>(options_.memory);
    if (programs_.folded()) {
      if (!price)
        throw bad_input("plan " + label + ": few of its layers do not tell what many take; make the model unfolded");
    } else if (!price || std::abs(price->peak - limit) < near * limit) {
      return whole(label, choices, order, additive_ms);
    }
    out.whole = false;
    out.p.shards = {};  // of many plans of many layers, it is most of what they hold
    set(out, *price);
    return out;
  }

  long least = 0;  ///< bytes of the leanest plan so far

 private:
  evaluated begun(const std::string& label, const std::vector<int>& choices, const schedule& order,
                  double additive_ms) const {
    evaluated out;
    out.order = order;
    out.order.overlap = options_.overlap;
    out.p.name = label;
    out.p.choices = choices;
    out.p.shards = shard(g_, d_, choices);
    out.p.additive_ms = additive_ms;
    return out;
  }
  void set(evaluated& e, const program_price& price) {
    e.when = price.when;
    e.p.predicted_ms = price.when.ms;
    e.peak = std::lround(price.peak);
    e.fits = e.peak <= options_.memory;
    if (least == 0 || e.peak < least) least = e.peak;
  }

  const graph& g_;
  const decision_graph& d_;
  const machine_options& options_;
  program_prices& programs_;
};

}  // namespace cfp
