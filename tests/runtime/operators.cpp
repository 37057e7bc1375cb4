// Every operator under every split: its results and gradients equal those of one rank, gradients equal
// central differences, and the communicators count what the rules say. Operators of the user's own are among
// them.
#include "../catch.hpp"

#include "counted.hpp"
#include "open_engine.hpp"

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/program/lower.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace operators_tests {

using namespace cfp;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int stride = 3;  // sanitizers are slow: fewer cases, all of them without
#else
constexpr int stride = 1;
#endif

// Operators of a user's own.

/// The loss: sum of c y + y^2 / 2, so that the gradient depends on both the tensor and its place.
inline constexpr struct weigh_t : op<"..., ... -> ", weigh_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T y, T c) {
    return (c + T(0.5) * y) * y;
  }
} weigh;

inline constexpr struct swiglu_t : op<"..., ... -> ...", swiglu_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T up) {
    return gate * cfp::sigmoid(gate) * up;
  }
} swiglu;

/// A functor that is reduced, with a broadcast operand and a scalar.
inline constexpr struct weighted_square_t : op<"... width, width -> ...", weighted_square_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T weight, T shift) {
    return (x - shift) * (x - shift) * weight;
  }
} weighted_square;

/// A functor that reads where it stands.
inline constexpr struct causal_square_t : op<"b q k -> b q k; index q k", causal_square_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, long q, long k) {
    return k <= q ? x * x * T(static_cast<double>(q + 2 * k)) : T(0);
  }
} causal_square;

/// Every elementary function there is for dual numbers.
inline constexpr struct elementary_t : op<"a b, b -> a b", elementary_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return cfp::tanh(x) * cfp::log(T(2) + y * y) - cfp::sqrt(cfp::exp(x) + y * y) / (y - T(9));
  }
} elementary;

/// softmin over a row: a minimum, and a gradient written out.
inline constexpr struct row_min_t : op<"... width -> ...; min width", row_min_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} row_min;
inline constexpr struct row_sum_t : op<"... width, ... -> ...", row_sum_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T min) {
    return cfp::exp(min - x);
  }
} row_sum;
struct softmin_dot_t : op<"... width, ... width -> ...", softmin_dot_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T y) {
    return dz * y;
  }
};
struct softmin_input_t : op<"... width, ... width, ... -> ... width", softmin_input_t> {
  static constexpr bool derived = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T y, T dot) {
    return y * (dot - dz);
  }
};
inline constexpr struct softmin_t : op<"... width, ..., ... -> ... width", softmin_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T min, T sum) {
    return cfp::exp(min - x) / sum;
  }
  static constexpr std::array<gradient_step, 2> gradient = {{
      {&info<softmin_dot_t>, softmin_dot_t::rule_source, {{{gradient_source::gradient, 0}, {result, 0}}, 2}, {{-1}, 1}},
      {&info<softmin_input_t>,
       softmin_input_t::rule_source,
       {{{gradient_source::gradient, 0}, {result, 0}, {step, 0}}, 3},
       {{0}, 1}},
  }};
} softmin;

constexpr auto reshape = op<"b (h d) s -> h b s d">{};
constexpr auto sum_rows = op<"a b c -> b c">{};

own_kernels all_kernels() {
  return kernels_of<weigh_t, swiglu_t, weighted_square_t, causal_square_t, elementary_t, row_min_t, row_sum_t,
                    softmin_dot_t, softmin_input_t, softmin_t, std::remove_const_t<decltype(reshape)>,
                    std::remove_const_t<decltype(sum_rows)>>();
}

// The graphs: one operator each (or the few that belong together), its operands weights, ending in a loss.

tensor operand_tensor(model& net, const char* label, std::initializer_list<dimension> dims) {
  return net.weight(label, dims, {0.3, 0.8});
}
tensor index_tensor(model& net, std::initializer_list<dimension> dims, long bound) {
  return net.input("index", dims, element::index, {0, 0, bound});
}
tensor constant_like(model& net, tensor y, const std::string& label) {
  const auto e = [&](int d) { return dimension{name(std::string("~") + static_cast<char>('p' + d)), net.size(y, d)}; };
  const filling f{0.1, 1.0};
  switch (net.recorded[y.id].rank()) {
    case 0: return net.input(label, {}, element::real, f);
    case 1: return net.input(label, {e(0)}, element::real, f);
    case 2: return net.input(label, {e(0), e(1)}, element::real, f);
    case 3: return net.input(label, {e(0), e(1), e(2)}, element::real, f);
    default: return net.input(label, {e(0), e(1), e(2), e(3)}, element::real, f);
  }
}

