// What a step of a pipeline takes: its programs simulated together, two streams each, that meet where one sends what
// another receives.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/program/schedule.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct stage_timeline {
  double ms = 0;
  std::vector<double> busy;  ///< of each program, milliseconds in which its operators work

  /// Of the time of all ranks, the part in which operators do nothing.
  double idle() const {
    double all = 0;
    for (const double b : busy) all += b;
    return ms > 0 ? 1 - all / (ms * static_cast<double>(busy.size())) : 0;
  }
};

namespace detail {

class stage_simulation {
 public:
  stage_simulation(const std::vector<program>& along, const std::vector<std::vector<double>>& ms, double contention,
                   double hand_over)
      : along_(along), ms_(ms), contention_(contention), hand_over_(hand_over), ranks_(along.size()) {
    for (std::size_t r = 0; r < along.size(); ++r) ranks_[r].order = order_of(along[r]);
  }

  stage_timeline run() {
    stage_timeline out;
    out.busy.resize(ranks_.size());
    for (;;) {
      for (std::size_t r = 0; r < ranks_.size(); ++r) go_on(r);
      double step = std::numeric_limits<double>::infinity();
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (works(r)) step = std::min(step, ranks_[r].left / rate(r));
        if (sends(r)) step = std::min(step, ranks_[r].beside.front().left / side_rate(r));
      }
      if (step == std::numeric_limits<double>::infinity()) break;
      pass(step, out);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].at < along_[r].code.size() || !ranks_[r].beside.empty())
        throw bad_input("the programs of a pipeline wait for one another, the one at place " + std::to_string(r) +
                        " with instruction " + std::to_string(ranks_[r].at));
    out.ms = now_;
    return out;
  }

 private:
  struct issued {
    int at = 0;
    double left = 0;
  };
  struct rank {
    stream_order order;
    std::size_t at = 0;  // what operators do, or wait to do
    double left = 0;     // of that
    bool begun = false, waited = false;
    std::deque<issued> beside;  // on its way, the first of them first
  };

  const instruction& code(std::size_t r, int i) const { return along_[r].code[static_cast<std::size_t>(i)]; }
  bool waits(const rank& x) const {
    return x.at < x.order.waits_for.size() && !x.beside.empty() && x.beside.front().at <= x.order.waits_for[x.at];
  }
  bool works(std::size_t r) const { return ranks_[r].begun; }
  // What is first beside operators, if the other rank has come to it too.
  bool sends(std::size_t r) const {
    const rank& x = ranks_[r];
    if (x.beside.empty()) return false;
    const instruction& mine = code(r, x.beside.front().at);
    if (!mine.crosses()) return true;
    const auto other = static_cast<std::size_t>(mine.with);
    if (ranks_[other].beside.empty()) return false;
    const instruction& there = code(other, ranks_[other].beside.front().at);
    return there.crosses() && there.kind != mine.kind && there.with == static_cast<int>(r);
  }
  double rate(std::size_t r) const { return sends(r) ? 1 / contention_ : 1; }
  double side_rate(std::size_t r) const {
    const instruction& mine = code(r, ranks_[r].beside.front().at);
    const bool slowed = works(r) || (mine.crosses() && works(static_cast<std::size_t>(mine.with)));
    return slowed ? 1 / contention_ : 1;
  }

  // Issues what takes no time of operators, and begins the next that does.
  void go_on(std::size_t r) {
    rank& x = ranks_[r];
    for (; !x.begun && x.at < along_[r].code.size(); ++x.at) {
      const instruction& i = along_[r].code[x.at];
      const double takes = ms_[r][x.at];
      if (i.beside) {
        x.beside.push_back({static_cast<int>(x.at), takes + (x.beside.empty() && !i.crosses() ? hand_over_ : 0)});
        continue;
      }
      if (waits(x)) {
        x.waited = true;
        return;
      }
      if (!(takes > 0)) continue;
      x.begun = true;
      x.left = takes + (std::exchange(x.waited, false) ? hand_over_ : 0);
      return;
    }
  }

  void pass(double step, stage_timeline& out) {
    now_ += step;
    std::vector<double> at(ranks_.size()), beside(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      at[r] = works(r) ? step * rate(r) : 0;
      beside[r] = sends(r) ? step * side_rate(r) : -1;
    }
    constexpr double done = 1e-12;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      rank& x = ranks_[r];
      if (works(r)) {
        out.busy[r] += step;
        if ((x.left -= at[r]) <= done * now_) x.begun = false, ++x.at;
      }
      if (beside[r] >= 0) x.beside.front().left -= beside[r];
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)  // both sides of a transfer end together
      if (beside[r] >= 0 && ended(r, done * now_)) ranks_[r].beside.front().at = ~ranks_[r].beside.front().at;
    for (rank& x : ranks_)
      if (!x.beside.empty() && x.beside.front().at < 0) x.beside.pop_front();
  }
  bool ended(std::size_t r, double rounding) const { return ranks_[r].beside.front().left <= rounding; }

  const std::vector<program>& along_;
  const std::vector<std::vector<double>>& ms_;
  const double contention_, hand_over_;
  std::vector<rank> ranks_;
  double now_ = 0;
};

}  // namespace detail

/// Simulates a step of programs that `lower_stages` made. `ms[r][i]` is the time of instruction i of program r alone,
/// of a send and its receive the same; `contention` and `hand_over` as for one program. Throws bad_input for programs
/// that wait for one another.
inline stage_timeline simulate(const std::vector<program>& along, const std::vector<std::vector<double>>& ms,
                               double contention = 1, double hand_over = 0) {
  return detail::stage_simulation(along, ms, contention, hand_over).run();
}

}  // namespace cfp
