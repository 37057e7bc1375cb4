// Random chains of layers with options for each run, and every plan there is of them.
#pragma once

#include <cfp/solve/other/layer_chain.hpp>
#include <cfp/solve/other/stage_partition.hpp>

#include <functional>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace chains {

using namespace cfp;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// Options of every run of layers, at random: layers add up, options trade time for memory. Where stages may run on
// several devices, each option is there for each number of them, a little more than in parts.
struct random_chain {
  explicit random_chain(std::uint32_t seed, int devices = 1) : random(seed) {
    p.layers = 2 + below(5);
    p.stages = 1 + below(std::min(p.layers, 4));
    p.micro_batches = 1 + below(6);
    for (int i = 0; i < p.layers; ++i) layers.push_back({part(), part(), 0, part(), part(), 0});
    for (int i = 0; i < p.layers; ++i)
      for (int end = i + 1; end <= p.layers; ++end) add(i, end, devices);
    if (below(3) > 0) p.memory = (2 + below(16)) * 0.5;
    p.options = [this](int, int first, int end) -> const std::vector<stage_option>& {
      return options.at({first, end});
    };
    if (below(2) == 0) {
      for (int i = 0; i < p.layers; ++i) borders.push_back({part() / 2, part() / 2});
      p.border = [this](int, int at) { return borders[static_cast<std::size_t>(at)]; };
    }
  }
  random_chain(const random_chain&) = delete;

  int below(int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); }
  double part() { return 0.25 * below(8); }
  void add(int first, int end, int devices) {
    stage_option all;
    for (int i = first; i < end; ++i) {
      const stage_option& l = layers[static_cast<std::size_t>(i)];
      all.forward += l.forward, all.backward += l.backward, all.always += l.always, all.kept += l.kept;
    }
    all.update = part();
    for (int n = 1 + below(3); n > 0; --n) {
      stage_option o = all;
      o.backward += 0.5 * below(4), o.kept = std::max(0.0, o.kept - 0.5 * below(4)), o.id = n;
      options[{first, end}].push_back(o);
    }
    const std::vector<stage_option> on_one = options[{first, end}];
    for (int d = 2; d <= devices; ++d)
      for (stage_option o : on_one) {
        o.forward = o.forward / d + part() / 4, o.backward = o.backward / d + part() / 4, o.kept /= d;
        o.devices = d, o.update = part();
        options[{first, end}].push_back(o);
      }
  }
  // Options of which none follows from another, for many stages and micro-batches.
  void anything() {
    for (auto& [run, of] : options) {
      of.clear();
      for (int n = 0; n < 4; ++n) of.push_back({part(), part(), 2 * part(), 0, 0, n});
    }
    p.stages = std::min(p.layers, 4), p.micro_batches = 1 + below(4);
  }

  std::mt19937 random;
  std::vector<stage_option> layers;
  std::map<std::pair<int, int>, std::vector<stage_option>> options;
  std::vector<border_cost> borders;
  stage_problem p;
};

// Layers with strategies of their own, whole bytes each; `ratio`: backward takes so many times forward everywhere, or
// anything, with updates.
inline layer_chain random_layers(std::uint32_t seed, int most_layers, double ratio = 0) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); };
  const auto ms = [&](int n) {
    const double forward = 0.25 * below(n), backward = 0.25 * below(2 * n);
    return border_cost{forward, ratio > 0 ? ratio * forward : backward};
  };
  layer_chain c;
  const int layers = 2 + below(most_layers - 1);
  for (int i = 0; i < layers; ++i) {
    c.strategies.emplace_back();
    for (int k = 1 + below(3); k > 0; --k) {
      const border_cost takes = ms(8);
      const double update = ratio > 0 ? 0 : 0.25 * below(4);
      c.strategies.back().push_back({takes.forward, takes.backward, update, 1.0 + below(4), 1.0 + below(4), k});
    }
  }
  c.convert.resize(c.strategies.size());
  for (std::size_t i = 1; i < c.strategies.size() && below(4) > 0; ++i)
    for (std::size_t k = 0; k < c.strategies[i - 1].size(); ++k) {
      c.convert[i].emplace_back();
      for (std::size_t l = 0; l < c.strategies[i].size(); ++l) c.convert[i].back().push_back(ms(3));
    }
  if (below(2) == 0)
    for (int i = 0; i < layers; ++i) c.border.push_back(ms(5));
  c.stages = 1 + below(std::min(layers, 3)), c.micro_batches = 1 + below(8);
  if (below(3) > 0) c.memory = layers * (3.0 + below(8)) / c.stages;
  return c;
}

// Every strategy for each of layers [first, end).
inline void every_strategy(const layer_chain& c, int first, int end, std::vector<int>& chosen,
                           const std::function<void(const std::vector<int>&)>& look) {
  const std::size_t layer = static_cast<std::size_t>(first) + chosen.size();
  if (layer == static_cast<std::size_t>(end)) return look(chosen);
  for (std::size_t k = 0; k < c.strategies[layer].size(); ++k) {
    chosen.push_back(static_cast<int>(k));
    every_strategy(c, first, end, chosen, look);
    chosen.pop_back();
  }
}

using plan_visitor = std::function<void(const std::vector<int>&, const std::vector<stage_option>&)>;

inline void every_plan_after(const stage_problem& p, staged_schedule kind, int stages, int devices, bool counted,
                             std::vector<int>& ends, std::vector<stage_option>& chosen, const plan_visitor& look) {
  const int first = ends.empty() ? 0 : ends.back(), left = stages - static_cast<int>(ends.size());
  if (left == 0) {
    if (first == p.layers && devices == 0) look(ends, chosen);
    return;
  }
  for (int end = first + 1; end <= p.layers; ++end)
    for (const stage_option& o : p.options(static_cast<int>(ends.size()), first, end)) {
      if (o.always + o.kept * kept_with(kind, left, p.micro_batches) > p.memory_of(static_cast<int>(ends.size())))
        continue;
      if (counted && o.devices > devices) continue;
      ends.push_back(end), chosen.push_back(o);
      every_plan_after(p, kind, stages, counted ? devices - o.devices : 0, counted, ends, chosen, look);
      ends.pop_back(), chosen.pop_back();
    }
}

// Every plan that fits: all cuts, all options, all shares of the devices.
inline void every_plan(const stage_problem& p, staged_schedule kind, const stage_range& r, const plan_visitor& look) {
  for (int stages = r.fewest; stages <= r.most; ++stages) {
    std::vector<int> ends;
    std::vector<stage_option> chosen;
    every_plan_after(p, kind, stages, r.devices, r.devices > 0, ends, chosen, look);
  }
}

// The least that a formula makes of any plan, infinity where none fits.
template <class Formula>
double least_of_all(const stage_problem& p, staged_schedule kind, const stage_range& r, Formula formula) {
  double least = infinity;
  every_plan(p, kind, r, [&](const std::vector<int>& ends, const std::vector<stage_option>& chosen) {
    least = std::min(least, formula(ends, chosen));
  });
  return least;
}

}  // namespace chains
