// What a step of a plan takes on a described machine, and the memory of a device, by the program it becomes. Where
// equal segments are sharded alike, few of them tell what many take.
#pragma once

#include <cfp/block/shortened.hpp>
#include <cfp/plan/machine_options.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/profile/machine/described_times.hpp>
#include <cfp/profile/machine/timeline.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

namespace cfp::inline v0_1 {

/// Of a program.
struct program_price {
  timeline when;
  double peak = 0;  ///< bytes of a device
};

namespace detail {

// What grows with the number of equal segments, each by as much for every one more.
struct growing_price {
  timeline when;
  double always = 0;         // bytes that are there all the time
  std::vector<double> live;  // bytes beside them, at most, by what is computed then: a segment, in a phase
  double spread = 1;         // what memory takes of them as it is laid out

  growing_price& add(const growing_price& one_more, const growing_price& base, double times) {
    for (double timeline::*part : {&timeline::ms, &timeline::operators, &timeline::collectives, &timeline::exposed})
      when.*part += times * (one_more.when.*part - base.when.*part);
    always += times * (one_more.always - base.always);
    for (std::size_t i = 0; i < live.size(); ++i)  // what only the longer one has lies between its neighbours
      if (base.live[i] > 0) live[i] += times * (one_more.live[i] - base.live[i]);
    spread = std::max(spread, one_more.spread);
    return *this;
  }
  program_price price() const { return {when, always + spread * *std::max_element(live.begin(), live.end())}; }
};

}  // namespace detail

class program_prices {
 public:
  /// Segments that are kept of a stretch: its ends, and what is between them once all is under way.
  static constexpr int kept = 6;

  /// All must outlive this; without repeats none are looked for.
  program_prices(const graph& g, const repeats* r, const mesh_shape& mesh, const machine_options& options,
                 described_times& times, known_conversions& conversions)
      : g_(g), repeats_(r), mesh_(mesh), options_(options), times_(times), conversions_(conversions) {}
  program_prices(const program_prices&) = delete;
  program_prices& operator=(const program_prices&) = delete;

  /// The program of a sharding, in an order.
  program lowered(const graph& g, const sharding& plan, const schedule& order) {
    const stage_timer lowering(options_.clock, stage::lower);
    return cfp::lowered(g, mesh_, plan, options_.lowered_for, order, &conversions_);
  }
  program_price of(const program& p, const graph& g) {
    const stage_timer simulating(options_.clock, stage::simulate);
    std::vector<double> ms;
    for (const instruction& i : p.code) ms.push_back(times_(i, p, g));
    const device_type& device = times_.of().device;
    return {simulate(p, ms, device.contention, 1000 * device.hand_over), static_cast<double>(predicted_peak(p))};
  }

  /// By programs with fewer segments, of two lengths: what one more takes, each of those left out does. Nothing if no
  /// stretch is long.
  std::optional<program_price> by_few(const sharding& plan, const schedule& order) {
    if (repeats_ == nullptr) return std::nullopt;
    std::vector<equal_segments> stretches;
    for (const equal_segments& s : equally_sharded(*repeats_, plan)) {
      if (s.count > kept + 2 || (s.count > kept && stands_for(s) > s.count)) stretches.push_back(s);
      else if (stands_for(s) > s.count) return std::nullopt;
    }
    if (stretches.empty()) return std::nullopt;
    std::vector<bool> left_out(repeats_->operations.size());
    const auto between = [&](const equal_segments& s) { return static_cast<std::size_t>(s.first + kept / 2); };
    for (const equal_segments& s : stretches)
      for (int n = 0; n < s.count - kept; ++n) left_out[between(s) + static_cast<std::size_t>(n)] = true;
    const std::optional<detail::growing_price> base = in_short(plan, order, left_out);
    if (!base) return std::nullopt;
    detail::growing_price out = *base;
    for (const equal_segments& s : stretches) {
      std::vector<bool> longer = left_out;
      longer[between(s)] = false;
      const std::optional<detail::growing_price> one_more = in_short(plan, order, longer);
      if (!one_more) return std::nullopt;
      out.add(*one_more, *base, static_cast<double>(stands_for(s) - kept));
    }
    return out.price();
  }

  /// Whether segments stand for more than there are: no program is that of a plan as a whole.
  bool folded() const { return repeats_ != nullptr && repeats_->folded(); }

 private:
  long stands_for(const equal_segments& s) const {
    const auto first = repeats_->times.begin() + s.first;
    return std::accumulate(first, first + s.count, 0L);
  }
  std::optional<detail::growing_price> in_short(const sharding& plan, const schedule& order,
                                                const std::vector<bool>& left_out) {
    auto at = short_.find(left_out);
    if (at == short_.end()) at = short_.emplace(left_out, without(g_, *repeats_, left_out)).first;
    if (!at->second) return std::nullopt;
    const graph& g = at->second->g;
    const program p = lowered(g, at->second->of(plan), order);
    const program_price price = of(p, g);
    detail::growing_price out;
    out.when = price.when;
    out.always = price.peak - static_cast<double>(p.arena_bytes);
    constexpr std::size_t phases = 3;
    out.live.resize(phases * (repeats_->operations.size() + 1));
    const std::vector<long> live = live_bytes(p);
    double most = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      const auto o = static_cast<std::size_t>(p.code[i].op);
      const int segment = repeats_->of_operation[static_cast<std::size_t>(at->second->operations[o])];
      double& known =
          out.live[phases * static_cast<std::size_t>(segment + 1) + static_cast<std::size_t>(g.operations[o].when)];
      known = std::max(known, static_cast<double>(live[i]));
      most = std::max(most, static_cast<double>(live[i]));
    }
    if (most > 0) out.spread = static_cast<double>(p.arena_bytes) / most;
    return out;
  }

  const graph& g_;
  const repeats* repeats_;
  const mesh_shape& mesh_;
  const machine_options& options_;
  described_times& times_;
  known_conversions& conversions_;
  std::map<std::vector<bool>, std::optional<shortened>> short_;
};

}  // namespace cfp
