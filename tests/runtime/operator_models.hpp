// Operators as models: one each (or the few that belong together), its operands weights, ending in a loss. Those of the
// catalogue, and operators of a user's own.
#pragma once

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/families/in_pieces.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/model/name_hash.hpp>
#include <cfp/model/random_words.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/op/all.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace operator_models {

using namespace cfp;

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

/// Numbers of documents, of indices; the operand before them says how many there are.
inline constexpr struct numbered_t : op<"..., ... -> ...", numbered_t> {
  static constexpr int index_operand = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T, long number) {
    return static_cast<T>(static_cast<double>(number));
  }
} numbered;
inline constexpr struct weighted_rows_t : op<"b h q k, b q -> b h q k", weighted_rows_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T weight) {
    return x * weight;
  }
} weighted_rows;

inline constexpr auto reshape = op<"b (h d) s -> h b s d">{};
inline constexpr auto sum_rows = op<"a b c -> b c">{};

inline own_kernels all_kernels() {
  return kernels_of<weigh_t, swiglu_t, weighted_square_t, causal_square_t, elementary_t, row_min_t, row_sum_t,
                    softmin_dot_t, softmin_input_t, softmin_t, numbered_t, weighted_rows_t,
                    std::remove_const_t<decltype(reshape)>, std::remove_const_t<decltype(sum_rows)>>();
}

// The graphs: one operator each (or the few that belong together), its operands weights, ending in a loss.

inline tensor w(model& net, const char* label, std::initializer_list<dimension> dims) {
  return net.weight(label, dims, {0.3, 0.8});
}
inline tensor index_tensor(model& net, std::initializer_list<dimension> dims, long bound) {
  return net.input("index", dims, element::index, {0, 0, bound});
}
inline tensor constant_like(model& net, tensor y, const std::string& label) {
  const auto e = [&](int d) { return dimension{name(std::string("~") + static_cast<char>('p' + d)), net.size(y, d)}; };
  const filling f{0.1, 1.0};
  switch (net.recorded[y.id].rank()) {
    case 0: return net.input(label, {}, element::real, f);
    case 1: return net.input(label, {e(0)}, element::real, f);
    case 2: return net.input(label, {e(0), e(1)}, element::real, f);
    case 3: return net.input(label, {e(0), e(1), e(2)}, element::real, f);
    case 4: return net.input(label, {e(0), e(1), e(2), e(3)}, element::real, f);
    default: return net.input(label, {e(0), e(1), e(2), e(3), e(4)}, element::real, f);
  }
}

/// Sizes of dimensions: as written, or drawn by a seed, one for each name.
class sizes {
 public:
  sizes() = default;
  explicit sizes(std::uint64_t seed) : seed_(seed) {}

  /// `written`, or a random multiple of `times`.
  long of(const char* label, long written, long times = 1) const {
    static constexpr long drawn[] = {1, 2, 2, 3, 4, 4, 4, 5, 6, 8};
    return seed_ == 0 ? written : times * drawn[random_words(seed_, name_hash(label), 0).v[0] % std::size(drawn)];
  }
  dimension operator()(const char* label, long written, long times = 1) const {
    return {label, of(label, written, times)};
  }

 private:
  std::uint64_t seed_ = 0;  // 0: as written
};

struct example {
  std::string label;
  std::function<graph(const sizes&)> forward;
};

// A maximum nobody calls a statistic.
inline constexpr struct row_max_t : op<"rows k -> rows; max k", row_max_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} row_max;

template <class Build>
graph made(const Build& build, const sizes& d) {
  model net;
  const auto built = build(net, d);
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
  return refine(net.recorded);
}