struct example {
  std::string label;
  graph forward;
};

// A maximum nobody calls a statistic.
inline constexpr struct row_max_t : op<"rows k -> rows; max k", row_max_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} row_max;

template <class Build>
example make(const char* label, Build&& build) {
  model net;
  const auto built = build(net);
  tensor loss;
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(built)>, tensor>) {
    loss = weigh(built, constant_like(net, built, "c"));
  } else {
    for (std::size_t i = 0; i < built.size(); ++i) {
      const tensor part = weigh(built[i], constant_like(net, built[i], "c" + std::to_string(i)));
      loss = i == 0 ? part : add(loss, part);
    }
  }
  net.recorded.loss = loss.id;
  return {label, refine(net.recorded)};
}

std::vector<example> examples() {
  const auto w = operand_tensor;
  std::vector<example> all;
  const auto put = [&](const char* label, auto&& build) { all.push_back(make(label, build)); };
  put("linear", [&](model& m) {
    return linear(w(m, "x", {{"b", 4}, {"s", 4}, {"i", 8}}), w(m, "w", {{"i", 8}, {"o", 4}}));
  });
  put("linear of rows", [&](model& m) {
    return linear(w(m, "x", {{"b", 8}, {"i", 4}}), w(m, "w", {{"i", 4}, {"o", 8}}));
  });
  put("linear of a vector", [&](model& m) { return linear(w(m, "x", {{"i", 8}}), w(m, "w", {{"i", 8}, {"o", 4}})); });
  put("dense", [&](model& m) { return dense(w(m, "x", {{"b", 4}, {"m", 8}}), w(m, "w", {{"v", 4}, {"m", 8}})); });
  put("einsum", [&](model& m) {
    return op<"e s i, e i o -> s e o">{}(w(m, "x", {{"e", 4}, {"s", 4}, {"i", 8}}),
                                         w(m, "w", {{"e", 4}, {"i", 8}, {"o", 4}}));
  });
  put("einsum, transposed", [&](model& m) {
    return op<"a k b, c k -> c b a">{}(w(m, "x", {{"a", 4}, {"k", 4}, {"b", 4}}), w(m, "w", {{"c", 8}, {"k", 4}}));
  });
  put("einsum, outer product", [&](model& m) {
    return op<"a, b -> b a">{}(w(m, "x", {{"a", 4}}), w(m, "w", {{"b", 8}}));
  });
  put("einsum, to a number", [&](model& m) {
    return op<"a b, b a -> ">{}(w(m, "x", {{"a", 4}, {"b", 8}}), w(m, "w", {{"b", 8}, {"a", 4}}));
  });
  put("scores", [&](model& m) {
    return scores(w(m, "q", {{"b", 4}, {"h", 4}, {"q", 4}, {"d", 4}}),
                  w(m, "k", {{"b", 4}, {"h", 4}, {"k", 8}, {"d", 4}}));
  });
  put("weighted sum", [&](model& m) {
    return weighted_sum(w(m, "p", {{"b", 4}, {"h", 4}, {"q", 4}, {"k", 8}}),
                        w(m, "v", {{"b", 4}, {"h", 4}, {"k", 8}, {"d", 4}}));
  });
  put("copy", [&](model& m) { return copy(w(m, "x", {{"a", 4}, {"b", 8}})); });
  put("rearrange", [&](model& m) { return reshape(w(m, "x", {{"b", 4}, {"c", 16}, {"s", 4}}), size_of{"h", 4}); });
  put("rearrange, summing", [&](model& m) { return sum_rows(w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}})); });
  put("heads of one group", [&](model& m) {
    return merge_groups(
        gelu(split_groups(w(m, "x", {{"b", 4}, {"s", 4}, {"m", 16}}), size_of{"heads", 4}, size_of{"group", 1})));
  });
  put("merge heads", [&](model& m) { return merge_heads(w(m, "x", {{"b", 4}, {"h", 4}, {"s", 4}, {"d", 4}})); });
  put("split qkv", [&](model& m) {
    return split_qkv(w(m, "x", {{"b", 4}, {"s", 4}, {"m", 48}}), size_of{"three", 3}, size_of{"heads", 4});
  });
  put("split qkv, values unread", [&](model& m) {
    const auto parts = split_qkv(w(m, "x", {{"b", 4}, {"s", 4}, {"m", 48}}), size_of{"three", 3}, size_of{"heads", 4});
    return std::array{parts[0], parts[1]};
  });
  put("add", [&](model& m) { return add(w(m, "x", {{"a", 4}, {"b", 8}}), w(m, "y", {{"a", 4}, {"b", 8}})); });
  put("add to itself", [&](model& m) {
    const tensor x = w(m, "x", {{"a", 4}, {"b", 8}});
    return add(x, x);
  });
  put("add an input", [&](model& m) {
    return add(w(m, "x", {{"a", 4}, {"b", 8}}), m.input("given", {{"a", 4}, {"b", 8}}, element::real, {0.2, 1.0}));
  });
  put("bias", [&](model& m) { return bias(w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}}), w(m, "y", {{"c", 8}})); });
  put("add rows", [&](model& m) {
    return add_rows(w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}}), w(m, "y", {{"b", 4}, {"c", 8}}));
  });
  put("mul", [&](model& m) { return mul(w(m, "x", {{"a", 4}, {"b", 8}}), w(m, "y", {{"a", 4}, {"b", 8}})); });
  put("mul with itself", [&](model& m) {
    const tensor x = w(m, "x", {{"a", 4}, {"b", 8}});
    return mul(x, x);
  });
  put("a tensor used twice", [&](model& m) {
    const tensor x = w(m, "x", {{"a", 4}, {"b", 8}});
    return mul(gelu(x), linear(x, w(m, "w", {{"b", 8}, {"~c", 8}})));
  });
  put("gelu", [&](model& m) { return gelu(w(m, "x", {{"a", 4}, {"b", 4}, {"c", 4}})); });
  put("lookup", [&](model& m) {
    return lookup(w(m, "t", {{"v", 8}, {"m", 4}}), index_tensor(m, {{"a", 4}, {"b", 4}}, 8));
  });
  put("layer norm", [&](model& m) {
    const tensor x = w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}}), sum = norm_sum(x),
                 square = norm_square(x, sum, 1.0 / 8);
    return layer_norm(x, sum, square, w(m, "w", {{"c", 8}}), w(m, "s", {{"c", 8}}), 1.0 / 8, 1e-5);
  });
  put("causal softmax", [&](model& m) {
    const tensor x = w(m, "x", {{"b", 4}, {"h", 4}, {"q", 8}, {"k", 8}}), max = masked_max(x, 0.7, cfp::causal);
    return masked_softmax(x, max, masked_sum(x, max, 0.7, cfp::causal), 0.7, cfp::causal);
  });
  put("attention softmax, all keys", [&](model& m) {
    const tensor x = w(m, "x", {{"b", 4}, {"h", 2}, {"g", 2}, {"q", 4}, {"k", 8}}),
                 max = masked_max(x, 0.7, everywhere);
    return merge_groups(masked_softmax(x, max, masked_sum(x, max, 0.7, everywhere), 0.7, everywhere));
  });
  put("softmax", [&](model& m) {
    const tensor x = w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}}), max = logits_max(x);
    return softmax(x, max, logits_sum(x, max));
  });
  put("rms norm", [&](model& m) {
    const tensor x = w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}});
    return rms_norm(x, rms_square(x), w(m, "w", {{"c", 8}}), 1.0 / 8, 1e-5);
  });
  put("gated silu", [&](model& m) {
    return gated_silu(w(m, "x", {{"a", 4}, {"b", 8}}), w(m, "y", {{"a", 4}, {"b", 8}}));
  });
  put("relu", [&](model& m) { return relu(w(m, "x", {{"a", 4}, {"b", 4}, {"c", 4}})); });
  put("scaled", [&](model& m) { return scaled(w(m, "x", {{"a", 4}, {"b", 8}}), 0.3); });
  put("dropout", [&](model& m) { return dropout(w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}}), 0.3); });
  put("rotary", [&](model& m) {
    return rotary(w(m, "x", {{"b", 4}, {"h", 4}, {"s", 4}, {"d", 8}}), 3.0, 1.0 / 4, size_of{"half", 2},
                  size_of{"out", 2});
  });
  put("grouped scores", [&](model& m) {
    const tensor q = split_groups(w(m, "q", {{"b", 4}, {"s", 4}, {"m", 32}}), size_of{"heads", 4}, size_of{"group", 2});
    const tensor score =
        grouped_scores(q, split_heads(w(m, "k", {{"b", 4}, {"s", 4}, {"n", 16}}), size_of{"heads", 4}));
    return merge_groups(grouped_sum(score, w(m, "v", {{"b", 4}, {"h", 4}, {"k", 4}, {"d", 4}})));
  });
  put("add positions", [&](model& m) {
    return add_positions(w(m, "x", {{"b", 4}, {"h", 4}, {"q", 4}, {"k", 4}}),
                         w(m, "t", {{"q", 4}, {"k", 4}, {"h", 4}}));
  });
  put("expert dense", [&](model& m) {
    return expert_dense(w(m, "x", {{"e", 4}, {"g", 4}, {"i", 8}}), w(m, "w", {{"e", 4}, {"o", 8}, {"i", 8}}));
  });
  put("dispatch to experts and back", [&](model& m) {
    const tensor logits = w(m, "gate", {{"g", 4}, {"s", 4}, {"e", 4}}), max = logits_max(logits);
    const tensor gate = softmax(logits, max, logits_sum(logits, max)), place = queue_places(gate, 2);
    const tensor sent = to_experts(dispatch(place, size_of{"capacity", 2}), w(m, "x", {{"g", 4}, {"s", 4}, {"m", 8}}));
    const tensor back = from_experts(combine(gate, place, chosen_sum(gate, place), size_of{"capacity", 2}), sent);
    return std::array{
        back, gate_mass(gate)};  // alone, shares of what was chosen leave gates of the others a gradient of zero
  });
  put("imbalance of experts", [&](model& m) {
    const tensor gate = w(m, "gate", {{"g", 4}, {"s", 4}, {"e", 4}});
    return scaled(imbalance(first_choices(queue_places(gate, 2)), gate_mass(gate)), 0.1);
  });
  put("cross entropy", [&](model& m) {
    const tensor x = w(m, "x", {{"b", 4}, {"s", 4}, {"v", 8}}), max = logits_max(x);
    return cross_entropy(x, index_tensor(m, {{"b", 4}, {"s", 4}}, 8), max, logits_sum(x, max), 1.0 / 16);
  });
  put("cross entropy with ignored targets", [&](model& m) {
    const dimension b{"b", 4}, s{"s", 4};
    return mean_cross_entropy(w(m, "x", {b, s, {"v", 8}}), m.input("index", {b, s}, element::index, targets_below(8)));
  });
  put("mean of", [&](model& m) {
    const dimension a{"a", 4}, b{"b", 8};
    return mean_of(w(m, "x", {a, b}), m.weight("y", {a, b}, {2.5, 0.2}));  // counts are above zero
  });
  put("swiglu", [&](model& m) { return swiglu(w(m, "x", {{"a", 4}, {"b", 8}}), w(m, "y", {{"a", 4}, {"b", 8}})); });
  put("weighted square", [&](model& m) {
    return weighted_square(w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}}), w(m, "y", {{"c", 8}}), 0.4);
  });
  put("causal square", [&](model& m) { return causal_square(w(m, "x", {{"b", 4}, {"q", 4}, {"k", 8}})); });
  put("elementary", [&](model& m) { return elementary(w(m, "x", {{"a", 4}, {"b", 8}}), w(m, "y", {{"b", 8}})); });
  put("softmin", [&](model& m) {
    const tensor x = w(m, "x", {{"a", 4}, {"b", 4}, {"c", 8}}), min = row_min(x);
    return softmin(x, min, row_sum(x, min));
  });
  return all;
}

