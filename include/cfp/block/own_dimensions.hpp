// The dimensions a contraction brings into its block, and by which the block can be split.
#pragma once

#include <cfp/model/graph.hpp>

#include <map>
#include <vector>

namespace cfp::inline v0_1::detail {

// Own dimensions of an anchor: groups of result factors. Empty if the operation is no anchor.
inline std::vector<std::vector<int>> own_dimensions(const graph& g, int id) {
  const operation& o = g.at(id);
  const rule& r = o.r;
  if (o.when != phase::forward || r.results.empty() || r.operands.size() < 2) return {};
  bool contracts = false;
  int weight = -1;
  for (int i = 0; i < o.operands.size(); ++i)
    if (weight < 0 && g[o.operands[i]].role == value_role::weight) weight = i;
  for (int f = 0; f < r.factors.size(); ++f) {
    if (!r.is_reduction(f)) continue;
    int holders = r.factors[f].one_hot && weight >= 0;  // the index operand stands for the one-hot factor
    for (const pattern& p : r.operands) holders += p.dim_of(f) >= 0;
    contracts = contracts || (holders > 1 && (o.op->body == op_body::product || r.factors[f].one_hot));
  }
  if (!contracts) return {};
  std::map<int, std::vector<int>> groups;
  const pattern& result = r.results[0];
  for (int d = 0; d < result.factors.size(); ++d) {
    const int f = result.factors[d];
    bool everywhere = true;
    for (const pattern& p : r.operands) everywhere = everywhere && p.dim_of(f) >= 0;
    const bool own = weight >= 0 ? r.operands[weight].dim_of(f) >= 0 : !everywhere;
    if (own) groups[result.group[d]].push_back(f);
  }
  std::vector<std::vector<int>> out;
  for (auto& [group, factors] : groups) out.push_back(factors);
  return out;
}

}  // namespace cfp::detail
