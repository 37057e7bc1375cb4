// Who does how much of equal pieces of work, so that all of it is done soonest.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct work_shares {
  std::vector<int> of_each;                               ///< pieces; none: nobody can
  double time = std::numeric_limits<double>::infinity();  ///< until the last is done
  double fractional = 0;  ///< that shares of parts of pieces take, times linear in between; less, or 0, if not known
  long asked = 0;         ///< times

  bool feasible() const { return !of_each.empty(); }
};

namespace detail {

class shares_search {
 public:
  shares_search(int pieces, int workers, const std::function<double(int, int)>& time)
      : pieces_(pieces), workers_(workers), time_(time) {}

  work_shares run(std::vector<double> speeds) {
    speeds.resize(at(workers_), 1);
    shares best = in_proportion(speeds);
    for (int w = 0; w < workers_; ++w)
      if (!std::isfinite(of(w, best[at(w)])) && !std::isfinite(of(w, 1)))
        return {{}, never, 0, static_cast<long>(known_.size())};
    double soonest = last(best);
    for (shares next = best;;) {  // as their speeds are there
      for (int w = 0; w < workers_; ++w) {
        const int n = std::isfinite(of(w, next[at(w)])) ? next[at(w)] : 1;
        speeds[at(w)] = n / of(w, n);
      }
      next = in_proportion(speeds);
      const double time = last(next);
      if (!(time < soonest)) break;
      best = next, soonest = time;
    }
    while (moves_one(best)) {}
    soonest = last(best);
    if (!std::isfinite(soonest)) return {{}, soonest, 0, static_cast<long>(known_.size())};
    const double fractional = cut(best);
    return {best, soonest, fractional, static_cast<long>(known_.size())};
  }

 private:
  using shares = std::vector<int>;
  static constexpr double never = std::numeric_limits<double>::infinity();
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  double of(int worker, int pieces) {
    const auto [found, added] = known_.try_emplace({worker, pieces}, 0);
    if (added) found->second = time_(worker, pieces);
    return found->second;
  }
  double last(const shares& s) {
    double out = 0;
    for (int w = 0; w < workers_; ++w) out = std::max(out, of(w, s[at(w)]));
    return out;
  }
  // One piece for each, and of the others what each is fast. What takes no time is fast, what is no number is not.
  shares in_proportion(std::vector<double> speeds) const {
    double all = 0;
    for (double& s : speeds) all += s = s > 0 ? std::min(s, 1e100) : 0;
    shares out(at(workers_), 1);
    int left = pieces_ - workers_;
    for (int w = 0; w < workers_ && all > 0; ++w) {
      const int more = std::min(left, std::max(0, static_cast<int>(pieces_ * (speeds[at(w)] / all)) - 1));
      out[at(w)] += more, left -= more;
    }
    for (int w = 0; left > 0; w = (w + 1) % workers_)
      if (speeds[at(w)] > 0 || !(all > 0)) ++out[at(w)], --left;
    return out;
  }
  // Pieces that a worker does in a time, which is at least that of one less than it has here.
  double done(int worker, int has, double time) {
    int whole = has;
    while (whole > 1 && of(worker, whole) > time) --whole;
    while (whole < pieces_ && of(worker, whole + 1) <= time) ++whole;
    if (whole == pieces_) return whole;
    const double here = of(worker, whole), next = of(worker, whole + 1);
    return whole + (std::isfinite(next) ? (time - here) / (next - here) : 1);  // how long, nobody knows
  }
  double cut(const shares& s) {
    const auto all = [&](double time) {
      double sum = 0;
      for (int w = 0; w < workers_; ++w) sum += done(w, s[at(w)], time);
      return sum;
    };
    double least = 0, most = last(s);
    for (int w = 0; w < workers_; ++w) {
      if (s[at(w)] == 1) return 0;
      least = std::max(least, of(w, s[at(w)] - 1));
    }
    if (all(least) >= pieces_) return 0;
    for (int n = 0; n < 30; ++n) {
      const double middle = (least + most) / 2;
      (all(middle) >= pieces_ ? most : least) = middle;
    }
    return least;
  }

  // A piece from who is last to who would be done with it the soonest, if that is sooner. As nobody takes less time for
  // more pieces, shares are best where there is no such move: in better ones who is last has fewer, so somebody more.
  bool moves_one(shares& s) {
    int slowest = 0, takes = -1;
    for (int w = 1; w < workers_; ++w)
      if (of(w, s[at(w)]) > of(slowest, s[at(slowest)])) slowest = w;
    double soonest = of(slowest, s[at(slowest)]);
    if (s[at(slowest)] == 1) return false;
    for (int w = 0; w < workers_; ++w)
      if (const double time = w == slowest ? soonest : of(w, s[at(w)] + 1); time < soonest) soonest = time, takes = w;
    if (takes < 0) return false;
    --s[at(slowest)], ++s[at(takes)];
    return true;
  }

  const int pieces_, workers_;
  const std::function<double(int, int)>& time_;
  std::map<std::pair<int, int>, double> known_;
};

}  // namespace detail

/// Shares of which the last is done the soonest, each of a piece or more. `time(worker, pieces)` may be long in the
/// making and is asked for few numbers of pieces; more pieces must never take less, and infinite is what cannot be.
/// `speeds`: of each worker, as one guesses. Throws bad_input where there are fewer pieces than workers.
inline work_shares best_shares(int pieces, int workers, const std::function<double(int worker, int pieces)>& time,
                               const std::vector<double>& speeds = {}) {
  if (workers < 1 || pieces < workers)
    throw bad_input(std::to_string(pieces) + " pieces of work cannot be shared by " + std::to_string(workers) +
                    ": there must be one worker or more, and a piece for each");
  return detail::shares_search(pieces, workers, time).run(speeds);
}

}  // namespace cfp
