// One decision of a plan and its choices: how it leaves each tensor, and how it needs it.
#pragma once

#include <cfp/block/recomputation.hpp>
#include <cfp/block/strategy.hpp>
#include <cfp/core/explain.hpp>
#include <cfp/model/sharding.hpp>
#include <cfp/model/shared_list.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// One decision and its choices.
struct decision {
  enum kind_t : std::uint8_t {
    strategy_of_part,
    rest_of_weight,      ///< a weight several parts use: the partition it rests in (and is updated in)
    forms_of_tensor,     ///< the partitions a tensor with several readers is materialised in
    gradient_placement,  ///< the partition in which the gradient of a shared tensor is added up
    of_all_weights,      ///< what concerns all weights at once, the norm of all gradients: parts of its sum as long as
                         ///< possible
  } kind = strategy_of_part;
  std::string label;            ///< for people, no two of a kind alike
  std::string title;            ///< of what it decides; several may have one
  int index = 0;                ///< of the part, or the value
  std::vector<int> operations;  ///< that it assigns

  /// Alike decisions hold these in common: those of one `assigned.id()` are of operations that are equal one by one,
  /// and choose from the same.
  shared_list<std::vector<assignment>> assigned;  ///< [choice][operation]
  shared_list<strategy> strategies;               ///< [choice], of strategy_of_part
  shared_list<keeping> kept;                      ///< [choice], of strategy_of_part; none: all choices keep all
  shared_list<list<partition, 2>> forms;          ///< [choice], of forms_of_tensor
  shared_list<std::string> names;                 ///< [choice], for people

  std::size_t choices() const { return names.size(); }
  /// How far some leave weights and their state on the host; the last ones.
  keeping::resting_t furthest_rest() const { return kept.empty() ? keeping::on_device : kept[kept.size() - 1].rests; }
  /// How many choices keep all of forward; the first ones.
  std::size_t kept_all() const {
    const auto keeps_all = [](const keeping& k) { return k == keeping{}; };
    return kept.empty()
               ? choices()
               : static_cast<std::size_t>(std::partition_point(kept.begin(), kept.end(), keeps_all) - kept.begin());
  }
  /// Whether a choice keeps what it reads of other decisions until backward has read it.
  bool keeps_inputs(std::size_t choice) const { return kept.empty() || kept[choice].inputs; }
  /// Whether what it reads of other segments rests on the host meanwhile.
  bool hosts_borders(std::size_t choice) const { return !kept.empty() && kept[choice].border_on_host; }
};

/// A tensor that goes from one decision to another; or, if `remade` is one, does so once more for backward where the
/// reader does not keep it.
struct decision_edge {
  int from = 0, to = 0, value = 0;
  int remade = -1;
};

struct decision_graph {
  std::vector<decision> nodes;
  std::vector<decision_edge> edges;
  std::vector<remade_tensor> remade;   ///< their ends are nodes
  std::vector<border_tensor> borders;  ///< likewise
  std::vector<std::string> dropped;    ///< strategies left out before measurement, and why
  std::set<std::string> uneven;        ///< of those the splits that do not divide, a sentence each

  /// How far some choice leaves weights and their state on the host.
  keeping::resting_t furthest_rest() const {
    keeping::resting_t out = keeping::on_device;
    for (const decision& n : nodes) out = std::max(out, n.furthest_rest());
    return out;
  }
};

/// "replicated", "batch:data embedding:model", "partial:data"
inline std::string describe(const partition& p, const value& v, const mesh_shape& mesh) {
  return std::string(describe(p, v.dims, mesh).view());
}

/// The partition a decision leaves a tensor in.
inline partition held_after(const graph& g, const decision& d, std::size_t choice, int v) {
  for (std::size_t i = 0; i < d.operations.size(); ++i) {
    const operation& o = g.at(d.operations[i]);
    if (const int k = o.results.find(v); k >= 0) return result_partition(o.r, k, d.assigned[choice][i]);
    if (d.kind == decision::rest_of_weight) return operand_partition(o.r, 0, d.assigned[choice][i]);
  }
  return partition::replicated(g[v].rank());
}

