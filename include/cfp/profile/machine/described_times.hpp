// What every instruction takes on a described machine, as far as it was not measured on such a device.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/profile/known_instructions.hpp>
#include <cfp/profile/machine/collective_time.hpp>
#include <cfp/profile/machine/operator_time.hpp>
#include <cfp/profile/machine/send_time.hpp>

namespace cfp::inline v0_1 {

/// What of a machine is priced: for finding out what a plan owes to which.
struct priced_effects {
  bool operators = true;       ///< or they take no time
  bool latency = true;         ///< or collectives take no time but for their bytes
  bool small_messages = true;  ///< or all sizes attain the bandwidth of a large message
};

class described_times {
 public:
  priced_effects effects;

  /// `known`: instructions measured on devices of this type.
  described_times(const machine& m, const mesh_shape& mesh, known_instructions* known = nullptr)
      : machine_(m), known_(known) {
    if (mesh.devices() > m.devices())
      throw bad_input("a mesh of " + std::to_string(mesh.devices()) + " devices does not fit on '" + m.name +
                      "', which has " + std::to_string(m.devices()));
    for (unsigned axes = 0; axes < 1U << mesh.rank(); ++axes) groups_.push_back(group_of(m, mesh, axes));
  }

  int measured = 0, described = 0;  ///< instructions priced so far by either

  /// Milliseconds.
  double operator()(const instruction& i, const program& p, const graph& g) {
    if (i.nothing) return 0;
    if (i.crosses()) {
      const bool sends = i.kind == instruction::send;
      const double bytes = static_cast<double>(p[i.crossed()].bytes);
      return 1000 * send_seconds(machine_, p.mesh, sends ? p.place : i.with, sends ? i.with : p.place, bytes);
    }
    if (known_ != nullptr)
      if (const std::optional<double> ms = (*known_)(i, p, g)) return ++measured, *ms;
    ++described;
    if (i.kind == instruction::carry) return 1000 * carry_seconds(machine_.device, p[i.in[0]].bytes);
    if (!i.communicates()) return effects.operators ? 1000 * operator_seconds(machine_.device, i, p, g) : 0;
    if (i.kind == instruction::hand) {
      const handed h = handed_by(p, g, i);
      const auto bytes = static_cast<double>(handed_bytes(p, g, i));
      const double walk = effects.operators ? operator_seconds(machine_.device, i, p, g) : 0;
      return 1000 *
             (walk + handing_seconds(machine_, groups_[1U << i.with], h, bytes, static_cast<int>(h.rows.extent)));
    }
    const partition& held = p[i.in[0]].held;
    double whole = static_cast<double>(p[i.in[0]].bytes);  // as held before splitting over its axes
    if (held.on(i.step.axis).kind == placement::split) whole *= static_cast<double>(i.step.devices(p.mesh));
    double passes = 0;  // bytes read and written around it
    if (i.step.sent_as != compression::none) {
      const compressed_sum s(i.step, elements(p[i.in[0]].local), i.step.devices(p.mesh));
      whole = static_cast<double>(s.pieces * s.bytes);
      passes = static_cast<double>(p[i.in[0]].bytes + p[i.out[0]].bytes);
    }
    const auto over = [&](double bytes) { return collective_seconds(machine_, groups_[i.step.set()], i.step, bytes); };
    double seconds = 0;
    if (effects.latency && effects.small_messages) seconds = over(whole);
    else seconds = (effects.latency ? over(1024) : 0) + whole * over(1 << 30) / (1 << 30);
    if (!effects.operators) return 1000 * seconds;
    for (int k = 1; k < i.out.size(); ++k) {  // packing
      seconds += machine_.device.launch;
      passes += 2 * static_cast<double>(p[i.out[k]].bytes);
    }
    return 1000 * (seconds + passes / machine_.device.bandwidth);
  }

  const machine& of() const { return machine_; }

 private:
  const machine machine_;
  known_instructions* known_;
  std::vector<device_group> groups_;  // by the set of axes they are along
};

}  // namespace cfp
