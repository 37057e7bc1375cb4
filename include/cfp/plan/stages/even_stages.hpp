// Stages of as many layers each, or of about as much time.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/plan/stages/equal_ends.hpp>
#include <cfp/plan/stages/pooled_tables.hpp>
#include <cfp/plan/stages/staged_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class even_stages {
 public:
  /// `layers`: what is cut; it must outlive this.
  even_stages(const segmentation& layers, int micro_batches) : layers_(layers), micro_batches_(micro_batches) {}

  /// Of the cuts into as many stages as a layout has that fit the one whose longest takes less: where each ends, and
  /// what it takes. Whether there is one.
  bool in(pooled_tables& t, const staged_layout& l, std::vector<int>& ends, std::vector<stage_option>& chosen) const {
    constexpr double never = std::numeric_limits<double>::infinity();
    const int stages = l.stages();
    double least = never;
    for (const std::vector<int>& some : cuts(t, stages)) {
      std::vector<stage_option> all;
      double longest = 0;
      for (int s = 0; s < stages && longest < least; ++s) {
        const stage_option* const o = fastest(t, l, s, s > 0 ? some[at(s - 1)] : 0, some[at(s)]);
        longest = o == nullptr ? never : std::max(longest, o->forward + o->backward);
        if (o != nullptr) all.push_back(*o);
      }
      if (longest < least) least = longest, ends = some, chosen = std::move(all);
    }
    return least < never;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  std::vector<std::vector<int>> cuts(const pooled_tables& t, int stages) const {
    std::vector<std::vector<int>> out;
    if (stages <= t.segments()) out.push_back(t.equal_ends(stages));
    try {
      out.push_back(equal_ends(layers_, stages));
    } catch (const bad_input&) {  // there are fewer layers than stages
    }
    return out;
  }
  // Of a stage, of those options that fit.
  const stage_option* fastest(pooled_tables& all, const staged_layout& l, int s, int first, int end) const {
    const int held = l.under_way(s, micro_batches_);
    stage_tables& t = all.of_stage(s);
    return t.fastest(t.options(first, end, held, held), held);
  }

  const segmentation& layers_;
  const int micro_batches_;
};

}  // namespace cfp::inline v0_1::detail
