// Times single instructions on one device in the place of any rank of any mesh: ranks run the same program, so that one
// of them tells what operators take. What they send each other is not run.
#pragma once

#include <cfp/backend/engine.hpp>
#include <cfp/model/random_inputs.hpp>
#include <cfp/profile/measure/stopwatch.hpp>
#include <cfp/program/instruction_program.hpp>

namespace cfp::inline v0_1 {

/// Of programs completed as the device wants them. Of the Device `be(rank)` makes it stand in for a rank; see also
/// stopwatch.hpp.
template <class Device>
class instruction_timer {
 public:
  /// The device must outlive this.
  explicit instruction_timer(Device& device, const timing_options& how = {})
      : device_(device), watch_(device), how_(how) {}

  /// With random numbers in what is read, none of it in the caches. As the rank and in the pass that have most to do:
  /// the last (a piece at the end of a causal sequence, sums that are added to), but of masks the first, which keeps
  /// its numbers.
  timing operator()(const instruction& i, const program& p, const graph& g) {
    const graph random = with_random_inputs(g);
    const program alone = instruction_program(i, p);
    const bool masks = i.kind == instruction::reshard && i.step.kind == conversion_step::mask;
    device_.be(masks ? 0 : p.mesh.devices() - 1);
    engine<Device> run(alone, random, device_, 7);
    device_.set(1);
    device_.set_pass(p.passes - 1, p.passes == 1);
    return watch_.cold([&] { run.issue(0, 1, false); }, how_);
  }

 private:
  Device& device_;
  stopwatch<Device> watch_;
  timing_options how_;
};

}  // namespace cfp
