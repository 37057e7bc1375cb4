// Costs of a machine that is described instead of measured: operators by their arithmetic or their memory traffic, whichever
// takes longer, collectives by latency and bandwidth.
#pragma once

#include <cfp/profile/cost_builder.hpp>
#include <cfp/profile/work.hpp>

namespace cfp::inline v0_1 {

/// One device and the links of every mesh axis.
struct described_machine {
  double flops = 1e13;      ///< per second, of matrix products
  double bandwidth = 1e12;  ///< bytes per second to memory
  double launch = 5e-6;     ///< seconds per operator

  struct link {
    double latency = 1e-5;     ///< seconds per collective
    double bandwidth = 1e11;   ///< bytes per second a device sends
  };
  std::array<link, max_axes> links{};
};

/// Milliseconds of an instruction.
inline double time_of(const instruction& i, const program& p, const graph& g, const described_machine& m) {
  if (i.nothing) return 0;
  const work_done w = work_of(i, p, g);
  double seconds = m.launch + std::max(w.flops / m.flops, w.traffic / m.bandwidth);
  if (i.kind == instruction::reshard && i.step.communicates()) {
    const auto& link = m.links[static_cast<std::size_t>(i.step.axis)];
    seconds += link.latency + w.sent / link.bandwidth;
  }
  return 1000 * seconds;
}

/// Prices decisions by a description.
class roofline : public cost_builder {
 public:
  roofline(const graph& g, const mesh_shape& mesh, const decision_graph& d, const described_machine& m, long real_bytes = sizeof(float))
      : cost_builder(g, mesh, d, real_bytes), machine_(m) {}

  cost_graph build() { return collect({}); }

 private:
  double program_time(const decision&, std::size_t, const sharding&, const program& p) override {
    double ms = 0;
    for (std::size_t i = 0; i < p.code.size(); ++i) ms += p.runs(i) * time_of(p.code[i], p, g_, machine_);
    return ms;
  }
  double step_time(int v, const partition& from, const conversion_step& s) override {
    program p;
    p.mesh = mesh_;
    p.real_bytes = real_bytes_;
    instruction i;
    i.kind = instruction::reshard;
    i.step = s;
    for (const partition& held : {from, after(from, s)}) {
      buffer b;
      b.value = v;
      b.held = held;
      b.local = local_shape(held, g_[v].shape, mesh_);
      b.bytes = elements(b.local) * g_[v].width(real_bytes_);
      p.buffers.push_back(b);
    }
    i.in.push(0);
    i.out.push(1);
    return time_of(i, p, g_, machine_);
  }

  described_machine machine_;
};

}  // namespace cfp