// Running.

mesh_shape mesh_of(const std::vector<int>& sizes) {
  static constexpr const char* names[] = {"x", "y", "z", "w"};
  mesh_shape m;
  for (int s : sizes) m.axes.push({name(names[m.rank()]), s});
  return m;
}

struct outcome {
  std::vector<double> loss;                           // by rank
  std::vector<std::vector<double>> after{}, slope{};  // per weight: after one step, and its gradient
  std::vector<collective_count> sent;                 // by rank
};

constexpr double beta1 = 0.5;  // the first moment after one step is half the gradient

graph with_training(const graph& forward) {
  training o;
  o.rate = 0.01;
  o.beta1 = beta1;
  return differentiate(forward, o);
}

std::vector<int> weights_of(const graph& g) {
  std::vector<int> ids;
  for (int v = 0; v < g.value_count(); ++v)
    if (g[v].role == value_role::weight && g[v].producer < 0) ids.push_back(v);
  return ids;
}

outcome run(backend& on, const program& p, const graph& g) {
  outcome out;
  out.loss.resize(static_cast<std::size_t>(on.mesh().devices()));
  out.sent.resize(out.loss.size());
  const std::vector<int> ids = weights_of(g);
  std::vector<int> moments;
  for (int v : ids) {
    const std::string moment = std::string(g[v].label.view()) + ".exp_avg";
    moments.push_back(g.find(moment));
    out.after.emplace_back(static_cast<std::size_t>(elements(g[v].shape)));
    out.slope.emplace_back(static_cast<std::size_t>(elements(g[v].shape)));
  }
  on.run([&](rank& r) {
    const auto me = static_cast<std::size_t>(r.number());
    r.reset_counted();
    const auto e = r.load(p, g, 17);
    e->step(1, 1);
    out.loss[me] = e->loss();
    out.sent[me] = counted(r);
    for (std::size_t w = 0; w < ids.size(); ++w) {
      e->collect(ids[w], std::span(out.after[w]));
      if (moments[w] >= 0) e->collect(moments[w], std::span(out.slope[w]));
    }
  });
  for (auto& s : out.slope)
    for (double& x : s) x /= 1 - beta1;
  return out;
}

