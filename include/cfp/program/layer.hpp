// A layer the compiler plans: a model function, a mesh, and partitions given for a few tensors. The same functions
// trace, complete, differentiate and lower it as do at run time; what it communicates is a constant.
//
//   constexpr tensor mlp(model& net) { ... }
//   using megatron = cfp::layer<mlp, mesh, cfp::given<"x", cfp::split<"batch", "data">>,
//                                          cfp::given<"up.weight", cfp::split<"hidden", "model">>, ...>;
//   static_assert(megatron::forward.count(cfp::collective_kind::all_reduce) == 1);
#pragma once

#include <cfp/model/refine.hpp>
#include <cfp/program/layer_planner.hpp>

namespace cfp::inline v0_1 {

/// A partition given for a tensor of a layer, by name; dimensions not named are replicated.
template <lit Tensor, class... P>
struct given {
  static constexpr std::string_view tensor = Tensor.view();
  static constexpr list<detail::placement_text, detail::max_placements> value{{P::value...}, sizeof...(P)};
};

namespace detail {

template <auto Model, class Mesh, long ElementBytes, class... Given>
constexpr layer_report plan_layer() {
  model net(model::on_problem::keep);
  net.recorded.loss = Model(net).id;
  layer_planner p{{}, Mesh::shape, ElementBytes};
  if (net.problem.what == nullptr) {
    refiner r(net.recorded);
    p.g = r.run();
    net.problem = r.problem;
  }
  if (net.problem.what != nullptr) {
    p.out.problem = layer_report::untraceable;
    p.out.why = words(net.problem);
  }
  (p.give(Given::tensor, Given::value), ...);
  p.plan();
  return p.out;
}

template <class Layer>
consteval bool require_layer() {
  using r = layer_report;
  if constexpr (Layer::report.problem != r::nothing) {
    constexpr auto s = shorten<Layer::report.why.count>(Layer::report.why);
    if constexpr (Layer::report.problem == r::untraceable) return model_can_be_traced<said<s>>();
    else if constexpr (Layer::report.problem == r::too_long) {
      constexpr sentence why = [] {
        sentence text;
        const scheduled_collectives none{};
        say(text, Layer::report.forward.over + Layer::report.backward.over + Layer::report.gradients.over,
            " collectives more than the ", none.collectives.capacity, " of a pass that fit");
        return text;
      }();
      return layer_is_short_enough<said<shorten<why.count>(why)>>();
    } else if constexpr (Layer::report.problem == r::unknown_tensor) return given_tensor_is_of_the_layer<said<s>>();
    else if constexpr (Layer::report.problem == r::partition) return given_partition_fits_its_tensor<said<s>>();
    else if constexpr (Layer::report.problem == r::whole_split) return whole_factor_is_not_split<said<s>>();
    else if constexpr (Layer::report.problem == r::contradiction) return given_partitions_agree<said<s>>();
    else return factor_divides<said<s>>();
  }
  return true;
}

template <auto Model, class Mesh, long ElementBytes, class... Given>
struct layer_question {
  static constexpr layer_report report = plan_layer<Model, Mesh, ElementBytes, Given...>();
};

}  // namespace detail

/// `Model` is a constexpr function `tensor(model&)`: a layer from `net.activation(...)` to the tensor it returns.
template <auto Model, class Mesh, class... Given>
struct layer {
  using question = detail::layer_question<Model, Mesh, 4, Given...>;
  static_assert(detail::require_layer<question>());
  static constexpr const scheduled_collectives& forward = question::report.forward;
  static constexpr const scheduled_collectives& backward = question::report.backward;
  static constexpr const scheduled_collectives& gradients = question::report.gradients;
};

/// Why a layer cannot be planned; empty where it can.
template <auto Model, class Mesh, class... Given>
inline constexpr std::string_view why_not = detail::layer_question<Model, Mesh, 4, Given...>::report.why.view();

}  // namespace cfp