inline std::vector<example> examples() {
  std::vector<example> all;
  const auto put = [&](const char* label, auto build) {
    all.push_back({label, [build](const sizes& d) { return made(build, d); }});
  };
  put("linear", [](model& m, const sizes& d) {
    return linear(w(m, "x", {d("b", 4), d("s", 4), d("i", 8)}), w(m, "w", {d("i", 8), d("o", 4)}));
  });
  put("linear of rows", [](model& m, const sizes& d) {
    return linear(w(m, "x", {d("b", 8), d("i", 4)}), w(m, "w", {d("i", 4), d("o", 8)}));
  });
  put("linear of a vector", [](model& m, const sizes& d) {
    return linear(w(m, "x", {d("i", 8)}), w(m, "w", {d("i", 8), d("o", 4)}));
  });
  put("dense", [](model& m, const sizes& d) {
    return dense(w(m, "x", {d("b", 4), d("m", 8)}), w(m, "w", {d("v", 4), d("m", 8)}));
  });
  put("einsum", [](model& m, const sizes& d) {
    return op<"e s i, e i o -> s e o">{}(w(m, "x", {d("e", 4), d("s", 4), d("i", 8)}),
                                         w(m, "w", {d("e", 4), d("i", 8), d("o", 4)}));
  });
  put("einsum, transposed", [](model& m, const sizes& d) {
    return op<"a k b, c k -> c b a">{}(w(m, "x", {d("a", 4), d("k", 4), d("b", 4)}), w(m, "w", {d("c", 8), d("k", 4)}));
  });
  put("einsum, outer product",
      [](model& m, const sizes& d) { return op<"a, b -> b a">{}(w(m, "x", {d("a", 4)}), w(m, "w", {d("b", 8)})); });
  put("einsum, to a number", [](model& m, const sizes& d) {
    return op<"a b, b a -> ">{}(w(m, "x", {d("a", 4), d("b", 8)}), w(m, "w", {d("b", 8), d("a", 4)}));
  });
  put("scores", [](model& m, const sizes& d) {
    return scores(w(m, "q", {d("b", 4), d("h", 4), d("q", 4), d("d", 4)}),
                  w(m, "k", {d("b", 4), d("h", 4), d("k", 8), d("d", 4)}));
  });
  put("weighted sum", [](model& m, const sizes& d) {
    return weighted_sum(w(m, "p", {d("b", 4), d("h", 4), d("q", 4), d("k", 8)}),
                        w(m, "v", {d("b", 4), d("h", 4), d("k", 8), d("d", 4)}));
  });
  put("copy", [](model& m, const sizes& d) { return copy(w(m, "x", {d("a", 4), d("b", 8)})); });
  put("rearrange", [](model& m, const sizes& d) {
    return reshape(w(m, "x", {d("b", 4), d("c", 16, 4), d("s", 4)}), size_of{"h", 4});
  });
  put("rearrange, summing", [](model& m, const sizes& d) {
    return sum_rows(w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}));
  });
  put("heads of one group", [](model& m, const sizes& d) {
    return merge_groups(
        gelu(split_groups(w(m, "x", {d("b", 4), d("s", 4), d("m", 16, 4)}), size_of{"heads", 4}, size_of{"group", 1})));
  });
  put("merge heads", [](model& m, const sizes& d) {
    return merge_heads(w(m, "x", {d("b", 4), d("h", 4), d("s", 4), d("d", 4)}));
  });
  put("split qkv", [](model& m, const sizes& d) {
    return split_qkv(w(m, "x", {d("b", 4), d("s", 4), d("m", 48, 12)}), size_of{"three", 3}, size_of{"heads", 4});
  });
  put("split qkv, values unread", [](model& m, const sizes& d) {
    const auto parts =
        split_qkv(w(m, "x", {d("b", 4), d("s", 4), d("m", 48, 12)}), size_of{"three", 3}, size_of{"heads", 4});
    return std::array{parts[0], parts[1]};
  });
  put("add", [](model& m, const sizes& d) {
    return add(w(m, "x", {d("a", 4), d("b", 8)}), w(m, "y", {d("a", 4), d("b", 8)}));
  });
  put("add to itself", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("a", 4), d("b", 8)});
    return add(x, x);
  });
  put("add an input", [](model& m, const sizes& d) {
    return add(w(m, "x", {d("a", 4), d("b", 8)}), m.input("given", {d("a", 4), d("b", 8)}, element::real, {0.2, 1.0}));
  });
  put("bias", [](model& m, const sizes& d) {
    return bias(w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), w(m, "y", {d("c", 8)}));
  });
  put("add rows", [](model& m, const sizes& d) {
    return add_rows(w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), w(m, "y", {d("b", 4), d("c", 8)}));
  });
  put("mul", [](model& m, const sizes& d) {
    return mul(w(m, "x", {d("a", 4), d("b", 8)}), w(m, "y", {d("a", 4), d("b", 8)}));
  });
  put("mul with itself", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("a", 4), d("b", 8)});
    return mul(x, x);
  });
  put("a tensor used twice", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("a", 4), d("b", 8)});
    return mul(gelu(x), linear(x, w(m, "w", {d("b", 8), {"~c", d.of("b", 8)}})));
  });
  put("gelu", [](model& m, const sizes& d) { return gelu(w(m, "x", {d("a", 4), d("b", 4), d("c", 4)})); });
  put("lookup", [](model& m, const sizes& d) {
    return lookup(w(m, "t", {d("v", 8), d("m", 4)}), index_tensor(m, {d("a", 4), d("b", 4)}, d.of("v", 8)));
  });
  put("layer norm", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), sum = norm_sum(x),
                 square = norm_square(x, sum, 1.0 / 8);
    return layer_norm(x, sum, square, w(m, "w", {d("c", 8)}), w(m, "s", {d("c", 8)}), 1.0 / 8, 1e-5);
  });
  put("causal softmax", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("b", 4), d("h", 4), d("q", 8), d("k", 8)}), max = masked_max(x, 0.7, cfp::causal);
    return masked_softmax(x, max, masked_sum(x, max, 0.7, cfp::causal), 0.7, cfp::causal);
  });
  put("attention softmax, all keys", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("b", 4), d("h", 2), d("g", 2), d("q", 4), d("k", 8)}),
                 max = masked_max(x, 0.7, everywhere);
    return merge_groups(masked_softmax(x, max, masked_sum(x, max, 0.7, everywhere), 0.7, everywhere));
  });
  put("softmax", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), max = logits_max(x);
    return softmax(x, max, logits_sum(x, max));
  });
  put("rms norm", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("a", 4), d("b", 4), d("c", 8)});
    return rms_norm(x, rms_square(x), w(m, "w", {d("c", 8)}), 1.0 / 8, 1e-5);
  });
  put("gated silu", [](model& m, const sizes& d) {
    return gated_silu(w(m, "x", {d("a", 4), d("b", 8)}), w(m, "y", {d("a", 4), d("b", 8)}));
  });
  put("relu", [](model& m, const sizes& d) { return relu(w(m, "x", {d("a", 4), d("b", 4), d("c", 4)})); });
  put("scaled", [](model& m, const sizes& d) { return scaled(w(m, "x", {d("a", 4), d("b", 8)}), 0.3); });
  put("dropout", [](model& m, const sizes& d) { return dropout(w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), 0.3); });
  put("rotary", [](model& m, const sizes& d) {
    return rotary(w(m, "x", {d("b", 4), d("h", 4), d("s", 4), d("d", 8, 2)}), 3.0, 1.0 / 4, size_of{"half", 2},
                  size_of{"out", 2});
  });
  put("slowed rotary", [](model& m, const sizes& d) {
    return slowed_rotary(w(m, "x", {d("b", 4), d("h", 4), d("s", 4), d("d", 8, 2)}), 3.0, 1.0 / 4, 0.3, 1.2, -0.4, 0.1,
                         size_of{"half", 2}, size_of{"out", 2});
  });
  put("grouped scores", [](model& m, const sizes& d) {
    const tensor q = split_groups(w(m, "q", {d("b", 4), d("s", 4), {"m", 8 * d.of("d", 4)}}), size_of{"heads", 4},
                                  size_of{"group", 2});
    const tensor score =
        grouped_scores(q, split_heads(w(m, "k", {d("b", 4), d("s", 4), {"n", 4 * d.of("d", 4)}}), size_of{"heads", 4}));
    return merge_groups(grouped_sum(score, w(m, "v", {d("b", 4), {"h", 4}, {"k", d.of("s", 4)}, d("d", 4)})));
  });
  put("scores of shared keys", [](model& m, const sizes& d) {
    return shared_scores(w(m, "q", {d("b", 4), d("h", 4), d("q", 4), d("d", 8)}),
                         w(m, "k", {d("b", 4), d("k", 4), d("d", 8)}));
  });
  put("add positions", [](model& m, const sizes& d) {
    return add_positions(w(m, "x", {d("b", 4), d("h", 4), d("q", 4), d("k", 4)}),
                         w(m, "t", {d("q", 4), d("k", 4), d("h", 4)}));
  });
  put("expert dense", [](model& m, const sizes& d) {
    return expert_dense(w(m, "x", {d("e", 4), d("g", 4), d("i", 8)}), w(m, "w", {d("e", 4), d("o", 8), d("i", 8)}));
  });
  put("dispatch to experts and back", [](model& m, const sizes& d) {
    const tensor logits = w(m, "gate", {d("g", 4), d("s", 4), d("e", 4, 2)}), max = logits_max(logits);
    const tensor gate = softmax(logits, max, logits_sum(logits, max)), place = queue_places(gate, 2);
    const tensor sent = to_experts(dispatch(place, size_of{"capacity", d.of("capacity", 2)}),
                                   w(m, "x", {d("g", 4), d("s", 4), d("m", 8)}));
    const tensor back =
        from_experts(combine(gate, place, chosen_sum(gate, place), size_of{"capacity", d.of("capacity", 2)}), sent);
    return std::array{
        back, gate_mass(gate)};  // alone, shares of what was chosen leave gates of the others a gradient of zero
  });
  put("experts of some sets, and gates as they are", [](model& m, const sizes& d) {
    const tensor gate = logistic(w(m, "gate", {d("g", 4), d("s", 4), d("e", 8, 8)})),
                 max = set_max(gate, size_of{"sets", 4});
    const tensor sets = queue_places(add(max, set_second(gate, max)), 2);
    const tensor place = queue_places(of_chosen_sets(gate, sets), 2);
    const size_of capacity{"capacity", d.of("capacity", 2)};
    const tensor sent = to_experts(dispatch(place, capacity), w(m, "x", {d("g", 4), d("s", 4), d("m", 8)}));
    return std::array{from_experts(combine_gates(gate, place, capacity), sent), gate_mass(gate)};
  });
  put("imbalance of experts", [](model& m, const sizes& d) {
    const tensor gate = w(m, "gate", {d("g", 4), d("s", 4), d("e", 4, 2)});
    const tensor mass = gate_mass(gate);
    return scaled(imbalance(first_choices(queue_places(gate, 2)), mass), 0.1);
  });
  put("cross entropy", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("b", 4), d("s", 4), d("v", 8)}), max = logits_max(x);
    return cross_entropy(x, index_tensor(m, {d("b", 4), d("s", 4)}, d.of("v", 8)), max, logits_sum(x, max), 1.0 / 16);
  });
  put("cross entropy with ignored targets", [](model& m, const sizes& d) {
    const dimension b = d("b", 4), s = d("s", 4), v = d("v", 8);
    return mean_cross_entropy(w(m, "x", {b, s, v}), m.input("index", {b, s}, element::index, targets_below(v.size)));
  });
  put("mean of", [](model& m, const sizes& d) {
    const dimension a = d("a", 4), b = d("b", 8);
    return mean_of(w(m, "x", {a, b}), m.weight("y", {a, b}, {2.5, 0.2}));  // counts are above zero
  });
  put("gelu exact", [](model& m, const sizes& d) { return gelu_exact(w(m, "x", {d("a", 4), d("b", 4), d("c", 4)})); });
  put("gated gelu", [](model& m, const sizes& d) {
    return gated_gelu(w(m, "x", {d("a", 4), d("b", 8)}), w(m, "y", {d("a", 4), d("b", 8)}));
  });
  put("soft cap", [](model& m, const sizes& d) { return soft_cap(w(m, "x", {d("a", 4), d("b", 8)}), 1.5); });
  put("clamped", [](model& m, const sizes& d) { return clamped(w(m, "x", {d("a", 4), d("b", 8)}), 0.4); });
  put("logistic", [](model& m, const sizes& d) { return logistic(w(m, "x", {d("a", 4), d("b", 8)})); });
  put("gated rows", [](model& m, const sizes& d) {
    return gated_rows(w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), w(m, "g", {d("a", 4), d("b", 4), {"gate", 1}}));
  });
  put("patches of images and a first row", [](model& m, const sizes& d) {
    const dimension b = d("b", 4), c{"c", 2}, r{"r", 2}, k{"k", 2}, out = d("out", 4);
    const tensor x = patch_dense(w(m, "x", {b, d("s", 4), c, r, k}), w(m, "w", {out, c, r, k}));
    const tensor y = first_replaced(x, w(m, "first", {out}));
    return std::array{gelu(y), first_row(gelu(y))};
  });
  put("plus one", [](model& m, const sizes& d) { return plus_one(w(m, "x", {d("a", 4), d("b", 8)})); });
  put("layer norm without a bias", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), sum = norm_sum(x),
                 square = norm_square(x, sum, 1.0 / 8);
    return layer_norm_unbiased(x, sum, square, w(m, "w", {d("c", 8)}), 1.0 / 8, 1e-5);
  });
  put("split qkv by head", [](model& m, const sizes& d) {
    return split_qkv_by_head(w(m, "x", {d("b", 4), d("s", 4), d("m", 48, 12)}), size_of{"heads", 4},
                             size_of{"three", 3});
  });
  put("rotary of a part", [](model& m, const sizes& d) {
    return rotary(w(m, "x", {d("b", 4), d("h", 4), d("s", 4), d("d", 16, 4)}), 3.0, 1.0 / 4, size_of{"half", 4},
                  size_of{"out", 4});
  });
  put("rotary pairs", [](model& m, const sizes& d) {
    return rotary_pairs(w(m, "x", {d("b", 4), d("h", 4), d("s", 4), d("d", 8, 2)}), 3.0, 1.0 / 3, 0.3, 1.2, -0.4, 0.1,
                        3.0, size_of{"half", 2}, size_of{"out", 2});
  });
  put("slopes", [](model& m, const sizes& d) {
    return add_slopes(w(m, "x", {d("b", 4), d("h", 6), d("q", 4), d("k", 8)}), 4.0, 1.5);
  });
  put("softmax of a window", [](model& m, const sizes& d) {
    const long length = d.of("q", 8);  // every query sees a key: itself
    const tensor x = windowed(w(m, "x", {d("b", 4), d("h", 4), {"q", length}, {"k", length}}), 3.0),
                 max = masked_max(x, 0.7, cfp::causal);
    return masked_softmax(x, max, masked_sum(x, max, 0.7, cfp::causal), 0.7, cfp::causal);
  });
  put("softmax in documents", [](model& m, const sizes& d) {
    const long length = d.of("q", 8);
    const dimension b = d("b", 4), s{"~s", length};
    const tensor y = w(m, "y", {b, s}), of = numbered(y, m.input("index", {b, s}, element::index, {0, 0, 3}));
    const tensor x = same_document(w(m, "x", {b, d("h", 4), {"q", length}, {"k", length}}), of, of),
                 max = masked_max(x, 0.7, cfp::causal), sum = masked_sum(x, max, 0.7, cfp::causal);
    return weighted_rows(masked_softmax(x, max, sum, 0.7, cfp::causal), y);
  });
  const auto pieces = [](model& m, const sizes& d, const char* label) {
    return w(m, label, {d("b", 2), d("h", 2), d("p", 4), d("s", 2), d("d", 3)});
  };
  put("pieces of neighbours", [pieces](model& m, const sizes& d) {
    const tensor x = pieces(m, d, "x");
    return std::array{from_before(x),        from_behind(x), from_before_around(x),
                      from_behind_around(x), left_of(x),     right_of(x)};
  });
  put("sums of other pieces", [pieces](model& m, const sizes& d) {
    const tensor x = pieces(m, d, "x");
    return std::array{summed_before(x), summed_behind(x)};
  });
  put("states between pieces", [pieces](model& m, const sizes& d) {
    const tensor x = pieces(m, d, "x"), kept = w(m, "kept", {d("b", 2), d("h", 2), d("p", 4), d("s", 2)});
    return std::array{state_before(x, kept), state_behind(x, kept)};
  });
  put("attention of rounds", [](model& m, const sizes& d) {
    const dimension b = d("b", 2), h = d("h", 2), depth = d("d", 4);
    const auto piece = [&](const char* label) {
      return in_pieces(w(m, label, {b, h, {"s", 2 * d.of("p", 4)}, depth}), size_of{"pieces", d.of("p", 4)});
    };
    const tensor q = piece("q"), k = piece("k"), v = piece("v");
    return std::array{of_pieces(families::attention_in_pieces(q, k, v, {.scale = 0.5, .window = 3.0, .cap = 2.0})),
                      of_pieces(families::linear_attention(q, k, v))};
  });
  put("swiglu", [](model& m, const sizes& d) {
    return swiglu(w(m, "x", {d("a", 4), d("b", 8)}), w(m, "y", {d("a", 4), d("b", 8)}));
  });
  put("weighted square", [](model& m, const sizes& d) {
    return weighted_square(w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), w(m, "y", {d("c", 8)}), 0.4);
  });
  put("causal square", [](model& m, const sizes& d) {
    return causal_square(w(m, "x", {d("b", 4), d("q", 4), d("k", 8)}));
  });
  put("elementary", [](model& m, const sizes& d) {
    return elementary(w(m, "x", {d("a", 4), d("b", 8)}), w(m, "y", {d("b", 8)}));
  });
  put("softmin", [](model& m, const sizes& d) {
    const tensor x = w(m, "x", {d("a", 4), d("b", 4), d("c", 8)}), min = row_min(x);
    return softmin(x, min, row_sum(x, min));
  });
  return all;
}

}  // namespace operator_models
