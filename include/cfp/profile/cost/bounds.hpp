// Bounds: what a program that was not run takes at least, from the times of single instructions of those that were.
#pragma once

#include <cfp/profile/instruction_kind.hpp>
#include <cfp/profile/table.hpp>
#include <cfp/profile/work.hpp>

namespace cfp::inline v0_1 {

/// Lower bounds from a table's instructions, as far as they hold: the sum of a program's instructions, each `margin`
/// times the least time seen for it, or if it was not seen `unseen` times what it takes at the highest rate seen for
/// its kind.
class program_bounds {
 public:
  static constexpr double unseen = 0.5;
  double margin = 0.95;                    ///< 1 where a plan need not be the best
  static constexpr double doubtful = 1.2;  ///< times the sum: what takes longer was probably disturbed

  explicit program_bounds(profile_table& t) : table_(t) {
    for (const auto& [label, seen] : t.instructions) raise(label.substr(0, label.find(": ")), seen);
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
      raise(what.kind, at->second);
      moved = true;
    }
    return moved;
  }

  /// Milliseconds per step.
  double of(const program& p, const graph& g) const { return sum(p, g, margin, unseen); }
  /// Whether a time is so long that it was probably disturbed.
  bool doubts(double ms, const program& p, const graph& g) const { return ms > doubtful * sum(p, g, 1, 1); }

 private:
  double sum(const program& p, const graph& g, double of_seen, double of_unseen) const {
    double ms = 0;
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      if (p.code[i].nothing) continue;
      const instruction_kind what = kind_of(p.code[i], p, g);
      if (const auto seen = table_.instructions.find(what.label()); seen != table_.instructions.end()) {
        ms += of_seen * p.runs(i) * seen->second.ms;
      } else if (const auto best = best_.find(what.kind); best != best_.end()) {
        const work_done work = work_of(p.code[i], p, g);
        const auto time = [](double amount, double rate) { return amount > 0 && rate > 0 ? amount / rate : 0; };
        ms += of_unseen * p.runs(i) *
              std::max(time(work.flops, best->second.flops), time(work.traffic, best->second.traffic));
      }
    }
    return ms;
  }

  void raise(const std::string& kind, const instruction_time& seen) {
    if (!(seen.ms > 0)) return;
    work_done& best = best_[kind];
    best.flops = std::max(best.flops, seen.flops / seen.ms);
    best.traffic = std::max(best.traffic, seen.traffic / seen.ms);
  }

  profile_table& table_;
  std::map<std::string, work_done> best_;  // work per millisecond, the most seen
};

}  // namespace cfp
