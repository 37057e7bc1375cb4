// Decisions narrowed to some of their choices.
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/solve/cost_graph.hpp>
#include <cfp/solve/fewer_choices.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// The cost graph without the choices c of decisions n of which `dropped(n, c)` holds.
template <class Dropped>
cost_graph without(cost_graph costs, const Dropped& dropped) {
  for (std::size_t n = 0; n < costs.nodes.size(); ++n)
    for (std::size_t c = 0; c < costs.nodes[n].time.size(); ++c)
      if (dropped(n, c)) costs.nodes[n].time.set(c, std::numeric_limits<double>::infinity());
  return costs;
}

/// The cost graph with some decisions fixed (choice >= 0).
inline cost_graph fixed(cost_graph costs, const std::vector<int>& choices) {
  return without(std::move(costs), [&](std::size_t n, std::size_t c) {
    return n < choices.size() && choices[n] >= 0 && static_cast<int>(c) != choices[n];
  });
}

/// Decisions with only those of their choices that are left. Alike ones still are.
inline decision_graph narrowed(decision_graph d, const fewer_choices& some) {
  const decision_graph whole = d;  // held, so that nothing else is found in the place of its lists
  std::map<std::pair<const void*, const void*>, decision> made;
  for (std::size_t n = 0; n < d.nodes.size(); ++n) {
    decision& node = d.nodes[n];
    const std::vector<int>& left = some.left(n);
    const auto narrow = [&]<class T>(shared_list<T>& all) {
      std::vector<T> items;
      for (const int c : left)
        if (!all.empty()) items.push_back(all[static_cast<std::size_t>(c)]);
      all = std::move(items);
    };
    const auto [at, fresh] = made.try_emplace({node.names.id(), &left}, node);
    decision& x = at->second;
    if (fresh) narrow(x.assigned), narrow(x.strategies), narrow(x.kept), narrow(x.forms), narrow(x.names);
    node.assigned = x.assigned, node.strategies = x.strategies, node.kept = x.kept, node.forms = x.forms;
    node.names = x.names;
  }
  return d;
}

/// Of decisions that may compute again what they keep, the choices that are `left` where all is kept, whatever they
/// keep.
inline fewer_choices however_kept(const decision_graph& d, const fewer_choices& left) {
  std::vector<std::vector<char>> keep;
  for (std::size_t n = 0; n < d.nodes.size(); ++n) {
    keep.emplace_back(d.nodes[n].choices(), 0);
    for (const int c : left.left(n))
      for (std::size_t i = static_cast<std::size_t>(c); i < keep[n].size(); i += d.nodes[n].kept_all()) keep[n][i] = 1;
  }
  return fewer_choices(keep);
}

/// The first of a decision's choices that keep as little as they can of forward, but of what the part computes no less
/// than `least`; what it reads of others is not kept either, if nothing else is or `inputs` is false. Weights and
/// their state rest where said, or as near as they may.
inline std::size_t leanest(const decision& d, keeping::inside_t least, keeping::resting_t on_host = {},
                           bool inputs = true) {
  std::size_t best = 0;
  const keeping::resting_t there = std::min(on_host, d.furthest_rest());
  for (std::size_t c = 0; c < d.kept.size(); c += d.kept_all())
    if (const keeping k = d.kept[c]; k.inside <= least && (k.inputs || !inputs || least == keeping::nothing) &&
                                     !k.border_on_host && k.rests == there)
      best = c;
  return best;
}

/// The same choices, keeping so little; where contractions are kept also what parts read of one another, if it is cheap
/// to compute again: it is gathered once more then.
inline std::vector<int> recomputed_to(keeping::inside_t least, std::vector<int> choices, const decision_graph& d,
                                      keeping::resting_t on_host = {}) {
  std::vector<bool> keeps_inputs(d.nodes.size(), least != keeping::costly);
  for (const remade_tensor& r : d.remade)
    if (!r.cheap) keeps_inputs[static_cast<std::size_t>(r.to)] = true;
  for (std::size_t n = 0; n < d.nodes.size(); ++n)
    choices[n] = static_cast<int>(leanest(d.nodes[n], least, on_host, keeps_inputs[n])) +
                 choices[n] % static_cast<int>(d.nodes[n].kept_all());
  return choices;
}

inline std::vector<int> least_kept(std::vector<int> choices, const decision_graph& d, keeping::resting_t on_host = {}) {
  return recomputed_to(keeping::nothing, std::move(choices), d, on_host);
}

/// What people do where a plan does not fit, in this order: compute again what is cheap, then all, and use the host.
inline std::vector<std::pair<std::string, std::vector<int>>> leaner(const std::vector<int>& choices,
                                                                    const decision_graph& d) {
  std::vector<std::pair<std::string, std::vector<int>>> out;
  out.emplace_back("cheap recomputed", recomputed_to(keeping::costly, choices, d));
  for (const keeping::resting_t on_host : {keeping::on_device, keeping::state_on_host, keeping::weights_on_host}) {
    keeping how;
    how.rests = on_host;
    if (on_host <= d.furthest_rest())
      out.emplace_back("all recomputed" + describe(how), least_kept(choices, d, on_host));
  }
  return out;
}

/// The cost graph without what leaves something on the host; `may_state`: but the state of weights.
inline cost_graph only_on_device(cost_graph costs, const decision_graph& d, bool may_state) {
  return without(std::move(costs), [&](std::size_t n, std::size_t c) {
    if (d.nodes[n].kept.empty()) return false;
    const keeping k = d.nodes[n].kept[c];
    return k.activations_on_host() || (k.rests != keeping::on_device && !may_state);
  });
}

/// The cost graph without what keeps more than it must.
inline cost_graph only_recomputed(cost_graph costs, const decision_graph& d) {
  return without(std::move(costs), [&](std::size_t n, std::size_t c) {
    const std::size_t first = leanest(d.nodes[n], keeping::nothing);
    return c < first || c >= first + d.nodes[n].kept_all();
  });
}

/// What a search within a limit of memory is repeated for: all computed again, only the state of weights on the host,
/// and nothing there.
inline std::vector<std::function<cost_graph(const cost_graph&)>> with_less_choice(const decision_graph& d) {
  std::vector<std::function<cost_graph(const cost_graph&)>> out;
  out.emplace_back([&d](const cost_graph& costs) { return only_recomputed(costs, d); });
  for (const bool may_state : {true, false})
    if (d.furthest_rest() != keeping::on_device)
      out.emplace_back([&d, may_state](const cost_graph& costs) { return only_on_device(costs, d, may_state); });
  return out;
}

}  // namespace cfp
