// Random chains of layers with options for each run, and every plan there is of them.
#pragma once

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
    p.options = [this](int first, int end) -> const std::vector<stage_option>& { return options.at({first, end}); };
    if (below(2) == 0) {
      for (int i = 0; i < p.layers; ++i) borders.push_back({part() / 2, part() / 2});
      p.border = [this](int at) { return borders[static_cast<std::size_t>(at)]; };
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

  std::mt19937 random;
  std::vector<stage_option> layers;
  std::map<std::pair<int, int>, std::vector<stage_option>> options;
  std::vector<border_cost> borders;
  stage_problem p;
};

using plan_visitor = std::function<void(const std::vector<int>&, const std::vector<stage_option>&)>;

inline void every_plan_after(const stage_problem& p, staged_schedule kind, int stages, int devices, bool counted,
                             std::vector<int>& ends, std::vector<stage_option>& chosen, const plan_visitor& look) {
  const int first = ends.empty() ? 0 : ends.back(), left = stages - static_cast<int>(ends.size());
  if (left == 0) {
    if (first == p.layers && devices == 0) look(ends, chosen);
    return;
  }
  for (int end = first + 1; end <= p.layers; ++end)
    for (const stage_option& o : p.options(first, end)) {
      if (o.always + o.kept * kept_with(kind, left, p.micro_batches) > p.memory) continue;
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
