// Random models, for properties that hold of every model.
#pragma once

#include <cfp/families/gpt.hpp>

#include <random>
#include <string>
#include <vector>

namespace random_models {

using namespace cfp;

/// Of sizes that are planned only (grouped: split into heads and groups of heads between, either may be one alone); or
/// so tiny and uneven that a step takes a moment, and then of more kinds of layers.
enum class random_sizes { planned, grouped, tiny };

class random_layers {
 public:
  random_layers(std::mt19937& random, random_sizes of)
      : random_(random), tiny_(of == random_sizes::tiny), grouped_(of == random_sizes::grouped) {}

  /// A chain of products, activations, norms and residuals (and attention, dropout, tables added), ending in a loss.
  graph run() {
    batch_ = {"batch", tiny_ ? uneven() : 8l << pick(4)};
    sequence_ = {"sequence", tiny_ ? uneven() : 64l << pick(4)};
    const dimension vocabulary{"vocabulary", tiny_ ? 2 * uneven() : 1024};
    const dimension first{"width0", size()};
    const tensor table = net_.weight("table", {vocabulary, first}, {});
    live_.push_back({lookup(table, indices("tokens", vocabulary.size)), first});
    for (long n = 2 + pick(5); n > 0; --n) {
      const auto [x, width] =
          live_[live_.size() - 1 - static_cast<std::size_t>(pick(std::min(2l, static_cast<long>(live_.size()))))];
      live_.push_back(next(grouped_ ? in_groups(x) : x, width, pick(tiny_ ? 10 : 5)));
    }
    const auto [x, width] = live_.back();
    // The table once more, where it fits.
    const bool tied = tiny_ && width.label == first.label && pick(2) == 0;
    const tensor logits = tied ? dense(x, table) : linear(x, net_.weight("head", {width, vocabulary}, {}));
    net_.recorded.loss = mean_cross_entropy(logits, indices("targets", vocabulary.size)).id;
    return net_.recorded;
  }

 private:
  using part = std::pair<tensor, dimension>;

  long pick(long n) { return static_cast<long>(random_() % static_cast<unsigned long>(n)); }
  long uneven() {
    static constexpr long drawn[] = {1, 2, 2, 3, 4, 4, 4, 6, 8};
    return drawn[pick(9)];
  }
  long size() { return tiny_ ? uneven() : 64l << pick(6); }
  tensor indices(const char* label, long bound) { return families::indices(net_, label, {batch_, sequence_}, bound); }
  std::string named(const char* what) { return what + std::to_string(named_++); }
  dimension fresh(const char* what, long of) { return {name(what + std::to_string(named_ + 1)), of}; }
  tensor product(tensor x, const dimension& from, const dimension& to) {
    if (!(from.label == to.label)) return linear(x, net_.weight(named("w"), {from, to}, {}));
    return net_.renamed(linear(x, net_.weight(named("w"), {from, {"back", to.size}}, {})), "back", to.label.view());
  }

  // Split into heads and groups of heads and merged again, as attention does.
  tensor in_groups(tensor x) {
    const long heads = 1l << pick(3), groups = 1l << pick(2);
    return merge_groups(gelu(split_groups(x, size_of{"heads", heads}, size_of{"group", groups})));
  }

  part next(tensor x, const dimension& width, long kind) {
    switch (kind) {
      case 0: {
        const dimension to = fresh("width", size());
        return {product(x, width, to), to};
      }
      case 1: return {gelu(x), width};
      case 2: return {add(x, product(gelu(x), width, width)), width};
      case 3: {
        const dimension to = fresh("hidden", size());
        const tensor gate = product(x, width, to), up = product(x, width, to);
        return {gated_silu(gate, up), to};
      }
      case 4: return {rms_norm(x, rms_square(x), net_.weight(named("norm"), {width}, {}), 0.01, 1e-5), width};
      case 5: {
        const tensor sum = norm_sum(x), square = norm_square(x, sum, 0.25);
        const tensor weight = net_.weight(named("norm"), {width}, {}), shift = net_.weight(named("b"), {width}, {});
        return {layer_norm(x, sum, square, weight, shift, 0.25, 1e-2), width};
      }
      case 6: return {relu(bias(x, net_.weight(named("b"), {width}, {}))), width};
      case 7: return {add_rows(dropout(x, 0.2), net_.weight(named("rows"), {sequence_, width}, {})), width};
      case 8: return {mul(x, scaled(product(x, width, width), 0.5)), width};
      default: return attention(x, width);
    }
  }

  part attention(tensor x, const dimension& width) {
    const long heads = uneven(), each = uneven();
    const dimension qkv = fresh("qkv", 3 * heads * each), out = fresh("joined", heads * each);
    const auto [q, k, v] = split_qkv(product(x, width, qkv), size_of{"three", 3}, size_of{"heads", heads});
    const tensor score = scores(q, k);
    const double reach = pick(2) == 0 ? causal : everywhere;
    const tensor max = masked_max(score, 0.5, reach);
    const tensor y =
        merge_heads(weighted_sum(masked_softmax(score, max, masked_sum(score, max, 0.5, reach), 0.5, reach), v));
    return {add(x, product(y, out, width)), width};
  }

  std::mt19937& random_;
  const bool tiny_, grouped_;
  model net_;
  dimension batch_{"batch", 1}, sequence_{"sequence", 1};
  std::vector<part> live_;
  int named_ = 0;
};

}  // namespace random_models

using random_models::random_sizes;

inline cfp::graph random_graph(std::mt19937& random, random_sizes of = random_sizes::planned) {
  return random_models::random_layers(random, of).run();
}
