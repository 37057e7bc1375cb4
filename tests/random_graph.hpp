// Random models, for properties that hold of every model.
#pragma once

#include <cfp/families/gpt.hpp>

#include <random>
#include <vector>

// Split into heads and groups of heads and merged again, as attention does; either may be one alone.
inline cfp::tensor random_heads(std::mt19937& random, cfp::tensor x) {
  using namespace cfp;
  const long heads = 1l << random() % 3, groups = 1l << random() % 2;
  return merge_groups(gelu(split_groups(x, size_of{"heads", heads}, size_of{"group", groups})));
}

// A chain of products, activations, norms and residuals, ending in a loss; with `heads` some are split into heads.
inline cfp::graph random_graph(std::mt19937& random, bool heads = false) {
  using namespace cfp;
  const auto pick = [&](long n) { return static_cast<long>(random() % static_cast<unsigned long>(n)); };
  const auto size = [&] { return 64l << pick(6); };
  model net;
  const dimension batch{"batch", 8l << pick(4)}, sequence{"sequence", 64l << pick(4)};
  std::vector<std::pair<tensor, dimension>> live;
  const dimension first{"width0", size()};
  live.push_back({cfp::lookup(net.weight("table", {{"vocabulary", 1024}, first}, {}),
                              families::indices(net, "tokens", {batch, sequence}, 1024)),
                  first});
  int named = 0;
  for (long n = 2 + pick(5); n > 0; --n) {
    const auto [from, width] =
        live[live.size() - 1 - static_cast<std::size_t>(pick(std::min(2l, static_cast<long>(live.size()))))];
    const tensor x = heads ? random_heads(random, from) : from;
    const auto product = [&](tensor y, dimension to) {
      return linear(y, net.weight("w" + std::to_string(named++), {width, to}, {}));
    };
    switch (pick(5)) {
      case 0: {
        const dimension to{name("width" + std::to_string(named + 1)), size()};
        live.push_back({product(x, to), to});
        break;
      }
      case 1: live.push_back({gelu(x), width}); break;
      case 2: live.push_back({add(x, product(gelu(x), width)), width}); break;
      case 3: {
        const dimension to{name("hidden" + std::to_string(named + 1)), size()};
        const tensor gate = product(x, to), up = product(x, to);
        live.push_back({gated_silu(gate, up), to});
        break;
      }
      default:
        live.push_back(
            {rms_norm(x, rms_square(x), net.weight("norm" + std::to_string(named++), {width}, {}), 0.01, 1e-5), width});
    }
  }
  const tensor logits = linear(live.back().first, net.weight("head", {live.back().second, {"vocabulary", 1024}}, {}));
  net.recorded.loss = families::gpt_loss(net, logits, families::indices(net, "targets", {batch, sequence}, 1024)).id;
  return net.recorded;
}
