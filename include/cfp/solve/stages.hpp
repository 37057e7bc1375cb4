// Where to cut a chain of layers into stages, and which option each stage takes, for the least time of a schedule
// within a limit of memory: the schedule's own time, by simulation, with bounds that prove there is no better.
#pragma once

#include <cfp/solve/stage_problem.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// What is known of the stages from some layer on: bounds by them, each the less the better.
//
// GPipe: the sum of all they take, the longest forward and the longest backward (sends among them); their time is
// exactly sum + (M - 1) (forward + backward).
//
// 1F1B: the sum, and the most that one of them implies. A stage with w micro-batches under way runs w forward before
// its first backward, which waits for the first to go to the end and back, S; then M - w of each; after its last
// forward, w backward, the last of which waits so too.
struct suffix_bound {
  double sum = 0, first = 0, second = 0;

  bool is_no_worse(const suffix_bound& b) const { return sum <= b.sum && first <= b.first && second <= b.second; }
};

class stage_bounds {
 public:
  stage_bounds(const stage_problem& p, staged_schedule kind) : p_(p), kind_(kind) {}

  /// With a stage before layers that begin at `end`, where `left` stages begin with it.
  suffix_bound with(const suffix_bound& b, const stage_option& o, int end, int left) const {
    const border_cost send = p_.border && left > 1 ? p_.border(p_.stages - left + 1, end) : border_cost{};
    const double t = o.forward + o.backward, behind = b.sum + send.forward + send.backward;
    if (kind_ == staged_schedule::gpipe)
      return {t + behind, std::max({b.first, o.forward, send.forward}),
              std::max({b.second, o.backward, send.backward})};
    return {t + behind, std::max(alone(o, behind, left), t + send.forward + send.backward + b.first), 0};
  }
  double ms(const suffix_bound& b) const {
    return kind_ == staged_schedule::gpipe ? b.sum + (p_.micro_batches - 1) * (b.first + b.second) : b.first;
  }

  /// Milliseconds from when a stage could begin to the end of its last backward, of 1F1B.
  double alone(const stage_option& o, double behind, int left) const {
    const int m = p_.micro_batches, w = kept_with(kind_, left, m);
    const double f = o.forward, b = o.backward;
    if (w == m) return std::max({m * (f + b), behind + m * f + b, behind + f + m * b});
    return (m - w) * (f + b) + std::max(w * f, f + behind) + std::max(w * b, b + behind);
  }

 private:
  const stage_problem& p_;
  staged_schedule kind_;
};

class stage_search {
 public:
  stage_search(const stage_problem& p, staged_schedule kind, long most)
      : p_(p), kind_(kind), schedule_(schedule_of(kind, p.stages, p.micro_batches)), bounds_(p, kind), most_(most) {}

  stage_solution run() {
    known_.assign(at(p_.stages) + 1, std::vector<std::vector<label>>(at(p_.layers) + 1));
    known_[0][at(p_.layers)].push_back({});
    for (int left = 1; left <= p_.stages; ++left)
      for (int first = 0; first + left <= p_.layers; ++first) fill(left, first);
    const std::vector<label>& whole = known_[at(p_.stages)][0];
    if (whole.empty()) return out_;
    const label& best = *std::min_element(whole.begin(), whole.end(), [&](const label& a, const label& b) {
      return bounds_.ms(a.bound) < bounds_.ms(b.bound);
    });
    out_.bound = bounds_.ms(best.bound);
    follow(best);
    extend(0, p_.stages, {});
    out_.bound = std::min(left_out_, out_.ms);
    return std::move(out_);
  }

