// Prices decisions on a described machine.
#pragma once

#include <cfp/profile/cost_builder.hpp>
#include <cfp/profile/described_times.hpp>

namespace cfp::inline v0_1 {

class roofline : public cost_builder {
 public:
  roofline(const graph& g, const mesh_shape& mesh, const decision_graph& d, described_times times, long real_bytes = sizeof(float))
      : cost_builder(g, mesh, d, real_bytes), times_(std::move(times)) {}
  roofline(const graph& g, const mesh_shape& mesh, const decision_graph& d, const machine& m, long real_bytes = sizeof(float))
      : roofline(g, mesh, d, described_times(m, mesh), real_bytes) {}

  cost_graph build() { return collect({}); }
  const described_times& times() const { return times_; }

 private:
  double program_time(const decision&, std::size_t, const sharding&, const program& p) override {
    double ms = 0;
    for (std::size_t i = 0; i < p.code.size(); ++i) ms += p.runs(i) * times_(p.code[i], p, g_);
    return ms;
  }
  double step_time(int v, const partition& from, const conversion_step& s) override {
    const program p = alone(v, from, s);
    return times_(p.code[0], p, g_);
  }

  described_times times_;
};

}  // namespace cfp
