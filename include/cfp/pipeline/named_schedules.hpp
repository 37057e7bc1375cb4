// The schedules of this folder, by the names users give them.
#pragma once

#include <cfp/pipeline/chimera.hpp>
#include <cfp/pipeline/phased_schedules.hpp>

#include <array>
#include <string_view>

namespace cfp::inline v0_1 {

/// What decides how long a schedule is.
struct schedule_sizes {
  int ranks = 4;
  int micro_batches = 8;
  int chunks = 2;        ///< of interleaved: stages of each rank
  stage_cost cost = {};  ///< of chimera: what its order is made for
  int slices = 4;        ///< of terapipe and seq1f1b: of each micro-batch
};

struct named_schedule {
  const char* name;
  pipeline_schedule (*of)(const schedule_sizes&);
};

inline constexpr std::array named_schedules{
    named_schedule{"gpipe", [](const schedule_sizes& s) { return gpipe(s.ranks, s.micro_batches); }},
    named_schedule{"1f1b", [](const schedule_sizes& s) { return one_forward_one_backward(s.ranks, s.micro_batches); }},
    named_schedule{"interleaved",
                   [](const schedule_sizes& s) { return interleaved(s.ranks, s.chunks, s.micro_batches); }},
    named_schedule{"terapipe", [](const schedule_sizes& s) { return terapipe(s.ranks, s.micro_batches, s.slices); }},
    named_schedule{"seq1f1b",
                   [](const schedule_sizes& s) { return sequence_1f1b(s.ranks, s.micro_batches, s.slices); }},
    named_schedule{"zb_h1", [](const schedule_sizes& s) { return zero_bubble_h1(s.ranks, s.micro_batches); }},
    named_schedule{"zb_h2", [](const schedule_sizes& s) { return zero_bubble_h2(s.ranks, s.micro_batches); }},
    named_schedule{"chimera", [](const schedule_sizes& s) { return chimera(s.ranks, s.micro_batches, s.cost); }},
    named_schedule{"pipedream", [](const schedule_sizes& s) { return pipedream(s.ranks, s.micro_batches); }},
    named_schedule{"pipedream_2bw",
                   [](const schedule_sizes& s) { return pipedream_2bw(s.ranks, s.micro_batches, s.ranks); }},
    named_schedule{"pipemare", [](const schedule_sizes& s) { return pipemare(s.ranks, s.micro_batches); }},
};

/// "gpipe, 1f1b, ..."
inline std::string schedule_names() {
  std::string out;
  for (const named_schedule& s : named_schedules) out.append(out.empty() ? "" : ", ").append(s.name);
  return out;
}

/// Throws bad_input for a name that is none of these.
inline pipeline_schedule schedule_named(std::string_view called, const schedule_sizes& sizes) {
  for (const named_schedule& s : named_schedules)
    if (s.name == called) return s.of(sizes);
  throw bad_input("schedule '" + std::string(called) + "' is none of " + schedule_names());
}

}  // namespace cfp
