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

  /// With random numbers in what is read, none of it in the caches. As the rank and in the pass that have most to do: the last (a piece at
  /// the end of a causal sequence, sums that are added to), but of masks the first, which keeps its numbers.
  timing operator()(const instruction& i, const program& p, const graph& g) {
    const graph random = with_random_inputs(g);
    const program alone = instruction_program(i, p);
    const bool masks = i.kind == instruction::reshard && i.step.kind == conversion_step::mask;
    device_.be(masks ? 0 : p.mesh.devices() - 1);
    executor<T, Device> run(alone, random, kernels_, fusions_, device_, 7);
    device_.set(1, p.passes - 1);
    return watch_.cold([&] { run.issue(0, 1, false); }, how_);
  }

 private:
  const kernels<T, queue>& kernels_;
  const fusions<T, queue>& fusions_;
  Device& device_;
  stopwatch<Device> watch_;
  timing_options how_;
};

}  // namespace cfp::cuda