 private:
  struct label {
    suffix_bound bound{};
    stage_option option{};
    int end = 0;           // of its first stage
    std::size_t next = 0;  // the label there
  };
  struct begun {        // stages from the first on
    double before = 0;  // what they take, once
    std::vector<int> ends{};
    std::vector<stage_option> option{};
  };
  static constexpr double rounding = 1e-12;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void fill(int left, int first) {
    std::vector<label>& mine = known_[at(left)][at(first)];
    for (int end = left > 1 ? first + 1 : p_.layers; end + left - 1 <= p_.layers; ++end) {
      const std::vector<label>& rest = known_[at(left - 1)][at(end)];
      if (rest.empty()) continue;
      for (const stage_option& o : p_.options(p_.stages - left, first, end))
        for (std::size_t n = 0; fits(p_, kind_, o, left) && n < rest.size(); ++n)
          add(mine, {bounds_.with(rest[n].bound, o, end, left), o, end, n});
    }
  }
  static void add(std::vector<label>& to, const label& l) {
    for (const label& other : to)
      if (other.bound.is_no_worse(l.bound)) return;
    std::erase_if(to, [&](const label& other) { return l.bound.is_no_worse(other.bound); });
    to.push_back(l);
  }

  void follow(const label& whole) {
    begun all;
    const label* l = &whole;
    for (int left = p_.stages; left > 0; --left) {
      all.ends.push_back(l->end), all.option.push_back(l->option);
      l = &known_[at(left - 1)][at(l->end)][l->next];
    }
    offer(all);
  }
  void offer(const begun& all) {
    ++out_.simulated;
    const double ms = time_of(p_, schedule_, all.ends, all.option);
    if (ms < out_.ms) out_.ms = ms, out_.ends = all.ends, out_.option = all.option;
  }

  // Every plan that bounds do not exclude, with what is begun, the most promising first.
  void extend(int first, int left, const begun& so_far) {
    if (left == 0) return offer(so_far);
    struct longer {
      double least;
      int end;
      const stage_option* option;
    };
    std::vector<longer> all;
    begun now = so_far;
    now.ends.push_back(0), now.option.emplace_back();
    for (int end = left > 1 ? first + 1 : p_.layers; end + left - 1 <= p_.layers; ++end)
      for (const stage_option& o : p_.options(p_.stages - left, first, end)) {
        if (!fits(p_, kind_, o, left) || known_[at(left - 1)][at(end)].empty()) continue;
        now.ends.back() = end, now.option.back() = o;
        all.push_back({least_of(now, left - 1), end, &o});
      }
    std::stable_sort(all.begin(), all.end(), [](const longer& a, const longer& b) { return a.least < b.least; });
    for (const longer& l : all) {
      if (l.least >= out_.ms * (1 - rounding)) break;
      now.ends.back() = l.end, now.option.back() = *l.option;
      if (++looked_at_ > most_) left_out_ = std::min(left_out_, l.least);
      else extend(l.end, left - 1, now);
    }
  }
  // What a plan that begins so takes at least.
  double least_of(const begun& b, int left) const {
    double least = std::numeric_limits<double>::infinity();
    for (const label& l : known_[at(left)][at(b.ends.back())]) {
      suffix_bound all = l.bound;
      for (std::size_t s = b.ends.size(); s-- > 0;)
        all = bounds_.with(all, b.option[s], b.ends[s], left + static_cast<int>(b.ends.size() - s));
      least = std::min(least, bounds_.ms(all));
    }
    return least + b.option.front().update;
  }

  const stage_problem& p_;
  const staged_schedule kind_;
  const simulated_schedule schedule_;
  const stage_bounds bounds_;
  const long most_;
  std::vector<std::vector<std::vector<label>>> known_;  // [stages left][first layer]
  long looked_at_ = 0;
  double left_out_ = std::numeric_limits<double>::infinity();
  stage_solution out_;
};

}  // namespace detail

/// The stages of the least time. Plans that bounds do not exclude are simulated, at most about `most`: `gap` then says
/// how far from the best the answer may be, and is 0 where none was left out. Throws bad_input for sizes that cannot
/// be.
inline stage_solution best_stages(const stage_problem& p, staged_schedule kind, long most = 10000) {
  detail::check_sizes(p);
  return detail::stage_search(p, kind, most).run();
}

}  // namespace cfp
