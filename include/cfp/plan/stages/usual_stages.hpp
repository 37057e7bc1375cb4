// Plans people use, in stages: a named plan inside each, stages of as many layers, and what does not fit computed
// again.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/plan/stages/equal_ends.hpp>
#include <cfp/plan/stages/run_costs.hpp>
#include <cfp/plan/stages/stage_borders.hpp>
#include <cfp/plan/stages/stage_segments.hpp>
#include <cfp/plan/stages/staged_plan.hpp>
#include <cfp/profile/machine/described_prices.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Those of a mesh inside, as Megatron has them: optimizer state split over what holds pieces of the batch, tensors,
/// sequences or experts over the last axis.
inline std::vector<named_plan> usual_inside(const mesh_shape& inside, bool experts) {
  std::vector<named_plan> out;
  for (const named_plan& p : usual_plans(inside, experts)) {
    const auto [outer, last] = kinds_of(p);
    const auto is_one_of = [](const std::string& one, std::initializer_list<const char*> some) {
      return std::find(some.begin(), some.end(), one) != some.end();
    };
    if (inside.rank() == 1 ? is_one_of(outer, {"data_parallel", "zero1", "tensor", "tensor_sequence", "expert"})
                           : outer == "zero1" && is_one_of(last, {"", "tensor", "tensor_sequence", "expert"}))
      out.push_back(p);
  }
  return out;
}

/// Prices them on a described machine. What it is given must outlive it.
class usual_stages {
 public:
  /// `model` in so many passes of one size; `layout` says on how many places, and how many stages each has, which are
  /// interleaved if they are several. Throws bad_input where the model has fewer layers than stages.
  usual_stages(graph_of_passes model, const staged_layout& layout, int micro_batches, const machine_pools& m,
               const machine_options& options)
      : model_(std::move(model)), g_(model_(std::min(micro_batches, 3 * layout.places))),
        planned_(g_, options.lowered_for), layout_(layout), micro_batches_(micro_batches), machine_(m),
        places_(m, layout.inside, layout.places, layout.pools), stage_(places_.one_place(places_.pool(0))),
        of_all_(places_.seen_from(places_.pool(0)), layout.whole()), options_(options),
        kept_(detail::decided(planned_, layout.inside, options)),
        less_(detail::decided(planned_, layout.inside, options, {}, true)),
        search_(g_, layout.inside, kept_, stage_, options, &planned_.again),
        segments_(g_, segments(g_, planned_.blocks), planned_.again),
        ends_(equal_ends(segments_.found, layout.stages())), times_(stage_, layout.inside, options.known),
        runs_(g_, segments_, less_, stage_pricing(g_, layout.inside, less_, times_, options.lowered_for).prices(),
              true),
        borders_(g_, segments_, places_, options.lowered_for.real_bytes) {
    layout_.costs.clear(), layout_.first.clear();
    layout_.schedule = layout_.chunks > 1 ? "interleaved" : "1f1b";
    for (std::size_t s = 0; s + 1 < ends_.size(); ++s)
      layout_.first.push_back(segments_.first[static_cast<std::size_t>(ends_[s])]);
  }

  /// Keeps all, where that fits; else what is cheap to compute again is, and then all that may be. Choices are of
  /// decisions that may compute again. Nothing where the model or the mesh does not allow it.
  std::optional<staged_usual> price(const named_plan& p) {
    const std::optional<evaluated> e = search_.usual(p);
    if (!e) return std::nullopt;
    staged_usual out{p.name, "all kept", layout_, ends_, e->p.choices};
    set_price(out);
    for (const auto& [called, choices] : leaner(e->p.choices, less_)) {
      if (bytes_over(out.price, places_, options_.memory) <= 0 || options_.recompute == recomputing::none) break;
      out.kept = called, out.choices = choices;
      out.needs.push_back(out.price.peak);
      set_price(out);
    }
    return out;
  }

 private:
  void set_price(staged_usual& u) const {
    std::vector<stage_option> chosen;
    for (std::size_t s = 0; s < ends_.size(); ++s) {
      const run_part part = runs_.part(s > 0 ? ends_[s - 1] : 0, ends_[s]);
      std::vector<int> choices;
      for (const std::size_t n : part.nodes) choices.push_back(u.choices[n]);
      chosen.push_back(part.option(choices, g_.passes));
    }
    u.layout.costs = borders_.costs_of(chosen, ends_);
    target on = options_.lowered_for;
    on.prices = &of_all_;
    u.plan = shard(g_, less_, u.choices);
    u.price = price_of(model_, u.plan, u.layout, {machine_, options_.known}, on, micro_batches_);
  }

  const graph_of_passes model_;
  const graph g_;
  const detail::planned_graph planned_;
  staged_layout layout_;
  const int micro_batches_;
  const machine_pools machine_;
  const placed_pools places_;
  const machine stage_;  // of the first place, as if all were like it: it says in which order things are sent
  const described_prices of_all_;
  const machine_options options_;
  const decision_graph kept_, less_;
  machine_search search_;
  const stage_segments segments_;
  const std::vector<int> ends_;
  described_times times_;
  const run_costs runs_;
  const detail::stage_borders borders_;
};

}  // namespace cfp
