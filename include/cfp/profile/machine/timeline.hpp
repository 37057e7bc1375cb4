// What a step takes when collectives run beside operators: an event simulation of a program's two streams.
#pragma once

#include <cfp/program/schedule.hpp>

#include <limits>

namespace cfp::inline v0_1 {

struct timeline {
  double ms = 0;
  double operators = 0;    ///< milliseconds that would be spent in them alone
  double collectives = 0;  ///< in collectives
  double exposed = 0;      ///< in which operators stand still
};

/// Simulates a step. `ms[i]` is the time of instruction i alone; while both streams work, each takes `contention` times
/// as long, and one that stood still goes on `hand_over` milliseconds after what it waits for.
inline timeline simulate(const program& p, const std::vector<double>& ms, double contention = 1, double hand_over = 0) {
  const stream_order order = order_of(p);
  timeline out;
  struct sent {
    int at;
    double left;
  };
  std::vector<sent> under_way;  // in order
  std::size_t first = 0;        // not done yet
  double now = 0;
  // Lets the streams work: operators for `work`, collectives as far as they come; or until collective `upto` is done.
  const auto pass_time = [&](double work, int upto) {
    while (work > 0 || (first < under_way.size() && under_way[first].at <= upto)) {
      if (first == under_way.size()) {  // the operators are alone
        now += work;
        return;
      }
      double& left = under_way[first].left;
      const double rate = work > 0 ? 1 / contention : 1;
      const double step = work > 0 ? std::min(work, left) : left;
      now += step / rate;
      if (work <= 0) out.exposed += step;
      else work -= step;
      left -= step;
      if (left <= 0) ++first;
    }
  };
  const auto idle = [&] { return first == under_way.size(); };
  const auto await = [&](int upto) {
    if (idle() || under_way[first].at > upto) return;
    pass_time(0, upto);
    out.exposed += hand_over;
    now += hand_over;
  };
  const auto run = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool collective = p.code[at].may_run_beside();
      (collective ? out.collectives : out.operators) += ms[at];
      if (p.code[at].beside) {
        under_way.push_back({i, ms[at] + (idle() ? hand_over : 0)});
        continue;
      }
      await(order.waits_for[at][0]);
      if (collective) out.exposed += ms[at], now += ms[at];
      else pass_time(ms[at], -1);
    }
    await(std::numeric_limits<int>::max());
    under_way.clear();
    first = 0;
  };
  run(0, p.begin);
  for (int n = 0; n < p.passes; ++n) run(p.begin, p.end);
  run(p.end, static_cast<int>(p.code.size()));
  out.ms = now;
  return out;
}

}  // namespace cfp