double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0, scale = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    scale = std::max(scale, std::abs(a[i]));
    largest = std::max(largest, std::isnan(a[i] - b[i]) ? 1e30 : std::abs(a[i] - b[i]));
  }
  return largest / scale;
}

// Every assignment an operation admits: each axis splits no factor or one, or, where that is linear, nothing
// but sums.
std::vector<assignment> admitted(const operation& o, const mesh_shape& mesh) {
  std::vector<assignment> all{{}}, kept;
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    std::vector<assignment> more;
    for (assignment a : all)
      for (int f = o.op->linear == linearity::all ? assignment::partial : assignment::none; f < o.r.factors.size();
           ++f) {
        a.factor[axis] = static_cast<signed char>(f);
        more.push_back(a);
      }
    all = more;
  }
  for (const assignment& a : all)
    if (admissible(o.r, o.op->linear, o.sizes, a, mesh)) kept.push_back(a);
  return kept;
}

std::string words(const operation& o, const assignment& a, const mesh_shape& mesh) {
  std::string s(o.op->label);
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    const int f = a.factor[axis];
    s += " " + std::string(mesh.axes[axis].label.view()) + ":";
    s += f >= 0 ? std::string(o.r.factors[f].label.view()) : f == assignment::partial ? "partial" : "-";
  }
  return s;
}

