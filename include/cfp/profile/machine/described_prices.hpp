// What a step of a conversion costs on a described machine.
#pragma once

#include <cfp/profile/machine/collective_time.hpp>
#include <cfp/program/around.hpp>
#include <cfp/program/step_prices.hpp>

#include <algorithm>
#include <vector>

namespace cfp::inline v0_1 {

/// In picoseconds, by what is described alone: its collective, and every pass over memory.
class described_prices : public step_prices {
 public:
  described_prices(const machine& m, const mesh_shape& mesh) : machine_(m) {
    for (unsigned axes = 0; axes < 1U << mesh.rank(); ++axes) groups_.push_back(group_of(m, mesh, axes));
  }

  long operator()(const conversion_step& s, const step_tensor& t, const mesh_shape& mesh) const override {
    const extents before = local_shape(t.held, t.shape, mesh), local = local_shape(after(t.held, s), t.shape, mesh);
    const long larger = std::max(elements(before), elements(local)) * t.width;
    int launches = s.communicates() ? scratch_buffers(s, before) : 1;
    long passes = 2 * launches * larger, whole = elements_before_split(s, t.held, elements(t.shape), mesh) * t.width;
    if (s.sent_as != compression::none) {
      const compressed_sum sum(s, elements(before), s.devices(mesh));
      launches += 2;
      passes += (elements(before) + elements(local) + 2 * sum.left_over()) * t.width + 2 * sum.scratch_bytes();
      whole = sum.pieces * sum.bytes;
    }
    double seconds = launches * machine_.device.launch + static_cast<double>(passes) / machine_.device.bandwidth;
    if (s.communicates()) seconds += collective_seconds(machine_, groups_[s.set()], s, static_cast<double>(whole));
    return static_cast<long>(1e12 * seconds);
  }

 private:
  const machine machine_;
  std::vector<device_group> groups_;  // by the set of axes they are along
};

}  // namespace cfp
