// Bounds: what a program that was not run takes at least, from the times of single instructions of those that were.
#pragma once

#include <cfp/profile/instruction_kind.hpp>
#include <cfp/profile/table.hpp>
#include <cfp/profile/work.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// What a program that was not run takes: no less than, and about.
struct expectation {
  double least = 0, expected = 0;
};

/// Lower bounds and guesses from the instructions of the programs that were run, as far as they hold: the sum of a
/// program's instructions, each the least time seen for it; or, if it was not seen, `like` times that of one on the
/// same rows; or `unseen` times what it takes at the highest rate seen for its kind (`unseen_exact`, and by no
/// other, where the plan has to be the best). Programs take somewhat more than that sum: a guess as much more as those
/// that were run mostly did, a bound as the least of them (or `like` the least of those of the same decision), or
/// `exact` of the sum where the plan has to be the best.
class program_bounds {
 public:
  static constexpr double unseen = 0.6, like = 0.9, exact = 0.95, unseen_exact = 0.5;
  static constexpr double doubtful = 1.2;  ///< times the sum: what takes longer was probably disturbed

  bool near_best = false;  ///< is enough

  explicit program_bounds(profile_table& t) : table_(t) {
    for (const auto& [label, seen] : t.instructions) {
      const std::size_t colon = label.find(": ");
      raise({label.substr(0, colon), label.substr(colon + 2)}, seen);
    }
  }

  /// Milliseconds of every instruction of a program that was run. Says whether that moves a bound.
  bool learn(const program& p, const graph& g, const std::vector<double>& ms) {
    bool moved = false;
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      if (p.code[i].nothing || !(ms[i] > 0)) continue;
      const instruction_kind what = kind_of(p.code[i], p, g);
      const work_done work = work_of(p.code[i], p, g);
      const auto [at, fresh] =
          table_.instructions.try_emplace(what.label(), instruction_time{ms[i], work.flops, work.traffic});
      if (!fresh && at->second.ms <= ms[i]) continue;
      at->second.ms = ms[i];
      raise(what, at->second);
      moved = true;
    }
    return moved;
  }
  /// What programs that were run took, of which decision or conversion, and the sums of their instructions (`sum`).
  struct run {
    std::string of;
    double ms = 0, sum = 0;
  };
  void compare(const std::vector<run>& runs) {
    std::map<std::string, std::vector<double>> each;
    std::vector<double> all;
    for (const run& r : runs) {
      if (!(r.sum > 0)) continue;
      all.push_back(r.ms / r.sum);
      each[r.of].push_back(all.back());
    }
    if (all.size() < enough) return;
    any_ = over_sum(all, 1);
    over_.clear();
    for (const auto& [of, over] : each)
      if (over.size() >= enough_alike) over_[of] = over_sum(over, like);
  }

  /// Milliseconds per step, of a decision or conversion.
  expectation of(const std::string& what, const program& p, const graph& g) const {
    expectation ms = sums(p, g), over = any_;
    if (const auto own = over_.find(what); own != over_.end())
      over = {std::max(over.least, own->second.least), own->second.expected};
    return {ms.least * (near_best ? over.least : exact), ms.expected * over.expected};
  }
  /// Of its instructions, as far as they were seen: the least times.
  double sum(const program& p, const graph& g) const { return sums(p, g).expected; }

 private:
  static constexpr std::size_t enough = 8, enough_alike = 2;  // programs to compare with their sums
  static expectation over_sum(const std::vector<double>& over, double share) {
    return {std::max(1.0, share * *std::min_element(over.begin(), over.end())), std::max(1.0, median(over))};
  }
  struct rates {
    double flops = 0, traffic = 0;  // per millisecond
    double of(const work_done& w) const {
      const auto time = [](double amount, double rate) { return amount > 0 && rate > 0 ? amount / rate : 0; };
      return std::max(time(w.flops, flops), time(w.traffic, traffic));
    }
  };
  // Of kinds that were not seen, which only says what to try first.
  static constexpr rates anything{1e8, 1e7};

  expectation sums(const program& p, const graph& g) const {
    expectation ms;
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      if (p.code[i].nothing) continue;
      const instruction_kind what = kind_of(p.code[i], p, g);
      const expectation one = of_instruction(what, work_of(p.code[i], p, g));
      ms.least += p.runs(i) * one.least;
      ms.expected += p.runs(i) * one.expected;
    }
    return ms;
  }

  expectation of_instruction(const instruction_kind& what, const work_done& work) const {
    if (const auto seen = table_.instructions.find(what.label()); seen != table_.instructions.end())
      return {seen->second.ms, seen->second.ms};
    const auto best = best_.find(what.kind);
    if (best == best_.end()) return {0, anything.of(work)};
    const double at_best = best->second.of(work), least = near_best ? unseen : unseen_exact;
    if (const auto other = alike_.find(what.alike()); other != alike_.end())
      return {near_best ? like * other->second : least * at_best, other->second};
    return {least * at_best, at_best};
  }

  void raise(const instruction_kind& what, const instruction_time& seen) {
    if (!(seen.ms > 0)) return;
    rates& best = best_[what.kind];
    best.flops = std::max(best.flops, seen.flops / seen.ms);
    best.traffic = std::max(best.traffic, seen.traffic / seen.ms);
    const auto [at, fresh] = alike_.try_emplace(what.alike(), seen.ms);
    if (!fresh) at->second = std::min(at->second, seen.ms);
  }

  profile_table& table_;
  std::map<std::string, rates> best_;        // the highest seen, by kind
  std::map<std::string, double> alike_;      // the least times seen
  expectation any_{1, 1};                    // times the sum that programs take, and
  std::map<std::string, expectation> over_;  // those of one decision
};

}  // namespace cfp
