// What a step takes when collectives run beside operators: an event simulation of a program's two streams.
#pragma once

#include <cfp/profile/machine/stream_events.hpp>
#include <cfp/program/schedule.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace cfp::inline v0_1 {

struct timeline {
  double ms = 0;
  double operators = 0;    ///< milliseconds that would be spent in them alone
  double collectives = 0;  ///< in collectives
  double exposed = 0;      ///< in which operators stand still
};

namespace detail {

class stream_simulation {
 public:
  stream_simulation(const program& p, const std::vector<double>& ms, double contention, double hand_over,
                    stream_events* seen)
      : p_(p), ms_(ms), contention_(contention), hand_over_(hand_over), order_(order_of(p)), seen_(seen) {}

  timeline run() {
    run(0, p_.begin);
    for (pass_ = 0; pass_ < p_.passes; ++pass_) run(p_.begin, p_.end);
    pass_ = 0;
    run(p_.end, static_cast<int>(p_.code.size()));
    out_.ms = now_;
    return out_;
  }

 private:
  struct sent {
    int at;
    double left, begin = -1;
  };

  void see(int instruction, int stream, double begin) {
    if (seen_ != nullptr && now_ > begin) seen_->work.push_back({instruction, stream, pass_, begin, now_});
  }
  bool idle() const { return first_ == under_way_.size(); }

  // Lets the streams work: operators for `work`, collectives as far as they come; or until collective `upto` is done.
  void pass_time(double work, int upto) {
    while (work > 0 || (!idle() && under_way_[first_].at <= upto)) {
      if (idle()) {  // the operators are alone
        now_ += work;
        return;
      }
      sent& s = under_way_[first_];
      if (s.begin < 0) s.begin = now_;
      const double rate = work > 0 ? 1 / contention_ : 1;
      const double step = work > 0 ? std::min(work, s.left) : s.left;
      now_ += step / rate;
      if (work <= 0) out_.exposed += step;
      else work -= step;
      s.left -= step;
      if (s.left > 0) continue;
      see(s.at, 0, s.begin);
      ++first_;
    }
  }
  void await(int upto) {
    if (idle() || under_way_[first_].at > upto) return;
    pass_time(0, upto);
    out_.exposed += hand_over_;
    now_ += hand_over_;
  }
  void run(int from, int to) {
    for (int i = from; i < to; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool collective = p_.code[at].may_run_beside();
      (collective ? out_.collectives : out_.operators) += ms_[at];
      if (p_.code[at].beside) {
        came_to(i);
        under_way_.push_back({i, ms_[at] + (idle() ? hand_over_ : 0)});
        continue;
      }
      await(order_.waits_for[at][0]);
      came_to(i);
      const double begin = now_;
      if (collective) out_.exposed += ms_[at], now_ += ms_[at];
      else pass_time(ms_[at], -1);
      see(i, collective ? 0 : -1, begin);
    }
    await(std::numeric_limits<int>::max());
    under_way_.clear();
    first_ = 0;
  }
  void came_to(int instruction) {
    if (seen_ != nullptr) seen_->came.push_back({instruction, now_});
  }

  const program& p_;
  const std::vector<double>& ms_;
  const double contention_, hand_over_;
  const stream_order order_;
  stream_events* const seen_;
  timeline out_;
  std::vector<sent> under_way_;  // in order
  std::size_t first_ = 0;        // not done yet
  int pass_ = 0;
  double now_ = 0;
};

}  // namespace detail

/// Simulates a step. `ms[i]` is the time of instruction i alone; while both streams work, each takes `contention` times
/// as long, and one that stood still goes on `hand_over` milliseconds after what it waits for. `seen`: gets what it
/// saw.
inline timeline simulate(const program& p, const std::vector<double>& ms, double contention = 1, double hand_over = 0,
                         stream_events* seen = nullptr) {
  return detail::stream_simulation(p, ms, contention, hand_over, seen).run();
}

}  // namespace cfp