/// The partition in which a decision first needs a tensor.
inline partition needed_by(const graph& g, const decision& d, std::size_t choice, int v) {
  for (std::size_t i = 0; i < d.operations.size(); ++i) {
    const operation& o = g.at(d.operations[i]);
    if (const int k = o.operands.find(v); k >= 0) return operand_partition(o.r, k, d.assigned[choice][i]);
  }
  return partition::replicated(g[v].rank());
}

namespace detail {

/// Where an operation stands among some, ascending.
inline std::size_t place_in(const std::vector<int>& operations, int o) {
  return static_cast<std::size_t>(std::lower_bound(operations.begin(), operations.end(), o) - operations.begin());
}

/// Where operations read some values: "2.0 5.1 ", the operation's place and the operand.
inline std::string text_of_readers(const graph& g, const std::vector<int>& operations, const std::vector<int>& values) {
  std::string out;
  for (const int v : values)
    for (std::size_t i = 0; i < operations.size(); ++i)
      if (const int k = g.at(operations[i]).operands.find(v); k >= 0)
        out.append(std::to_string(i)).append(1, '.').append(std::to_string(k)) += ' ';
  return out;
}

/// Between parts the reader says what is kept: of a tensor that it keeps the maker does not compute anything again, nor
/// has it brought from the host, and of one that it does not keep it computes what it needs for it. Across the borders
/// of segments it says what rests on the host.
inline void let_readers_keep(const graph& g, const decision_graph& d, const std::vector<int>& choices, sharding& out) {
  const auto computed_again = [&](int o) -> bool& { return out.assigned[static_cast<std::size_t>(o)].recompute; };
  const auto on_host = [&](int o) -> bool& { return out.assigned[static_cast<std::size_t>(o)].on_host; };
  std::vector<bool> kept;  // values
  for (const bool keeps : {true, false})
    for (const remade_tensor& r : d.remade) {
      const auto choice = static_cast<std::size_t>(choices[static_cast<std::size_t>(r.to)]);
      if (d.nodes[static_cast<std::size_t>(r.to)].keeps_inputs(choice) != keeps) continue;
      kept.resize(g.values.size());
      if (keeps) {
        for (const int o : r.unit) computed_again(o) = on_host(o) = false;
        kept[static_cast<std::size_t>(r.value)] = true;
        continue;
      }
      for (const int o : r.chain) {
        bool all = true;
        for (const int v : g.at(o).results) all = all && !kept[static_cast<std::size_t>(v)];
        computed_again(o) = computed_again(o) || all;
        on_host(o) = on_host(o) && !all;
      }
    }
  for (const border_tensor& b : d.borders) {
    const auto to = static_cast<std::size_t>(b.to);
    if (!d.nodes[to].hosts_borders(static_cast<std::size_t>(choices[to]))) continue;
    on_host(g[b.value].producer) = true;
    computed_again(g[b.value].producer) = false;
  }
}

}  // namespace detail

/// Writes choices into a sharding.
inline sharding shard(const graph& g, const decision_graph& d, const std::vector<int>& choices) {
  sharding out = sharding::replicated(g);
  for (std::size_t n = 0; n < d.nodes.size(); ++n) {
    const decision& node = d.nodes[n];
    const auto c = static_cast<std::size_t>(choices[n]);
    for (std::size_t i = 0; i < node.operations.size(); ++i)
      out.assigned[static_cast<std::size_t>(node.operations[i])] = node.assigned[c][i];
    if (node.kind == decision::forms_of_tensor) out.materialised[static_cast<std::size_t>(node.index)] = node.forms[c];
  }
  detail::let_readers_keep(g, d, choices, out);
  return out;
}

}  // namespace cfp
