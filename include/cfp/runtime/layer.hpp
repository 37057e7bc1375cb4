// A layer the compiler plans: a model function, a mesh, and partitions given for a few tensors. The same functions
// trace, complete, differentiate and lower it as do at run time; what it communicates is a constant.
//
//   constexpr tensor mlp(model& net) { ... }
//   using megatron = cfp::layer<mlp, mesh, cfp::given<"x", cfp::split<"batch", "data">>,
//                                          cfp::given<"up.weight", cfp::split<"hidden", "model">>, ...>;
//   static_assert(megatron::forward.count(cfp::collective_kind::all_reduce) == 1);
#pragma once

#include <cfp/core/sharded.hpp>
#include <cfp/model/complete.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/follow.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/runtime/lower.hpp>

namespace cfp::inline v0_1 {

/// A partition given for a tensor of a layer, by name; dimensions not named are replicated.
template <lit Tensor, class... P>
struct given {
  static constexpr std::string_view tensor = Tensor.view();
  static constexpr list<detail::placement_text, detail::max_placements> value{{P::value...}, sizeof...(P)};
};

/// One collective of a lowered layer, and the tensor it moves.
struct scheduled_collective {
  collective_kind kind = collective_kind::all_reduce;
  name axis;
  long_name tensor;
  long bytes = 0;  ///< sent by each device
};

/// The collectives of one pass, in the order they run.
struct schedule {
  list<scheduled_collective, 64> collectives;
  long bytes = 0;
  long over = 0;  ///< collectives that found no room

  constexpr int count(collective_kind kind) const {
    int n = 0;
    for (const scheduled_collective& c : collectives) n += c.kind == kind;
    return n;
  }
  constexpr int size() const { return collectives.size(); }
};

/// What a layer communicates, or why it cannot be planned.
struct layer_report {
  schedule forward;    ///< up to the layer's result
  schedule backward;   ///< up to the gradient of the layer's inputs
  schedule gradients;  ///< what completes the gradients of weights

  enum kind_t : std::uint8_t { nothing, untraceable, too_long, unknown_tensor, partition, contradiction, whole_split, not_divisible } problem = nothing;
  sentence why;
};

namespace detail {

// The names of a tensor's dimensions as a partition is written against them.
constexpr dimensions dimensions_of(const value& v) {
  dimensions d;
  for (int i = 0; i < v.rank(); ++i) d.push(v.dims[i], v.shape[i], v.group[i]);
  return d;
}

constexpr void say_claim(sentence& s, const graph& g, const operation& o, int factor, int source) {
  say(s, "'", factor_name(g, o, factor).view(), "'");
  if (source >= 0) say(s, " as given for ", g[source].label.view());
}

constexpr void explain(layer_report& out, const graph& g, const mesh_shape& mesh, const completion& c) {
  const operation& o = g.at(c.op);
  sentence& s = out.why;
  say(s, g[o.results[0]].label.view(), " (", o.op->label, "): ");
  const std::string_view axis = mesh.axes[c.axis].label.view();
  switch (c.problem) {
    case completion::contradiction:
      out.problem = layer_report::contradiction;
      say(s, "axis '", axis, "' is to split ");
      say_claim(s, g, o, c.factor, c.source);
      say(s, ", and ");
      say_claim(s, g, o, c.other, c.other_source);
      say(s, "; give one of them otherwise, or read it through a copy that is given as the operator is to find it");
      break;
    case completion::whole_split:
      out.problem = layer_report::whole_split;
      say(s, "axis '", axis, "' is to split ");
      say_claim(s, g, o, c.factor, c.source);
      say(s, ", which must stay whole; give a partition for the operand that leaves it so");
      break;
    default: {
      out.problem = layer_report::not_divisible;
      long n = 1;
      for (int a = 0; a < mesh.rank(); ++a)
        if (c.plan.assigned[static_cast<std::size_t>(c.op)].factor[a] == c.factor) n *= mesh.size(a);
      say(s, "'", factor_name(g, o, c.factor).view(), "' has ", o.sizes[c.factor], " elements, which ", n, " devices along '", axis, "' do not divide");
    }
  }
}

struct layer_planner {
  graph g;
  const mesh_shape& mesh;
  long element_bytes;
  std::vector<given_partition> given{};
  layer_report out{};

