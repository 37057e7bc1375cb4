// What a step of a pipeline takes: its programs simulated together, with their streams, that meet where one sends what
// another receives.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/pipeline/simulate_pipeline.hpp>
#include <cfp/profile/machine/stream_events.hpp>
#include <cfp/program/schedule.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct stage_timeline {
  struct slot_begin {
    double ms = 0, busy = 0;  ///< since the step began, and of that what operators worked
  };
  double ms = 0;
  std::vector<double> busy;                    ///< of each program, milliseconds in which its operators work
  std::vector<std::vector<slot_begin>> slots;  ///< of each program, when operators came to each of its slots

  /// Of the time of all ranks, the part in which operators do nothing.
  double idle() const { return idle_share(ms, busy); }
};

/// How the streams of a rank go beside one another.
struct stream_pace {
  double contention = 1;  ///< how many times longer work takes beside communication, and that beside work
  double hand_over = 0;   ///< milliseconds until one goes on that waited for another
};

namespace detail {

class stage_simulation {
 public:
  stage_simulation(const std::vector<program>& along, const std::vector<std::vector<double>>& ms,
                   std::vector<stream_pace> paces, bool is_alone = false, std::vector<stream_events>* seen = nullptr)
      : along_(along), ms_(ms), paces_(std::move(paces)), is_alone_(is_alone), seen_(seen), ranks_(along.size()) {
    paces_.resize(along.size());
    if (seen != nullptr) seen->assign(along.size(), {});
    for (std::size_t r = 0; r < along.size(); ++r) ranks_[r].order = order_of(along[r]);
  }

