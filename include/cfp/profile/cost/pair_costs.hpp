// What a step takes to bring tensors from one decision to another: by conversions, or by computing them once more.
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/block/known_partitions.hpp>
#include <cfp/profile/cost/known_tables.hpp>
#include <cfp/program/conversion_program.hpp>
#include <cfp/program/lower.hpp>
#include <cfp/program/target.hpp>
#include <cfp/solve/cost_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Tables of the edges of cost graphs; what derives from it says what programs and single steps take.
class pair_costs {
 public:
  /// Conversions that are known, of this mesh and these prices, must outlive this; without any they are found here.
  pair_costs(const graph& g, const mesh_shape& mesh, const decision_graph& d, const target& on,
             known_conversions* conversions = nullptr)
      : g_(g), mesh_(mesh), d_(d), target_(on), real_bytes_(on.real_bytes), reads_(reads_of(g)),
        plan_(sharding::replicated(g)), own_conversions_(on.prices),
        conversions_(conversions != nullptr ? *conversions : own_conversions_), partitions_(g) {}
  virtual ~pair_costs() = default;
  /// What programs are lowered for.
  const target& lowered_for() const { return target_; }

 protected:
  /// Milliseconds, one for each way to price.
  using figures = std::vector<double>;

  /// Ways to price.
  virtual std::size_t ways() const { return 1; }
  /// What a part's program takes under a choice, its memory planned.
  virtual figures program_times(const decision& n, std::size_t choice, const sharding& plan, const program& p) = 0;
  /// What one step of a conversion takes.
  virtual figures step_times(int v, const partition& from, const conversion_step& s) = 0;

  bool asking_ = true;  ///< or a bound will do for what is not known

  void put(std::string& out, const assignment& a) const {
    for (int axis = 0; axis < mesh_.rank(); ++axis) out += static_cast<char>('a' + a.factor[axis] + 2);
    if (a.regather) out += '!';
    if (a.recompute) out += '~';
    if (a.on_host) out += '^';
    if (a.weight_on_host) out += '_';
  }
  const conversion& conversion_of(int v, const partition& from, const partition& to) {
    return conversions_(g_[v].shape, g_[v].width(real_bytes_), mesh_, from, to, sent_as(g_, v));
  }

  // Before tables are made anew.
  void forget_pairs() {
    pairs_.clear();
    remade_pairs_.clear();
    chains_.clear();
  }

  // How often a step brings a tensor from one decision to another: weights, and what updates read, once.
  int times(const decision_edge& e) const {
    const value& v = g_[e.value];
    const bool once = v.role == value_role::weight || v.role == value_role::accumulator ||
                      (v.producer >= 0 && g_.at(v.producer).when == phase::update);
    return once ? 1 : g_.passes;
  }

  // What a step takes to bring a tensor from one decision's choice to another's.
  figures pair_times(const decision_edge& e, std::size_t i, std::size_t j) {
    const decision& a = d_.nodes[static_cast<std::size_t>(e.from)];
    const decision& b = d_.nodes[static_cast<std::size_t>(e.to)];
    figures ms(ways(), std::numeric_limits<double>::infinity());
    if (e.remade >= 0) {
      ms = b.keeps_inputs(j) ? figures(ways(), 0.0) : remade_times(e, i, j);
    } else if (b.kind ==
               decision::forms_of_tensor) {  // each form made from what is there; the second may use the first
      const partition from = held_after(g_, a, i, e.value);
      const auto& forms = b.forms[j];
      ms = conversion_times(e.value, from, forms[0]);
      if (forms.size() > 1) {
        const figures direct = conversion_times(e.value, from, forms[1]),
                      by_first = conversion_times(e.value, forms[0], forms[1]);
        for (std::size_t w = 0; w < ms.size(); ++w) ms[w] += std::min(direct[w], by_first[w]);
      }
    } else if (a.kind == decision::forms_of_tensor) {  // a form, or a local piece of one
      const partition to = needed_by(g_, b, j, e.value);
      for (const partition& p : a.forms[i]) {
        const conversion& c = conversion_of(e.value, p, to);
        if (!c.possible || c.collectives() > 0) continue;
        const figures local = conversion_times(e.value, p, to);
        for (std::size_t w = 0; w < ms.size(); ++w) ms[w] = std::min(ms[w], local[w]);
      }
    } else {
      ms = conversion_times(e.value, held_after(g_, a, i, e.value), needed_by(g_, b, j, e.value));
    }
    for (double& x : ms) x *= times(e);
    return ms;
  }

  // What it takes to compute a tensor once more and bring it to its reader.
  figures remade_times(const decision_edge& e, std::size_t i, std::size_t j) {
    const decision& a = d_.nodes[static_cast<std::size_t>(e.from)];
    const decision& b = d_.nodes[static_cast<std::size_t>(e.to)];
    const std::vector<int>& chain = d_.remade[static_cast<std::size_t>(e.remade)].chain;
    figures ms = conversion_times(e.value, held_after(g_, a, i, e.value), needed_by(g_, b, j, e.value));
    if (chain.empty()) return ms;
    const std::size_t choice = i % a.kept_all();
    figures& known = chains_[{a.assigned.id(), detail::place_in(a.operations, chain.back()), choice}];
    if (known.empty() || !asking_) known = chain_times(a, choice, chain);
    for (std::size_t w = 0; w < ms.size(); ++w) ms[w] += known[w];
    return ms;
  }
  // Of a pass, of some forward operations of a part.
  figures chain_times(const decision& a, std::size_t choice, const std::vector<int>& chain) {
    for (std::size_t o = 0; o < a.operations.size(); ++o)
      plan_.assigned[static_cast<std::size_t>(a.operations[o])] = a.assigned[choice][o];
    program p = lower(g_, mesh_, plan_, chain, real_bytes_, false, {}, &conversions_);
    target_.complete(p, g_, reads_);
    decision again = a;
    again.label += ", again";
    again.operations = chain;
    figures ms = program_times(again, choice, plan_, p);
    for (double& x : ms) x /= g_.passes;
    for (const int o : a.operations) plan_.assigned[static_cast<std::size_t>(o)] = {};
    return ms;
  }

