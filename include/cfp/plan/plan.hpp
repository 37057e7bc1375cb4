// A plan: one choice per decision, what follows for every tensor, and the program it becomes.
#pragma once

#include <cfp/model/sharding.hpp>
#include <cfp/program/memory.hpp>

#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct plan {
  std::string name;
  std::vector<int> choices;  ///< per decision
  sharding shards;
  program code;             ///< lowered, memory planned
  double additive_ms = 0;   ///< sum of the parts
  double predicted_ms = 0;  ///< from unique segments run whole
  double solve_seconds = 0;
  long beside_bytes = 0;  ///< that the device of a rank takes for the program beside what it plans; 0: not known
};

/// Bytes of a rank at most.
inline long predicted_peak(const plan& p) { return predicted_peak(p.code) + p.beside_bytes; }

}  // namespace cfp
