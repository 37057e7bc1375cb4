// Prices decisions on a described machine.
#pragma once

#include <cfp/profile/cost/cost_builder.hpp>
#include <cfp/profile/machine/described_times.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

class roofline : public cost_builder {
 public:
  roofline(const graph& g, const mesh_shape& mesh, const decision_graph& d, described_times times,
           const target& on = {}, known_conversions* conversions = nullptr)
      : cost_builder(g, mesh, d, on, conversions), times_(std::move(times)) {}
  roofline(const graph& g, const mesh_shape& mesh, const decision_graph& d, const machine& m, const target& on = {})
      : roofline(g, mesh, d, described_times(m, mesh), on) {}

  /// Shares of what weights and their gradients communicate that are counted, a cost graph for each: work beside it
  /// may hide the rest.
  std::vector<double> of_weights = {1};

  /// With the first share.
  cost_graph build() { return std::move(build_all().front()); }
  std::vector<cost_graph> build_all() { return collect({}); }
  const described_times& times() const { return times_; }

 protected:
  std::size_t ways() const override { return of_weights.size(); }
  figures program_times(const decision&, std::size_t, const sharding&, const program& p) override {
    figures ms(of_weights.size(), 0.0);
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      const double alone = times_(p.code[i], p, g_);
      for (std::size_t w = 0; w < ms.size(); ++w) ms[w] += p.runs(i) * (alone * share(w, p.code[i], p));
    }
    return ms;
  }
  figures step_times(int v, const partition& from, const conversion_step& s) override {
    const program p = conversion_program(g_, mesh_, v, from, s, real_bytes_);
    figures ms(of_weights.size(), times_(p.code[0], p, g_));
    for (std::size_t w = 0; w < ms.size(); ++w) ms[w] *= share(w, p.code[0], p);
    return ms;
  }

 protected:
  described_times times_;

 private:
  double share(std::size_t way, const instruction& i, const program& p) const {
    if (!i.communicates()) return 1;
    const int v = p[i.in[0]].value;
    return g_[v].role == value_role::weight || is_weight_gradient(g_, v) ? of_weights[way] : 1;
  }
};

}  // namespace cfp
