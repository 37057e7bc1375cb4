// Measuring: a program is run for real on all ranks, with random inputs, until its time is known.
#pragma once

#include <cfp/profile/table.hpp>
#include <cfp/runtime/host/executor.hpp>

#include <algorithm>
#include <cmath>

namespace cfp::inline v0_1 {

struct measure_options {
  int least = 3, most = 10;      ///< repeats
  double seconds = 0.1;         ///< per program, after which `least` repeats are enough
  double stable = 0.02;          ///< stop when the quartiles are this close to the median, relatively
};

inline double median(std::vector<double> x) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  const std::size_t n = x.size();
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

inline measurement summarise(const std::vector<double>& ms) {
  std::vector<double> x = ms;
  std::sort(x.begin(), x.end());
  return {median(x), (x[x.size() * 3 / 4] - x[x.size() / 4]) / 2, static_cast<int>(x.size())};
}

/// The same graph with every tensor filled with random numbers, for programs that get their inputs from nowhere.
inline graph with_random_inputs(graph g) {
  for (value& v : g.values)
    if (v.type != element::index && v.role != value_role::state) v.fill = {0.0, v.role == value_role::weight ? 0.02 : 1.0, 0, true};
  return g;
}

/// Whether more ranks run on a machine than it has cores: then times are no timings.
template <class Pool>
bool is_oversubscribed(Pool& pool) {
  std::int32_t out = 0;
  pool.run([&](auto& rank) {
    std::int32_t over = pool.on_this_machine() > static_cast<int>(std::thread::hardware_concurrency());
    rank.world.all_reduce(&over, 1, reduction::max);
    if (rank.leads()) out = over;
  });
  return out != 0;
}

/// Time of one step of a planned program: per repeat the slowest rank, over repeats the median. Of several passes one is
/// run, and counted as often as there are. `instructions` takes the milliseconds of each:
/// the median over repeats, on the rank where that is least (others wait there). Every process gets the same figures.
template <class T, class Pool>
measurement measure(Pool& pool, const program& p, const graph& g, const host::kernels<T>& k, const measure_options& options = {}, std::vector<double>* instructions = nullptr) {
  std::vector<double> times;
  pool.run([&]<class Rank>(Rank& rank) {
    using clock = std::chrono::steady_clock;
    host::executor<T, Rank> run(p, g, k, rank, 7);
    std::vector<std::vector<double>> each(p.code.size());
    std::vector<double> slowest;
    const auto begin = clock::now();
    for (int repeat = -1; repeat < options.most; ++repeat) {
      rank.world.barrier();
      const auto start = clock::now();
      run.spent = {};
      run.run(repeat + 2, 1, [](int) {});
      double ms = std::chrono::duration<double, std::milli>(clock::now() - start).count() + (p.passes - 1) * 1000 * run.spent.passes;
      for (std::size_t i = 0; repeat >= 0 && i < p.code.size(); ++i) each[i].push_back(1000 * run.last()[i]);
      rank.world.all_reduce(&ms, 1, reduction::max);
      if (repeat < 0) continue;
      slowest.push_back(ms);
      const measurement m = summarise(slowest);
      const bool late = std::chrono::duration<double>(clock::now() - begin).count() > options.seconds;
      std::int32_t enough = m.repeats >= options.least && (late || m.spread < options.stable * m.median);
      rank.world.broadcast(&enough, 1, 0);  // clocks differ
      if (enough) break;
    }
    std::vector<double> least;
    for (const std::vector<double>& of : each) least.push_back(median(of));
    if (instructions) rank.world.all_reduce(least.data(), least.size(), reduction::min);
    if (!rank.leads()) return;
    times = slowest;
    if (instructions) *instructions = least;
  });
  return summarise(times);
}

}  // namespace cfp
