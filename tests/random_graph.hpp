// Random models, for properties that hold of every model.
#pragma once

#include <cfp/families/decoder.hpp>

#include <random>
#include <string>
#include <vector>

namespace random_models {

using namespace cfp;

/// Of sizes that are planned only (grouped: split into heads and groups of heads between, either may be one alone); or
/// so tiny and uneven that a step takes a moment, and then of more kinds of layers (scarce: few can be split).
enum class random_sizes { planned, grouped, tiny, scarce };

/// A model in which one layer stands several times in a row.
struct repeated_layers {
  graph forward;
  std::vector<int> ends;  ///< of what comes before, and of every layer, in operations
};

class random_layers {
 public:
  random_layers(std::mt19937& random, random_sizes of)
      : random_(random), tiny_(of == random_sizes::tiny || of == random_sizes::scarce),
        scarce_(of == random_sizes::scarce), grouped_(of == random_sizes::grouped) {}

  /// A chain of products, activations, norms and residuals (and attention, dropout, tables added), ending in a loss.
  graph run() {
    begin();
    for (long n = 2 + pick(5); n > 0; --n) add_one();
    end();
    return net_.recorded;
  }

  /// The same with a random layer so many times, which may also read what is outside all of them: a weight, a tensor.
  repeated_layers run_repeated(int copies) {
    begin();
    repeated_layers out{{}, {net_.recorded.size()}};
    const part x = live_.back();
    const long outside = pick(4), operators = 1 + pick(scarce_ ? 2 : 4);
    const tensor weight =
        outside == 0 ? net_.weight("shared", {x.second, {"back", x.second.size}}, {}) : tensor{&net_, -1};
    const bool residual = pick(2) == 0;
    const std::mt19937 same = random_;
    const int named = named_;
    for (int c = 0; c < copies; ++c) {
      random_ = same, named_ = named, of_layer_ = "h." + std::to_string(c) + '.';
      live_.erase(live_.begin(), live_.end() - 1);
      const part before = live_.back();
      for (long n = operators; n > 0; --n) add_one();
      tensor y = product(live_.back().first, live_.back().second, x.second);
      if (residual) y = add(before.first, y);
      if (outside == 0) y = add(y, net_.renamed(linear(y, weight), "back", x.second.label.view()));
      if (outside == 1) y = add(y, x.first);
      live_.push_back({y, x.second});
      out.ends.push_back(net_.recorded.size());
    }
    of_layer_.clear();
    end();
    out.forward = net_.recorded;
    return out;
  }

 private:
  using part = std::pair<tensor, dimension>;

  void begin() {
    batch_ = {"batch", tiny_ ? uneven() : 8l << pick(4)};
    sequence_ = {"sequence", tiny_ ? uneven() : 64l << pick(4)};
    vocabulary_.size = tiny_ ? 2 * uneven() : 1024;
    first_.size = size();
    table_ = net_.weight("table", {vocabulary_, first_}, {});
    live_.push_back({lookup(table_, indices("tokens", vocabulary_.size)), first_});
  }
  void add_one() {
    const auto [x, width] =
        live_[live_.size() - 1 - static_cast<std::size_t>(pick(std::min(2l, static_cast<long>(live_.size()))))];
    live_.push_back(next(grouped_ ? in_groups(x) : x, width, pick(tiny_ ? 10 : 5)));
  }
  void end() {
    const auto [x, width] = live_.back();
    // The table once more, where it fits.
    const bool tied = tiny_ && width.label == first_.label && pick(2) == 0;
    const tensor logits = tied ? dense(x, table_) : linear(x, net_.weight("head", {width, vocabulary_}, {}));
    net_.recorded.loss = mean_cross_entropy(logits, indices("targets", vocabulary_.size)).id;
  }

  long pick(long n) { return static_cast<long>(random_() % static_cast<unsigned long>(n)); }
  long uneven() {
    static constexpr long drawn[] = {1, 2, 2, 3, 4, 4, 4, 6, 8}, few[] = {1, 1, 1, 3, 3, 3, 5, 7, 2};
    return (scarce_ ? few : drawn)[pick(9)];
  }
  long size() { return tiny_ ? uneven() : 64l << pick(6); }
  tensor indices(const char* label, long bound) { return families::indices(net_, label, {batch_, sequence_}, bound); }
  std::string named(const char* what) { return of_layer_ + what + std::to_string(named_++); }
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
  const bool tiny_, scarce_, grouped_;
  model net_;
  dimension batch_{"batch", 1}, sequence_{"sequence", 1}, vocabulary_{"vocabulary", 1}, first_{"width0", 1};
  tensor table_;
  std::vector<part> live_;
  int named_ = 0;
  std::string of_layer_;
};

}  // namespace random_models

using random_models::random_sizes, random_models::repeated_layers;

inline cfp::graph random_graph(std::mt19937& random, random_sizes of = random_sizes::planned) {
  return random_models::random_layers(random, of).run();
}

inline repeated_layers random_repeated_layers(std::mt19937& random, int copies, random_sizes of) {
  return random_models::random_layers(random, of).run_repeated(copies);
}

/// The same graph written in another order: all of it, or every stretch that ends there in an order of its own.
inline cfp::graph reordered(const cfp::graph& g, std::mt19937& random, const std::vector<int>& ends = {}) {
  cfp::graph out = g;
  out.operations.clear();
  std::vector<bool> done(g.operations.size());
  auto end = ends.begin();
  for (int n = 0; n < g.size(); ++n) {
    while (end != ends.end() && n >= *end) ++end;
    std::vector<int> ready;
    for (int i = 0; i < (end != ends.end() ? *end : g.size()); ++i) {
      bool can = !done[static_cast<std::size_t>(i)];
      for (int v : g.at(i).operands) can = can && (g[v].producer < 0 || done[static_cast<std::size_t>(g[v].producer)]);
      if (can) ready.push_back(i);
    }
    const int next = ready[random() % ready.size()];
    done[static_cast<std::size_t>(next)] = true;
    cfp::operation o = g.at(next);
    const int id = out.size();
    for (int r : o.results) out[r].producer = id;
    out.operations.push_back(o);
  }
  return out;
}
