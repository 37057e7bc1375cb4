// Fingerprints: what a group of operations computes, without names. Equal text means equal rules, sizes and wiring.
#pragma once

#include <cfp/block/parallel_blocks.hpp>

namespace cfp::inline v0_1 {

/// Rules, sizes, scalars and wiring of operations, tensors numbered as they first appear. The whole text is compared,
/// never a hash of it.
inline std::string fingerprint(const graph& g, const std::vector<int>& operations) {
  std::map<int, int> number;
  std::string out;
  const auto put = [&](auto x) {
    out += std::to_string(x);
    out += ' ';
  };
  const auto tensor = [&](int v, const pattern& p) {
    const auto [at, fresh] = number.try_emplace(v, static_cast<int>(number.size()));
    out += '%';
    put(at->second);
    if (fresh) {
      put(static_cast<int>(g[v].type));
      put(static_cast<int>(g[v].role));
      if (g[v].type == element::index) put(g[v].fill.bound);
    }
    for (signed char f : p.factors) put(static_cast<int>(f));
  };
  for (int o : operations) {
    const operation& op = g.at(o);
    out += op.op->label;
    out += template_arguments(*op.op);
    out += ' ';
    for (long s : op.sizes) put(s);
    for (double s : op.scalars) put(s);
    for (int k = 0; k < op.operands.size(); ++k) tensor(op.operands[k], op.r.operands[k]);
    out += "->";
    for (int k = 0; k < op.results.size(); ++k) tensor(op.results[k], op.r.results[k]);
    out += ';';
  }
  return out;
}

}  // namespace cfp
