// Data parallelism by a parameter server: workers that wait for all (BSP), for those more than so many clocks behind
// (SSP: Ho et al., NIPS 2013), or for nobody. When each begins and ends, and how old what it reads may be.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// How many clocks a worker may be ahead of the slowest when it begins one: 0 is BSP.
inline constexpr int any_staleness = std::numeric_limits<int>::max();

struct server_run {
  std::vector<std::vector<double>> begin, end;  ///< [worker][clock], of its work
  std::vector<std::vector<int>> missed;         ///< clocks before it of which it reads not all updates
  double ms = 0;                                ///< until the last is done

  int largest_missed() const {
    int out = 0;
    for (const std::vector<int>& of : missed)
      for (const int m : of) out = std::max(out, m);
    return out;
  }
};

/// `ms(worker, clock)`: of its work, with what it sends and receives. Throws bad_input for numbers that cannot be.
inline server_run simulate_server(int workers, int clocks, int staleness, const std::function<double(int, int)>& ms) {
  if (workers < 1 || clocks < 1 || staleness < 0)
    throw bad_input("a parameter server has 1 worker or more, 1 clock or more and a staleness of 0 or more, not " +
                    std::to_string(workers) + ", " + std::to_string(clocks) + " and " + std::to_string(staleness));
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  server_run out;
  out.begin.resize(at(workers)), out.end.resize(at(workers)), out.missed.resize(at(workers));
  std::vector<double> all_through;  // of each clock, when the last worker has ended it
  for (int c = 0; c < clocks; ++c) {
    double last = 0;
    for (int w = 0; w < workers; ++w) {
      const int needed = c - 1 - staleness;  // the clock that all must have ended
      const double begin = std::max(c > 0 ? out.end[at(w)].back() : 0, needed >= 0 ? all_through[at(needed)] : 0);
      const auto whole = std::upper_bound(all_through.begin(), all_through.end(), begin) - all_through.begin();
      out.begin[at(w)].push_back(begin);
      out.end[at(w)].push_back(begin + ms(w, c));
      out.missed[at(w)].push_back(c - static_cast<int>(whole));
      last = std::max(last, out.end[at(w)].back());
    }
    all_through.push_back(last);
    out.ms = std::max(out.ms, last);
  }
  return out;
}

/// Bytes through the busiest link in one clock: of one server in and out, or of a worker where each of them serves an
/// equal part, which is what a ring all-reduce sends.
inline double central_bytes(int workers, double weights) { return 2.0 * workers * weights; }
inline double sharded_bytes(int workers, double weights) { return 2.0 * (workers - 1) / workers * weights; }

}  // namespace cfp