// The assignment of one forward operation, and by the names of the factors that of its gradient; weights and
// what is added for them rest replicated, or as the operation needs them.
sharding around(const graph& g, int forward, const assignment& a, const mesh_shape& mesh, bool by_need) {
  sharding s = sharding::replicated(g);
  s.assigned[static_cast<std::size_t>(forward)] = a;
  const rule& r = g.at(forward).r;
  for (int i = 0; i < g.size(); ++i) {
    const operation& o = g.at(i);
    assignment& mine = s.assigned[static_cast<std::size_t>(i)];
    for (int axis = 0; axis < mesh.rank(); ++axis) {
      const int f = a.factor[axis];
      if (o.origin == forward && f >= 0) mine.factor[axis] = static_cast<signed char>(o.r.find(r.factors[f].label));
      const int k = g.at(forward).operands.find(o.hub);
      if (by_need && o.hub >= 0 && k >= 0 && f >= 0)
        mine.factor[axis] = static_cast<signed char>(r.operands[k].dim_of(f));
    }
  }
  return s;
}

program lowered(const graph& g, const mesh_shape& mesh, const sharding& s) {
  program p = lower(g, mesh, s, all_operations(g), sizeof(double));
  plan_memory(p);
  return p;
}

void compare(backend& on, const graph& g, const sharding& s, const outcome& alone) {
  const program p = lowered(g, on.mesh(), s);
  const outcome together = run(on, p, g);
  const collective_count said = count_collectives(p, g);
  for (std::size_t rank = 0; rank < together.loss.size(); ++rank) {
    CHECK(std::abs(together.loss[rank] - alone.loss[0]) <= 1e-10 * std::abs(alone.loss[0]));
    CHECK(together.sent[rank] == said);
  }
  for (std::size_t w = 0; w < alone.after.size(); ++w) {
    INFO("weight " << w);
    CHECK(apart(alone.after[w], together.after[w]) <= 1e-10);
    CHECK(apart(alone.slope[w], together.slope[w]) <= 1e-10);
  }
}