  stage_timeline run() {
    stage_timeline out;
    out.busy.resize(ranks_.size()), out.slots.resize(ranks_.size());
    for (double step = 0; step < never; pass(step, out)) {
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        go_on(r);
        for (std::vector<stage_timeline::slot_begin>& begun = out.slots[r]; is_past(r, begun.size());)
          begun.push_back({now_, out.busy[r]});
      }
      step = never;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        rank& x = ranks_[r];
        x.beside_works = false;
        for (std::size_t n = 0; n < streams_beside; ++n) {
          x.now[n] = runs(r, n);
          x.beside_works = x.beside_works || x.now[n];
        }
      }
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r].begun) step = std::min(step, ranks_[r].left / rate(r));
        for (std::size_t n = 0; n < streams_beside; ++n)
          if (ranks_[r].now[n]) step = std::min(step, ranks_[r].beside[n].front().left / side_rate(r, n));
      }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].at < along_[r].code.size() || ranks_[r].is_sending())
        throw bad_input("the programs of a pipeline wait for one another, the one at place " + std::to_string(r) +
                        " with instruction " + std::to_string(ranks_[r].at));
    out.ms = now_;
    return out;
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  struct issued {
    int at = 0;
    double left = 0, begin = -1;  // begin: when it first went on
  };
  struct rank {
    stream_order order;
    std::size_t at = 0;             // what operators do, or wait to do
    double left = 0, begun_at = 0;  // of that
    bool begun = false, waited = false;
    std::array<std::deque<issued>, streams_beside> beside;  // on its way, the first of them first
    std::array<bool, streams_beside> now{};                 // which of them go on
    bool beside_works = false;                              // any of them does

    bool is_sending() const {
      return std::any_of(beside.begin(), beside.end(), [](const auto& some) { return !some.empty(); });
    }
    bool waits(std::size_t instruction) const {
      for (std::size_t n = 0; n < streams_beside; ++n)
        if (!beside[n].empty() && beside[n].front().at <= order.waits_for[instruction][n]) return true;
      return false;
    }
  };

  bool is_past(std::size_t r, std::size_t slot) const {
    return slot < along_[r].slots.size() && along_[r].slots[slot].first <= static_cast<int>(ranks_[r].at);
  }
  // Whether the first of a stream beside can go on: of a send or a receive, if the other rank has come to it too.
  bool runs(std::size_t r, std::size_t stream) const {
    const instruction* const mine = first_of(r, stream);
    if (mine == nullptr || !mine->crosses() || is_alone_) return mine != nullptr;
    const auto with = static_cast<std::size_t>(mine->with), stream_there = 3 - stream;
    const instruction* const there = first_of(with, stream_there);
    return there != nullptr && there->with == static_cast<int>(r);
  }
  const instruction* first_of(std::size_t r, std::size_t stream) const {
    const rank& x = ranks_[r];
    if (x.beside[stream].empty()) return nullptr;
    const auto at = static_cast<std::size_t>(x.beside[stream].front().at);
    return x.waits(at) ? nullptr : &along_[r].code[at];
  }
  double rate(std::size_t r) const { return ranks_[r].beside_works ? 1 / paces_[r].contention : 1; }
  double side_rate(std::size_t r, std::size_t stream) const {
    const instruction& mine = *first_of(r, stream);
    const bool slowed =
        ranks_[r].begun || (mine.crosses() && !is_alone_ && ranks_[static_cast<std::size_t>(mine.with)].begun);
    return slowed ? 1 / paces_[r].contention : 1;
  }

  // Issues what takes no time of operators, and begins the next that does.
  void go_on(std::size_t r) {
    rank& x = ranks_[r];
    for (; !x.begun && x.at < along_[r].code.size(); ++x.at) {
      const instruction& i = along_[r].code[x.at];
      const double takes = ms_[r][x.at];
      if (i.beside) {
        came(r);
        std::deque<issued>& own = x.beside[static_cast<std::size_t>(stream_of(i))];
        own.push_back({static_cast<int>(x.at), takes + (own.empty() && !i.crosses() ? paces_[r].hand_over : 0)});
        continue;
      }
      if (x.waits(x.at)) {
        x.waited = true;
        return;
      }
      came(r);
      if (!(takes > 0)) continue;
      x.begun = true;
      x.begun_at = now_;
      x.left = takes + (std::exchange(x.waited, false) ? paces_[r].hand_over : 0);
      return;
    }
  }

  void pass(double step, stage_timeline& out) {
    if (step == never) return;
    std::vector<double> done(ranks_.size());
    std::vector<std::array<double, streams_beside>> beside(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      done[r] = step * rate(r);
      for (std::size_t n = 0; n < streams_beside; ++n) beside[r][n] = ranks_[r].now[n] ? step * side_rate(r, n) : 0;
    }
    for (rank& x : ranks_)
      for (std::size_t n = 0; n < streams_beside; ++n)
        if (x.now[n] && x.beside[n].front().begin < 0) x.beside[n].front().begin = now_;
    now_ += step;
    const double rounding = 1e-12 * now_;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      rank& x = ranks_[r];
      if (x.begun) {
        out.busy[r] += step;
        if ((x.left -= done[r]) <= rounding) {
          see(r, static_cast<int>(x.at), -1, x.begun_at);
          x.begun = false, ++x.at;
        }
      }
      for (std::size_t n = 0; n < streams_beside; ++n)
        if (x.now[n] && (x.beside[n].front().left -= beside[r][n]) <= rounding) {
          see(r, x.beside[n].front().at, static_cast<int>(n), x.beside[n].front().begin);
          x.beside[n].pop_front();
        }
    }
  }
  void see(std::size_t r, int instruction, int stream, double begin) {
    if (seen_ != nullptr && now_ > begin) (*seen_)[r].work.push_back({instruction, stream, 0, begin, now_});
  }
  void came(std::size_t r) {
    if (seen_ != nullptr) (*seen_)[r].came.push_back({static_cast<int>(ranks_[r].at), now_});
  }

  const std::vector<program>& along_;
  const std::vector<std::vector<double>>& ms_;
  std::vector<stream_pace> paces_;
  const bool is_alone_;  // nobody waits for another rank
  std::vector<stream_events>* const seen_;
  std::vector<rank> ranks_;
  double now_ = 0;
};

}  // namespace detail

/// Simulates a step of programs that `lower_stages` made. `ms[r][i]` is the time of instruction i of program r alone,
/// of a send and its receive the same; `paces`: of each program's rank. Throws bad_input for programs that wait for one
/// another. `seen`: gets what it saw of each.
inline stage_timeline simulate(const std::vector<program>& along, const std::vector<std::vector<double>>& ms,
                               const std::vector<stream_pace>& paces = {}, std::vector<stream_events>* seen = nullptr) {
  return detail::stage_simulation(along, ms, paces, false, seen).run();
}

/// The same, each program by itself: what it sends or receives takes its time, and the other one is always there.
inline stage_timeline simulate_apart(const std::vector<program>& along, const std::vector<std::vector<double>>& ms,
                                     const std::vector<stream_pace>& paces = {}) {
  return detail::stage_simulation(along, ms, paces, true).run();
}

}  // namespace cfp
