// What a search for plans wants to know of decisions on a described machine, priced in one go.
#pragma once

#include <cfp/plan/alpa.hpp>
#include <cfp/profile/machine/roofline.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct machine_costs {
  std::vector<cost_graph> counted;  ///< for each share of what weights and their gradients communicate
  cost_graph alpa;                  ///< as Alpa prices: bytes over bandwidth, in its own unit, of its strategies
};

class machine_pricing : public roofline {
 public:
  using roofline::roofline;

  machine_costs prices() {
    machine_costs out;
    out.counted = build_all();
    out.alpa = only_alpa(std::move(out.counted.back()), g_, d_);
    out.counted.pop_back();
    return out;
  }

 private:
  std::size_t ways() const override { return roofline::ways() + 1; }
  figures program_times(const decision& n, std::size_t choice, const sharding& plan, const program& p) override {
    figures ms = roofline::program_times(n, choice, plan, p);
    ms.push_back(alpa_cost(p));
    return ms;
  }
  figures step_times(int v, const partition& from, const conversion_step& s) override {
    figures ms = roofline::step_times(v, from, s);
    ms.push_back(alpa_cost(s, from, elements(local_shape(from, g_[v].shape, mesh_)) * g_[v].width(real_bytes_), mesh_));
    return ms;
  }
};

}  // namespace cfp