void check_splits(const std::vector<int>& sizes, int every = 1) {
  const mesh_shape mesh = mesh_of(sizes);
  const auto one = threads(mesh_of({1}), number::float64, all_kernels()),
             all = threads(mesh, number::float64, all_kernels());
  int count = 0;
  for (const example& x : examples()) {
    const graph g = with_training(x.forward);
    const outcome alone = run(*one, lowered(g, mesh_of({1}), sharding::replicated(g)), g);
    REQUIRE(std::isfinite(alone.loss[0]));
    for (int i = 0; i < x.forward.size(); ++i)
      for (const assignment& a : admitted(g.at(i), mesh))
        for (const bool by_need : {false, true}) {
          if (count++ % (stride * every) != 0) continue;
          INFO(x.label << ": " << words(g.at(i), a, mesh)
                       << (by_need ? ", weights as needed" : ", weights replicated"));
          compare(*all, g, around(g, i, a, mesh, by_need), alone);
        }
    // All operations at once, each its own way.
    std::mt19937 random(3);
    for (int n = 0; n < 10; ++n) {
      if (count++ % (stride * every) != 0) continue;
      INFO(x.label << ": random assignments, case " << n);
      sharding s = sharding::replicated(g);
      for (int i = 0; i < g.size(); ++i) {
        const auto choices = admitted(g.at(i), mesh);
        s.assigned[static_cast<std::size_t>(i)] = choices[random() % choices.size()];
      }
      compare(*all, g, s, alone);
    }
  }
}

}  // namespace

TEST_CASE("gradients of every operator equal central differences") {
  auto kernels = std::make_shared<host::kernels<double>>();
  for (const own_kernel& k : all_kernels()) kernels->add(k);
  const auto one = threads(mesh_of({1}), number::float64, all_kernels());
  rank_pool single(1);
  for (const example& x : examples()) {
    const graph g = with_training(x.forward);
    const outcome alone = run(*one, lowered(g, mesh_of({1}), sharding::replicated(g)), g);
    const program p = lowered(x.forward, mesh_of({1}), sharding::replicated(x.forward));
    const std::vector<int> ids = weights_of(g);
    int updates = 0;
    for (const operation& o : g.operations) updates += o.when == phase::update;
    INFO(x.label);
    CHECK(updates == static_cast<int>(ids.size()));
    for (std::size_t w = 0; w < ids.size(); ++w) {
      INFO("weight " << g[ids[w]].label.view());
      std::vector<double> difference(alone.slope[w].size());
      single.run([&](rank_context& rank) {
        open_engine<double> e(p, x.forward, rank, 17, kernels);
        double* at = nullptr;
        for (std::size_t b = 0; b < p.buffers.size(); ++b)
          if (p.buffers[b].value == ids[w]) at = e.at(static_cast<int>(b));
        for (std::size_t i = 0; at && i < difference.size(); ++i) {
          const double kept = at[i], h = 1e-5;
          at[i] = kept + h;
          e->step(1, 1);
          const double up = e->loss();
          at[i] = kept - h;
          e->step(1, 1);
          difference[i] = (up - e->loss()) / (2 * h);
          at[i] = kept;
        }
      });
      CHECK(*std::max_element(difference.begin(), difference.end()) > 0);
      CHECK(apart(difference, alone.slope[w]) <= 1e-7);
    }
  }
}

TEST_CASE("every operator under every split equals one rank") {
  SECTION("two ranks") { check_splits({2}); }
  SECTION("four ranks on one axis") { check_splits({4}); }
  SECTION("four ranks on two axes") { check_splits({2, 2}); }
  SECTION("eight ranks on three axes") { check_splits({2, 2, 2}, 5); }  // of ten thousands of ways every fifth
}

