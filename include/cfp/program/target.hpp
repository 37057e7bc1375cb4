// What programs are lowered for: how wide numbers are, and what the kernels there compute together.
#pragma once

#include <cfp/program/fuse_same.hpp>
#include <cfp/program/memory.hpp>
#include <cfp/program/schedule.hpp>
#include <cfp/program/step_prices.hpp>
#include <cfp/program/views.hpp>

#include <vector>

namespace cfp::inline v0_1 {

struct target {
  long real_bytes = sizeof(float);                     ///< of a number that is not wide
  const std::vector<fusion_pattern>* fused = nullptr;  ///< none: every operator by itself. Must outlive this
  const std::vector<same_pattern>* same = nullptr;     ///< none: every one by itself. Must outlive this
  const step_prices* prices = nullptr;  ///< of conversions; none: along one axis after the other. Must outlive this
  bool (*walks)(const program&, const graph&,
                const instruction&) = nullptr;  ///< what need not have neighbours in order; none: nothing

  constexpr target(long bytes = sizeof(float), const std::vector<fusion_pattern>* patterns = nullptr,
                   const std::vector<same_pattern>* on_many = nullptr,
                   bool (*any_steps)(const program&, const graph&, const instruction&) = nullptr)
      : real_bytes(bytes), fused(patterns), same(on_many), walks(any_steps) {}

  /// Makes a lowered program ready: fuses, and plans its memory.
  void complete(program& p, const graph& g) const { complete(p, g, reads_of(g)); }
  /// The same, in that order: of what is fused, since conversions put early stand between what one kernel computes.
  void complete(program& p, const graph& g, const schedule& order) const { complete(p, g, reads_of(g), &order); }
  /// The same for many programs of one graph, whose `reads_of` is known.
  void complete(program& p, const graph& g, const std::vector<int>& reads, const schedule* order = nullptr) const {
    if (fused != nullptr) fuse(p, g, reads, *fused);
    if (order != nullptr) apply(*order, p);
    if (walks != nullptr) make_views(p, g, reads, walks);
    if (same != nullptr) fuse_same(p, g, *same);
    plan_memory(p);
  }
};

}  // namespace cfp