  figures conversion_times(int v, const partition& from, const partition& to) {
    const conversion& c = conversion_of(v, from, to);
    if (!c.possible) return figures(ways(), std::numeric_limits<double>::infinity());
    figures ms(ways(), 0.0);
    partition p = from;
    for (const conversion_step& s : c.steps) {
      const figures step = step_times(v, p, s);
      for (std::size_t w = 0; w < ms.size(); ++w) ms[w] += step[w];
      p = after(p, s);
    }
    return ms;
  }

  // Tables of an edge. They follow from the partitions of both ends and what the tensor is: layers have them in common.
  const std::vector<shared_table>& edge(const decision_edge& e) {
    if (e.remade >= 0) return remade_edge(e);
    const value& v = g_[e.value];
    const decision& a = d_.nodes[static_cast<std::size_t>(e.from)];
    const decision& b = d_.nodes[static_cast<std::size_t>(e.to)];
    const int from = partitions_.after(a, e.value), to = partitions_.before(b, e.value);
    const bool from_forms = a.kind == decision::forms_of_tensor, to_forms = b.kind == decision::forms_of_tensor;
    const long type = static_cast<long>(v.type), role = static_cast<long>(v.role),
               of_role = v.of < 0 ? -1 : static_cast<long>(g_[v.of].role);
    std::vector<long> key{from, to, from_forms, to_forms, times(e), type, role, of_role};
    key.insert(key.end(), v.shape.begin(), v.shape.end());
    const auto [at, fresh] = pairs_.try_emplace(std::move(key));
    if (!fresh) return at->second;
    // Few distinct partitions stand behind many choices: price those, then fill the matrix.
    const detail::known_partitions::list &from_of = partitions_[from], &to_of = partitions_[to];
    std::vector<figures> known(from_of.distinct * to_of.distinct);
    std::vector<std::vector<double>> time(ways());
    for (std::size_t i = 0; i < a.choices(); ++i)
      for (std::size_t j = 0; j < b.choices(); ++j) {
        figures& ms = known[from_of.rank[i] * to_of.distinct + to_of.rank[j]];
        if (ms.empty()) ms = pair_times(e, i, j);
        for (std::size_t w = 0; w < time.size(); ++w) time[w].push_back(ms[w]);
      }
    for (std::vector<double>& t : time) at->second.push_back(tables_(std::move(t)));
    return at->second;
  }

  // The same of tensors that are computed again: parts that are alike have them in common.
  const std::vector<shared_table>& remade_edge(const decision_edge& e) {
    const decision& a = d_.nodes[static_cast<std::size_t>(e.from)];
    const decision& b = d_.nodes[static_cast<std::size_t>(e.to)];
    const remade_tensor& r = d_.remade[static_cast<std::size_t>(e.remade)];
    const std::vector<int>& first = r.chain.empty() ? r.unit : r.chain;
    std::vector<long> key{partitions_.before(b, e.value), partitions_.after(a, e.value), r.chain.empty()};
    for (const int o : first) key.push_back(static_cast<long>(detail::place_in(a.operations, o)));
    for (const void* const id : {a.assigned.id(), b.kept.id()}) key.push_back(reinterpret_cast<std::intptr_t>(id));
    const auto [at, fresh] = remade_pairs_.try_emplace(std::move(key));
    if (!fresh) return at->second;
    std::vector<std::vector<double>> time(ways());
    const detail::known_partitions::list& to_of = partitions_[partitions_.before(b, e.value)];
    for (std::size_t i = 0; i < a.choices(); ++i) {
      std::vector<figures> known(to_of.distinct);
      for (std::size_t j = 0; j < b.choices(); ++j) {
        figures& ms = known[to_of.rank[j]];
        if (ms.empty() && !b.keeps_inputs(j)) ms = pair_times(e, i, j);
        for (std::size_t w = 0; w < time.size(); ++w) time[w].push_back(b.keeps_inputs(j) ? 0 : ms[w]);
      }
    }
    for (std::vector<double>& t : time) at->second.push_back(tables_(std::move(t)));
    return at->second;
  }

  const graph& g_;
  const mesh_shape& mesh_;
  const decision_graph& d_;
  const target target_;
  const long real_bytes_;
  const std::vector<int> reads_;
  sharding plan_;  // all but the choice that is priced is replicated
  known_conversions own_conversions_;
  known_conversions& conversions_;
  detail::known_partitions partitions_;
  detail::known_tables tables_;

 private:
  std::map<std::vector<long>, std::vector<shared_table>> pairs_;                 // of edges of the last graph, and
  std::map<std::vector<long>, std::vector<shared_table>> remade_pairs_;          // of those of what is computed again
  std::map<std::tuple<const void*, std::size_t, std::size_t>, figures> chains_;  // milliseconds of a pass
};

}  // namespace cfp
