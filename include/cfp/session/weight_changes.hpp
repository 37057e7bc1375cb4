// What a training changes in whole weights.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/session/heard_steps.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// Whole weights, in every process: before a training, and what it changed.
class weight_changes {
 public:
  weight_changes(const graph& g, trained& out) : out_(out) {
    for (int v = 0; v < g.value_count(); ++v)
      if (g[v].role == value_role::weight && g[v].producer < 0) out.weights.push_back(v);
    for (const int v : out.weights) whole_.emplace_back(static_cast<std::size_t>(elements(g[v].shape)));
  }

  void before(rank& r, const loaded_program& p) {
    for (std::size_t w = 0; w < whole_.size(); ++w) collect(r, p, w, whole_[w]);
    r.barrier();
    if (!r.leads()) return;
    for (const std::vector<double>& x : whole_) {
      std::uint64_t h = 1469598103934665603ull;
      for (const double number : x) h = (h ^ std::bit_cast<std::uint64_t>(number)) * 1099511628211ull;
      out_.begun.push_back(h);
    }
  }
  void after(rank& r, const loaded_program& p) {
    for (std::size_t w = 0; w < whole_.size(); ++w) {
      if (r.leads()) now_.assign(whole_[w].size(), 0);
      r.barrier();
      collect(r, p, w, now_);
      r.barrier();
      if (!r.leads()) continue;
      std::vector<double>& change = out_.change.emplace_back(now_.size());
      std::vector<std::int8_t>& exponent = out_.exponent.emplace_back(now_.size());
      for (std::size_t i = 0; i < now_.size(); ++i) {
        change[i] = now_[i] - whole_[w][i];
        const int e = std::ilogb(std::max(std::abs(now_[i]), std::abs(whole_[w][i])));
        exponent[i] = static_cast<std::int8_t>(std::clamp(e, -128, 127));
      }
      whole_[w] = {};
    }
  }

 private:
  void collect(rank& r, const loaded_program& p, std::size_t w, std::vector<double>& to) const {
    p.collect(out_.weights[w], std::span(to));
    r.complete(std::span(to));
  }

  trained& out_;
  std::vector<std::vector<double>> whole_;
  std::vector<double> now_;
};

}  // namespace detail

}  // namespace cfp
