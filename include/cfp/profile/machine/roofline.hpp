// Prices decisions on a described machine.
#pragma once

#include <cfp/profile/cost/cost_builder.hpp>
#include <cfp/profile/machine/described_times.hpp>

namespace cfp::inline v0_1 {

class roofline : public cost_builder {
 public:
  roofline(const graph& g, const mesh_shape& mesh, const decision_graph& d, described_times times,
           const target& on = {})
      : cost_builder(g, mesh, d, on), times_(std::move(times)) {}
  roofline(const graph& g, const mesh_shape& mesh, const decision_graph& d, const machine& m, const target& on = {})
      : roofline(g, mesh, d, described_times(m, mesh), on) {}

  double of_weights =
      1;  ///< share of what weights and their gradients communicate that is counted: work beside it may hide the rest

  cost_graph build() { return collect({}); }
  const described_times& times() const { return times_; }

 private:
  double program_time(const decision&, std::size_t, const sharding&, const program& p) override {
    double ms = 0;
    for (std::size_t i = 0; i < p.code.size(); ++i) ms += p.runs(i) * counted(p.code[i], p);
    return ms;
  }
  double step_time(int v, const partition& from, const conversion_step& s) override {
    const program p = conversion_program(g_, mesh_, v, from, s, real_bytes_);
    return counted(p.code[0], p);
  }
  double counted(const instruction& i, const program& p) {
    const value& v = g_[p[i.in[0]].value];
    const bool of_weight = v.role == value_role::weight || v.role == value_role::accumulator ||
                           (v.role == value_role::gradient && g_[v.of].role == value_role::weight);
    return times_(i, p, g_) * (i.kind == instruction::reshard && i.step.communicates() && of_weight ? of_weights : 1);
  }

  described_times times_;
};

}  // namespace cfp