  constexpr void give(std::string_view tensor, const list<placement_text, max_placements>& written) {
    if (out.problem != layer_report::nothing) return;
    const int v = g.find(tensor);
    if (v < 0) {
      out.problem = layer_report::unknown_tensor;
      say(out.why, "the layer has no tensor '", tensor, "'; it has ");
      bool first = true;
      for (const value& x : g.values)
        if (x.producer < 0) say(out.why, first ? "'" : ", '", x.label.view(), "'"), first = false;
      return;
    }
    for (int other = v + 1; other < g.value_count(); ++other)
      if (g[other].label == tensor) return refuse(tensor, "two tensors of the layer have this name; name them with net.called(...)");
    for (const given_partition& p : given)
      if (p.value == v) return refuse(tensor, "is given twice");
    const dimensions d = dimensions_of(g[v]);
    for (int i = 1; i < d.rank(); ++i)
      if (d.find(d.parts[i]) != i && !written.empty()) return refuse(tensor, "has two dimensions of the same name; name them differently in the model");
    const partition_read r = read_partition(written, d, mesh);
    if (r.problem) {
      out.problem = layer_report::partition;
      say(out.why, tensor, ": ", words(r.problem, d, r.value, mesh).view());
    }
    if (r.value.is_partial() && (g[v].role == value_role::weight || g[v].type == element::index))
      return refuse(tensor, "weights and indices are not sums; they cannot be given as parts of one");
    given.push_back({v, r.value});
  }

  constexpr void plan() {
    if (out.problem != layer_report::nothing) return;
    const int result = g.loss;
    completion c = complete(g, mesh, given);
    if (c.problem != completion::nothing) return explain(out, g, mesh, c);
    const int forward_operations = g.size();
    g = gradients(g);
    c.plan.assigned.resize(g.operations.size());
    c.plan.materialised.resize(g.values.size());
    const std::vector<int> all = all_operations(g);
    follow(g, mesh, all, c.plan.assigned);
    const auto held = [&](int v) {
      const auto& m = c.plan.materialised[static_cast<std::size_t>(v)];
      return m.empty() ? need(g, v, all, c.plan.assigned) : m[0];
    };
    // The result's gradient comes in the partition the result is given in; gradients leave as their tensors are held.
    std::vector<delivery> wanted;
    const auto& result_given = c.plan.materialised[static_cast<std::size_t>(result)];
    if (!result_given.empty()) wanted.push_back({result, result_given[0], forward_operations});
    for (int v = 0; v < g.value_count(); ++v) {
      if (g[v].role == value_role::constant && g[v].of == result && !result_given.empty()) {
        c.plan.materialised[static_cast<std::size_t>(v)].push(complete_of(result_given[0]));
      }
      if (g[v].role == value_role::gradient && g[g[v].of].producer < 0 && is_total(v)) wanted.push_back({v, complete_of(held(g[v].of)), g.size()});
    }
    const program p = lower(g, mesh, c.plan, all, element_bytes, false, wanted);
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      if (p.code[i].kind != instruction::reshard) continue;
      const conversion_step& s = p.code[i].step;
      if (!s.communicates()) continue;
      const buffer& from = p[p.code[i].in[0]];
      const value& v = g[from.value];
      const bool of_weight = v.role == value_role::gradient && g[v.of].role == value_role::weight;
      // A conversion belongs to the operation it is made for; the result is delivered before anything goes backward.
      const bool is_forward = v.role != value_role::gradient && (next_operation(p, i) < forward_operations || from.value == result);
      schedule& to = of_weight ? out.gradients : is_forward ? out.forward : out.backward;
      const long bytes = bytes_sent(s, from.held, elements(v.shape) * element_bytes, mesh);
      if (to.size() == to.collectives.capacity) {
        ++to.over;
        out.problem = layer_report::too_long;
        continue;
      }
      to.collectives.push({s.collective(), mesh.axes[s.axis].label, v.label, bytes});
      to.bytes += bytes;
    }
  }

  // The gradient of something partial is replicated.
  static constexpr partition complete_of(partition p) {
    for (partition::debt& d : p.partial) d = {};
    return p;
  }

  constexpr void refuse(std::string_view tensor, std::string_view why) {
    out.problem = layer_report::partition;
    say(out.why, tensor, ": ", why);
  }

  constexpr int next_operation(const program& p, std::size_t i) const {
    for (; i < p.code.size(); ++i)
      if (p.code[i].kind == instruction::compute) return p.code[i].op;
    return g.size();
  }

  // The sum of all contributions is the last gradient of its tensor.
  constexpr bool is_total(int v) const {
    for (int w = v + 1; w < g.value_count(); ++w)
      if (g[w].role == value_role::gradient && g[w].of == g[v].of) return false;
    return true;
  }
};

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
        const schedule none{};
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
  static constexpr const schedule& forward = question::report.forward;
  static constexpr const schedule& backward = question::report.backward;
  static constexpr const schedule& gradients = question::report.gradients;
};

/// Why a layer cannot be planned; empty where it can.
template <auto Model, class Mesh, class... Given>
inline constexpr std::string_view why_not = detail::layer_question<Model, Mesh, 4, Given...>::report.why.view();

}  // namespace cfp
