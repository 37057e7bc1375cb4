// A chain of layers to be cut into stages: what each run of layers takes, in each of its options, and what a plan of
// stages takes under a schedule.
#pragma once

#include <cfp/pipeline/phased_schedules.hpp>
#include <cfp/pipeline/simulate_pipeline.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// One way to run some layers as a stage: how they are sharded, and what they keep.
struct stage_option {
  double forward = 0, backward = 0;  ///< milliseconds of a micro-batch
  double update = 0;                 ///< milliseconds of a step
  double always = 0;                 ///< bytes of a device: weights, state, what runs
  double kept = 0;                   ///< bytes of a micro-batch from forward to the end of backward
  int id = 0;                        ///< whoever made it knows
  int devices = 1;                   ///< that it runs on; read by searches that share out devices
};

/// What a border between stages takes, milliseconds of a micro-batch.
struct border_cost {
  double forward = 0, backward = 0;
};

struct stage_problem {
  int layers = 0, stages = 1, micro_batches = 1;
  double memory = std::numeric_limits<double>::infinity();  ///< bytes that a device has
  /// Of a stage of layers [first, end); called for what may be one, more than once. Stages may lie on devices of
  /// different kinds; searches that choose how many there are take them to be alike.
  std::function<const std::vector<stage_option>&(int stage, int first, int end)> options;
  /// Before layer `at`, where a stage begins, on another rank than the one before; none: nothing is sent.
  std::function<border_cost(int stage, int at)> border;
  std::vector<double> memories{};  ///< of each stage's devices, where they are not all the same

  double memory_of(int stage) const { return memories.empty() ? memory : memories[static_cast<std::size_t>(stage)]; }
};

struct stage_solution {
  std::vector<int> ends;             ///< of each stage, the first layer that is not its; none: nothing fits
  std::vector<stage_option> option;  ///< of each
  double ms = std::numeric_limits<double>::infinity();
  double bound = 0;    ///< milliseconds that none is below
  long simulated = 0;  ///< plans

  bool feasible() const { return !ends.empty(); }
  /// How much less, relatively, another plan may take.
  double gap() const { return feasible() && ms > 0 ? 1 - bound / ms : 0; }
};

/// A schedule that stages can be chosen for.
enum class staged_schedule : std::uint8_t { gpipe, one_forward_one_backward };

inline pipeline_schedule schedule_of(staged_schedule kind, int stages, int micro_batches) {
  return kind == staged_schedule::gpipe ? gpipe(stages, micro_batches)
                                        : one_forward_one_backward(stages, micro_batches);
}

/// Micro-batches that a stage keeps with `left` stages from it to the last, both counted.
inline int kept_with(staged_schedule kind, int left, int micro_batches) {
  return kind == staged_schedule::gpipe ? micro_batches : std::min(left, micro_batches);
}

/// Whether a device has the memory for an option of a stage with `left` stages from it to the last, both counted.
inline bool fits(const stage_problem& p, staged_schedule kind, const stage_option& o, int left) {
  return o.always + o.kept * kept_with(kind, left, p.micro_batches) <= p.memory_of(p.stages - left);
}

/// What the plan takes under a schedule of as many stages and micro-batches.
inline double time_of(const stage_problem& p, const simulated_schedule& schedule, const std::vector<int>& ends,
                      const std::vector<stage_option>& chosen) {
  std::vector<stage_cost> costs;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    stage_cost c;
    c.forward = chosen[s].forward, c.backward_inputs = chosen[s].backward, c.backward_weights = 0;
    c.update = chosen[s].update;
    const int stage = static_cast<int>(s);
    if (p.border && s + 1 < chosen.size()) c.send_forward = p.border(stage + 1, ends[s]).forward;
    if (p.border && s > 0) c.send_backward = p.border(stage, ends[s - 1]).backward;
    costs.push_back(c);
  }
  return schedule.ms(costs);
}
inline double time_of(const stage_problem& p, staged_schedule kind, const std::vector<int>& ends,
                      const std::vector<stage_option>& chosen) {
  return time_of(p, simulated_schedule(schedule_of(kind, static_cast<int>(chosen.size()), p.micro_batches)), ends,
                 chosen);
}

namespace detail {

// Throws bad_input for sizes that cannot be.
inline void check_sizes(const stage_problem& p) {
  if (p.layers < 1 || p.stages < 1 || p.micro_batches < 1 || p.stages > p.layers)
    throw bad_input("stages of a chain of " + std::to_string(p.layers) + " layers with " +
                    std::to_string(p.micro_batches) + " micro-batches are from 1 to the layers, not " +
                    std::to_string(p.stages));
  if (!p.memories.empty() && static_cast<int>(p.memories.size()) != p.stages)
    throw bad_input("memory is said of " + std::to_string(p.memories.size()) + " stages, and there are " +
                    std::to_string(p.stages) + ": say it of each, or of all by `memory`");
}

}  // namespace detail

}  // namespace cfp
