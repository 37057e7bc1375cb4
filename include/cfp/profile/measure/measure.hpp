// Measuring: a program is run for real on all ranks, with random inputs, until its time is known.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/model/random_inputs.hpp>
#include <cfp/profile/summary.hpp>

#include <chrono>

namespace cfp::inline v0_1 {

struct measure_options {
  int least = 3, most = 10;  ///< repeats
  double seconds = 0.1;      ///< per program, after which `least` repeats are enough
  double stable = 0.02;      ///< stop when the quartiles are this close to the median, relatively
};

/// Time of one step of a planned program: per repeat the slowest rank, over repeats the median. Of several passes one
/// is run, and counted as often as there are. `instructions` takes the milliseconds of each: the median over repeats,
/// on the rank where that is least (others wait there). Every process gets the same figures.
inline measurement measure(backend& on, const program& p, const graph& g, const measure_options& options = {},
                           std::vector<double>* instructions = nullptr) {
  std::vector<double> times;
  on.run([&](rank& r) {
    using clock = std::chrono::steady_clock;
    const auto since = [](clock::time_point t) { return std::chrono::duration<double>(clock::now() - t).count(); };
    const std::unique_ptr<loaded_program> loaded = r.load(p, g, 7);
    std::vector<std::vector<double>> each(p.code.size());
    std::vector<double> slowest;
    const auto begin = clock::now();
    for (int repeat = -1; repeat < options.most; ++repeat) {
      r.barrier();
      const auto start = clock::now();
      loaded->clear_times();
      loaded->step(repeat + 2, 1);
      const step_times took = loaded->times();
      double ms = 1000 * (since(start) + (p.passes - 1) * took.passes);
      for (std::size_t i = 0; repeat >= 0 && i < took.instructions.size(); ++i)
        each[i].push_back(1000 * took.instructions[i]);
      r.combine(std::span(&ms, 1), reduction::max);
      if (repeat < 0) continue;
      slowest.push_back(ms);
      const measurement m = summarise(slowest);
      const bool late = since(begin) > options.seconds;
      bool enough = m.repeats >= options.least && (late || m.spread < options.stable * m.median);
      r.agree(std::as_writable_bytes(std::span(&enough, 1)));  // clocks differ
      if (enough) break;
    }
    if (instructions && slowest.size() > 0 && each.size() > 0 && each[0].empty()) {  // they take time of their own
      loaded->time_instructions(true);
      loaded->step(options.most + 2, 1);
      const step_times took = loaded->times();
      for (std::size_t i = 0; i < took.instructions.size(); ++i) each[i].push_back(1000 * took.instructions[i]);
    }
    std::vector<double> least;
    for (const std::vector<double>& of : each) least.push_back(median(of));
    if (instructions) r.combine(least, reduction::min);
    if (!r.leads()) return;
    times = slowest;
    if (instructions) *instructions = least;
  });
  return summarise(times);
}

}  // namespace cfp
