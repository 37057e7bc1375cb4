// From decisions to a cost graph: every choice and every conversion gets a time, whoever says it (a profiler, a
// described machine). What is equal is priced once; where there are several ways to price it, by all of them at once.
#pragma once

#include <cfp/profile/cost/pair_costs.hpp>
#include <cfp/profile/cost/program_memory.hpp>
#include <cfp/solve/exact/exact.hpp>

#include <functional>

namespace cfp::inline v0_1 {

/// Builds cost graphs; what derives from it says what programs and conversions take.
class cost_builder : public pair_costs {
 public:
  using pair_costs::pair_costs;

  /// The cost graph as far as times are known; lower bounds elsewhere, where the builder measures only what it is asked
  /// for.
  cost_graph costs() { return std::move(collect({}).front()); }

 protected:
  struct priced {
    std::vector<shared_table> time;  ///< for each way to price
    std::vector<std::int64_t> memory, transient;
    std::vector<bool> known;  ///< or a bound
    std::size_t node = 0;     ///< the first decision of these
  };

  long unknown_ = 0;           ///< figures wanted that were not known
  bool bounds_moved_ = false;  ///< what is known by now bounds what is not otherwise than before

  // What a decision computes under which choices: sums of equal gradients may have other choices in other places.
  std::string choices_of(const decision& n) const {
    std::string out = fingerprint(g_, n.operations);
    for (std::size_t c = 0; c < n.assigned.size(); ++c) {
      out += n.keeps_inputs(c) ? '|' : '/';
      if (n.hosts_borders(c)) out += '^';
      for (const assignment& a : n.assigned[c]) put(out, a);
    }
    const auto index = static_cast<std::size_t>(&n - d_.nodes.data());
    return out + detail::text_of_readers(g_, n.operations, among(d_.remade, index)) + ';' +
           detail::text_of_readers(g_, n.operations, among(d_.borders, index));
  }

  // A cost graph for each way to price.
  std::vector<cost_graph> collect(const std::function<void(const std::string& what)>& tell) {
    std::vector<cost_graph> out(ways());
    of_node_.assign(d_.nodes.size(), nullptr);
    std::set<const priced*> bounded;
    const bool bounds_moved = std::exchange(bounds_moved_, false) && !asking_;
    for (std::size_t index = 0; index < d_.nodes.size(); ++index) {
      const decision& n = d_.nodes[index];
      if (!n.operations.empty()) {
        std::string& key = key_of_[n.assigned.id()];
        if (key.empty()) key = choices_of(n);
        auto [at, fresh] = unique_.try_emplace(key);
        of_node_[index] = &at->second;
        if (fresh) price_all(at->second, index, tell);
        if (!fresh && bounds_moved && bounded.insert(&at->second).second)
          for (std::size_t c = 0; c < n.choices(); ++c)
            if (!at->second.known[c]) price(at->second, c);
      }
      for (std::size_t w = 0; w < out.size(); ++w) out[w].nodes.push_back(node(index, w));
    }
    forget_pairs();
    for (const decision_edge& e : d_.edges) {
      const std::vector<shared_table>& time = edge(e);
      for (std::size_t w = 0; w < out.size(); ++w) out[w].edges.push_back({e.from, e.to, time[w]});
    }
    return out;
  }

  cost_node node(std::size_t index, std::size_t way) const {
    const decision& n = d_.nodes[index];
    if (of_node_[index] != nullptr)
      return {n.label, of_node_[index]->time[way], of_node_[index]->memory, of_node_[index]->transient};
    return {n.label, std::vector<double>(n.choices()), std::vector<std::int64_t>(n.choices()), {}};
  }

  void price_all(priced& into, std::size_t index, const std::function<void(const std::string& what)>& tell) {
    const decision& n = d_.nodes[index];
    const std::size_t choices = n.choices();
    into = {std::vector<shared_table>(ways(), std::vector<double>(choices)), std::vector<std::int64_t>(choices),
            std::vector<std::int64_t>(choices), std::vector<bool>(choices), index};
    for (std::size_t c = 0; c < choices; ++c) {
      if (tell) tell(n.label + " [" + n.names[c] + "]");
      price(into, c);
    }
  }

  void price(priced& into, std::size_t c) {
    const decision& n = d_.nodes[into.node];
    for (std::size_t i = 0; i < n.operations.size(); ++i)
      plan_.assigned[static_cast<std::size_t>(n.operations[i])] = n.assigned[c][i];
    std::vector<delivery> wanted;
    if (n.kind == decision::rest_of_weight)
      wanted.push_back({n.index, held_after(g_, n, c, n.index), n.operations.front()});
    add_made_again(n, c, into.node, wanted);
    const std::vector<int> borders = n.hosts_borders(c) ? among(d_.borders, into.node) : std::vector<int>();
    for (const int v : borders) plan_.assigned[static_cast<std::size_t>(g_[v].producer)].on_host = true;
    program p = lower(g_, mesh_, plan_, n.operations, real_bytes_, false, wanted, &conversions_);
    target_.complete(p, g_, reads_);
    const long unknown = unknown_;
    const figures ms = program_times(n, c, plan_, p);
    for (std::size_t w = 0; w < ms.size(); ++w) into.time[w].set(c, ms[w]);
    into.known[c] = asking_ || unknown_ == unknown;
    const program_memory memory =
        memory_of(p, g_, n.keeps_inputs(c) ? std::vector<int>() : among(d_.remade, into.node));
    into.memory[c] = memory.kept;
    into.transient[c] = memory.transient;
    for (const int o : n.operations) plan_.assigned[static_cast<std::size_t>(o)] = {};
    for (const int v : borders) plan_.assigned[static_cast<std::size_t>(g_[v].producer)] = {};
  }

  // Backward of a part that computes anew what another reads of it does that for the other.
  void add_made_again(const decision& n, std::size_t c, std::size_t node, std::vector<delivery>& wanted) {
    for (const remade_tensor& r : d_.remade) {
      if (r.from != static_cast<int>(node)) continue;
      const auto again = [&](int o) { return n.assigned[c][detail::place_in(n.operations, o)].recompute; };
      const auto back = [&](int o) { return g_.at(o).when != phase::forward; };
      if (std::none_of(r.unit.begin(), r.unit.end(), again)) continue;
      const auto first = std::find_if(n.operations.begin(), n.operations.end(), back);
      if (first == n.operations.end()) continue;
      for (const int o : r.chain) plan_.assigned[static_cast<std::size_t>(o)].recompute = true;
      wanted.push_back({r.value, held_after(g_, n, c, r.value), *first});
    }
  }

  // What a part reads of others, of some tensors.
  template <class Tensor>
  static std::vector<int> among(const std::vector<Tensor>& some, std::size_t node) {
    std::vector<int> out;
    for (const Tensor& x : some)
      if (x.to == static_cast<int>(node)) out.push_back(x.value);
    return out;
  }

  std::map<std::string, priced> unique_;
  std::map<const void*, std::string> key_of_;  // of the assignments alike decisions share: what is computed under them
  std::vector<priced*> of_node_;
};

}  // namespace cfp