TEST_CASE("contractions in any order of dimensions equal their definition") {
  std::mt19937 random(5);
  for (int n = 0; n < 2000; ++n) {
    if (n % stride != 0) continue;
    std::string in0, in1, out;
    std::vector<long> sizes;
    const int factors = static_cast<int>(random() % 6);
    for (int f = 0; f < factors; ++f) {
      const char label = static_cast<char>('a' + f);
      const auto kind = random() % 4;  // row, column, sum, batch
      sizes.push_back(1 + static_cast<long>(random() % 4));
      if (kind != 1) in0 += label;
      if (kind != 0) in1 += label;
      if (kind != 2) out += label;
    }
    const auto spaced = [&](std::string s) {
      std::shuffle(s.begin(), s.end(), random);
      std::string t;
      for (char c : s) t += (t.empty() ? "" : " ") + std::string(1, c);
      return t;
    };
    const std::string text = spaced(in0) + ", " + spaced(in1) + " -> " + spaced(out);
    INFO(text);
    operation o;
    o.r = parse(text);
    for (const factor& f : o.r.factors) o.sizes.push(sizes[static_cast<std::size_t>(f.label.view()[0] - 'a')]);
    graph g;
    o.operands = {{g.add(value{}), g.add(value{})}, 2};
    o.results.push(g.add(value{}));
    g.add(o);
    program p;
    p.mesh = mesh_of({1});
    p.buffers.resize(3);
    instruction i;
    i.op = 0;
    for (const int b : {0, 1}) i.in.push(b);
    i.out.push(2);
    call c = bind_call(p, g, i, 0);
    const auto count = [&](const pattern& t) {
      long k = 1;
      for (signed char f : t.factors) k *= o.sizes[f];
      return static_cast<std::size_t>(k);
    };
    std::vector<double> x(count(o.r.operands[0])), y(count(o.r.operands[1])), z(count(o.r.results[0]), 99),
        expected(z.size());
    for (double& e : x) e = static_cast<double>(random() % 19) - 9;
    for (double& e : y) e = static_cast<double>(random() % 19) - 9;
    c.operand[0].data = x.data();
    c.operand[1].data = y.data();
    c.result[0].data = z.data();
    long all = 1;
    for (long s : o.sizes) all *= s;
    for (long k = 0; k < all; ++k) {
      long rest = k, at[3] = {};
      for (int f = 0; f < c.factors; ++f) {
        const long q = rest % c.size[f];
        rest /= c.size[f];
        at[0] += q * c.operand[0].stride[f];
        at[1] += q * c.operand[1].stride[f];
        at[2] += q * c.result[0].stride[f];
      }
      expected[static_cast<std::size_t>(at[2])] +=
          x[static_cast<std::size_t>(at[0])] * y[static_cast<std::size_t>(at[1])];
    }
    host::run_product<double>(c);
    CHECK(z == expected);  // whole numbers: exact
  }
}

TEST_CASE("an operator without a kernel is named with what to do about it") {
  host::kernels<double> k;
  const char* sentence =
      "operator 'swiglu' is not in the catalogue: give the session .kernels = cfp::kernels_of<swiglu_t>()";
  CHECK_THROWS_WITH(k.find(info<swiglu_t>), sentence);
  CHECK_THROWS_WITH((k.find(info<slope<swiglu_t, 1>>)), sentence);
  k.add<swiglu_t>();
  CHECK(k.find(info<swiglu_t>) != nullptr);
  CHECK(k.find((info<slope<swiglu_t, 1>>)) != nullptr);
}

TEST_CASE("what cannot be differentiated or computed is refused when the model is made") {
  model net;
  const tensor x = operand_tensor(net, "x", {{"a", 4}, {"k", 4}}), y = operand_tensor(net, "y", {{"b", 4}});
  net.recorded.loss = weigh(row_max(x), constant_like(net, y, "c")).id;
  CHECK_THROWS_WITH(differentiate(refine(net.recorded)), Catch::Contains("has no gradient of its own"));
  CHECK_THROWS_WITH((op<"a k, b -> a b">{}(x, y)),
                    Catch::Contains("'k' is summed over by a product and must stand in both operands"));
}

}  // namespace operators_tests
