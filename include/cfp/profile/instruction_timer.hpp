// Times single instructions on one GPU in the place of any rank of any mesh: ranks run the same program, so that one of them tells what
// operators take. What they send each other is not run.
#pragma once

#include <cfp/profile/instruction_program.hpp>
#include <cfp/profile/measure.hpp>
#include <cfp/runtime/cuda/executor.hpp>
#include <cfp/runtime/cuda/stopwatch.hpp>

namespace cfp::inline v0_1::cuda {

/// Of programs completed by `target_of` the fusions. `Device`: see executor.hpp and stopwatch.hpp; `be(rank)` makes it stand in for a rank.
template <class T, class Device>
class instruction_timer {
  using queue = typename Device::queue;

 public:
  /// All must outlive this.
  instruction_timer(const kernels<T, queue>& k, const fusions<T, queue>& f, Device& device, const timing_options& how = {})
      : kernels_(k), fusions_(f), device_(device), watch_(device), how_(how) {}

  /// With random numbers in what is read, none of it in the caches. As the last rank: a piece at the end of a causal sequence has most to do.
  timing operator()(const instruction& i, const program& p, const graph& g) {
    if (of_ != &g) random_ = with_random_inputs(g), of_ = &g;
    device_.be(p.mesh.devices() - 1);
    const program alone = instruction_program(i, p);
    executor<T, Device> run(alone, random_, kernels_, fusions_, device_, 7);
    device_.set(1, 0);
    return watch_.cold([&] { run.issue(0, 1, false); }, how_);
  }

 private:
  const kernels<T, queue>& kernels_;
  const fusions<T, queue>& fusions_;
  Device& device_;
  stopwatch<Device> watch_;
  timing_options how_;
  const graph* of_ = nullptr;
  graph random_;
};

}  // namespace cfp::cuda
