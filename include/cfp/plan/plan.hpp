// A plan: one choice per decision, what follows for every tensor, and the program it becomes.
#pragma once

#include <cfp/model/sharding.hpp>
#include <cfp/program/memory.hpp>
#include <cfp/program/stages/stage_programs.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct plan {
  std::string name;
  std::vector<int> choices;  ///< per decision
  sharding shards;
  program code;                      ///< lowered, memory planned; in stages that of the first place
  double additive_ms = 0;            ///< sum of the parts
  double predicted_ms = 0;           ///< from unique segments run whole
  std::vector<double> segment_ms{};  ///< what each of them takes, where they were run: the rest lies between them
  double solve_seconds = 0;
  long beside_bytes = 0;  ///< that the device of a rank takes for the program beside what it plans; 0: not known
  /// Of a plan in stages the programs of all places, and the graph these are of; else none.
  std::shared_ptr<const stage_programs> in_stages{};

  rank_programs on_ranks() const { return in_stages ? rank_programs(*in_stages) : rank_programs(code); }
  std::span<const program> programs() const {
    return in_stages ? std::span<const program>(in_stages->along) : std::span<const program>(&code, 1);
  }
};

/// That of whose ranks take most memory.
inline const program& largest(const plan& p) {
  const std::span<const program> all = p.programs();
  return *std::max_element(all.begin(), all.end(),
                           [](const program& a, const program& b) { return predicted_peak(a) < predicted_peak(b); });
}

/// Bytes of a rank at most.
inline long predicted_peak(const plan& p) { return predicted_peak(largest(p)) + p.beside_bytes; }

}  // namespace cfp
