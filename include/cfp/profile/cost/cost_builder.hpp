// From decisions to a cost graph: every choice and every conversion gets a time, whoever says it (a profiler, a
// described machine).
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/profile/cost/known_conversions.hpp>
#include <cfp/profile/cost/program_memory.hpp>
#include <cfp/program/conversion_program.hpp>
#include <cfp/program/lower.hpp>
#include <cfp/program/target.hpp>
#include <cfp/solve/exact/exact.hpp>

#include <functional>

namespace cfp::inline v0_1 {

/// Builds cost graphs; what derives from it says what programs and conversions take.
class cost_builder {
 public:
  cost_builder(const graph& g, const mesh_shape& mesh, const decision_graph& d, const target& on)
      : g_(g), mesh_(mesh), d_(d), target_(on), real_bytes_(on.real_bytes) {}
  virtual ~cost_builder() = default;
  /// What programs are lowered for.
  const target& lowered_for() const { return target_; }

  /// The cost graph as far as times are known; lower bounds elsewhere, where the builder measures only what it is asked
  /// for.
  cost_graph costs() { return collect({}); }

  /// Has everything measured that a plan of the last graph uses; returns how many figures were not known. Unless none,
  /// the next question is for a plan of a new graph.
  long ask(const std::vector<int>& choices) {
    const bool before = std::exchange(asking_, true);
    const long unknown = unknown_;
    for (std::size_t n = 0; n < d_.nodes.size(); ++n)
      if (of_node_[n] != nullptr && !of_node_[n]->known[static_cast<std::size_t>(choices[n])])
        price(*of_node_[n], static_cast<std::size_t>(choices[n]));
    for (const decision_edge& e : d_.edges)
      pair_time(e, static_cast<std::size_t>(choices[static_cast<std::size_t>(e.from)]),
                static_cast<std::size_t>(choices[static_cast<std::size_t>(e.to)]));
    asking_ = before;
    if (unknown_ > unknown && measured_again()) unique_.clear();  // to be priced anew
    return unknown_ - unknown;
  }

  /// Milliseconds of a conversion.
  double conversion_time(int v, const partition& from, const partition& to) {
    const conversion& c = conversion_of(v, from, to);
    if (!c.possible) return std::numeric_limits<double>::infinity();
    double ms = 0;
    partition p = from;
    for (const conversion_step& s : c.steps) {
      ms += step_time(v, p, s);
      p = after(p, s);
    }
    return ms;
  }

 protected:
  struct priced {
    shared_table time;
    std::vector<std::int64_t> memory, transient;
    std::vector<bool> known;  ///< or a bound
    std::size_t node = 0;     ///< the first decision of these
  };

  /// Milliseconds of a part's program under a choice, its memory planned.
  virtual double program_time(const decision& n, std::size_t choice, const sharding& plan, const program& p) = 0;
  /// Milliseconds of one step of a conversion.
  virtual double step_time(int v, const partition& from, const conversion_step& s) = 0;
  /// Measures once more what may have been disturbed; false if there is nothing.
  virtual bool measured_again() { return false; }

  bool asking_ = true;         ///< or a bound will do for what is not known
  long unknown_ = 0;           ///< figures wanted that were not known
  bool bounds_moved_ = false;  ///< what is known by now bounds what is not otherwise than before

  void put(std::string& out, const assignment& a) const {
    for (int axis = 0; axis < mesh_.rank(); ++axis) out += static_cast<char>('a' + a.factor[axis] + 2);
    if (a.regather) out += '!';
  }
  const conversion& conversion_of(int v, const partition& from, const partition& to) {
    return conversions_(g_[v].shape, g_[v].width(real_bytes_), mesh_, from, to);
  }

  // What a decision computes under which choices: sums of equal gradients may have other choices in other places.
  std::string choices_of(const decision& n) const {
    std::string out = fingerprint(g_, n.operations);
    for (const auto& choice : n.assigned) {
      out += '|';
      for (const assignment& a : choice) put(out, a);
    }
    return out;
  }

  cost_graph collect(const std::function<void(const std::string& what)>& tell) {
    cost_graph out;
    of_node_.assign(d_.nodes.size(), nullptr);
    std::set<const priced*> bounded;
    const bool bounds_moved = std::exchange(bounds_moved_, false) && !asking_;
    key_of_.resize(d_.nodes.size());
    for (const decision& n : d_.nodes) {
      cost_node node;
      node.name = n.label;
      if (n.operations.empty()) {
        node.time.assign(n.choices(), 0.0);
        node.memory.assign(n.choices(), 0);
      } else {
        const auto index = static_cast<std::size_t>(&n - d_.nodes.data());
        if (key_of_[index].empty()) key_of_[index] = choices_of(n);
        auto [at, fresh] = unique_.try_emplace(key_of_[index]);
        of_node_[index] = &at->second;
        if (fresh) {
          at->second.node = index;
          at->second.time.assign(n.choices(), 0.0);
          at->second.memory.resize(n.choices());
          at->second.transient.resize(n.choices());
          at->second.known.resize(n.choices());
          for (std::size_t c = 0; c < n.choices(); ++c) {
            if (tell) tell(n.label + " [" + n.names[c] + "]");
            price(at->second, c);
          }
        }
        if (!fresh && bounds_moved && bounded.insert(&at->second).second)
          for (std::size_t c = 0; c < n.choices(); ++c)
            if (!at->second.known[c]) price(at->second, c);
        node.time = at->second.time;
        node.memory = at->second.memory;
        node.transient = at->second.transient;
      }
      out.nodes.push_back(std::move(node));
    }
    for (const decision_edge& e : d_.edges) out.edges.push_back(edge(e));
    return out;
  }

  void price(priced& into, std::size_t c) {
    const decision& n = d_.nodes[into.node];
    sharding plan = sharding::replicated(g_);
    for (std::size_t i = 0; i < n.operations.size(); ++i)
      plan.assigned[static_cast<std::size_t>(n.operations[i])] = n.assigned[c][i];
    std::vector<delivery> wanted;
    if (n.kind == decision::rest_of_weight)
      wanted.push_back({n.index, held_after(g_, n, c, n.index), n.operations.front()});
    program p = lower(g_, mesh_, plan, n.operations, real_bytes_, false, wanted);
    target_.complete(p, g_);
    const long unknown = unknown_;
    into.time.set(c, program_time(n, c, plan, p));
    into.known[c] = asking_ || unknown_ == unknown;
    const program_memory memory = memory_of(p, g_);
    into.memory[c] = memory.kept;
    into.transient[c] = memory.transient;
  }

  // How often a step brings a tensor from one decision to another: weights, and what updates read, once.
  int times(const decision_edge& e) const {
    const value& v = g_[e.value];
    const bool once = v.role == value_role::weight || v.role == value_role::accumulator ||
                      (v.producer >= 0 && g_.at(v.producer).when == phase::update);
    return once ? 1 : g_.passes;
  }

  // Milliseconds a step takes to bring a tensor from one decision's choice to another's.
  double pair_time(const decision_edge& e, std::size_t i, std::size_t j) {
    const decision& a = d_.nodes[static_cast<std::size_t>(e.from)];
    const decision& b = d_.nodes[static_cast<std::size_t>(e.to)];
    double ms = std::numeric_limits<double>::infinity();
    if (b.kind == decision::forms_of_tensor) {  // each form made from what is there; the second may use the first
      const partition from = held_after(g_, a, i, e.value);
      const auto& forms = b.forms[j];
      ms = conversion_time(e.value, from, forms[0]);
      if (forms.size() > 1)
        ms += std::min(conversion_time(e.value, from, forms[1]), conversion_time(e.value, forms[0], forms[1]));
    } else if (a.kind == decision::forms_of_tensor) {  // a form, or a local piece of one
      const partition to = needed_by(g_, b, j, e.value);
      for (const partition& p : a.forms[i]) {
        const conversion& c = conversion_of(e.value, p, to);
        if (c.possible && c.collectives() == 0) ms = std::min(ms, conversion_time(e.value, p, to));
      }
    } else {
      ms = conversion_time(e.value, held_after(g_, a, i, e.value), needed_by(g_, b, j, e.value));
    }
    return times(e) * ms;
  }

  cost_edge edge(const decision_edge& e) {
    const decision& a = d_.nodes[static_cast<std::size_t>(e.from)];
    const decision& b = d_.nodes[static_cast<std::size_t>(e.to)];
    cost_edge out;
    out.from = e.from;
    out.to = e.to;
    // Few distinct partitions stand behind many choices: price those, then fill the matrix.
    std::vector<partition> from, to;
    std::vector<std::size_t> from_of, to_of;
    const auto intern = [](std::vector<partition>& all, const partition& p) {
      const auto at = std::find(all.begin(), all.end(), p);
      if (at != all.end()) return static_cast<std::size_t>(at - all.begin());
      all.push_back(p);
      return all.size() - 1;
    };
    if (a.kind != decision::forms_of_tensor)
      for (std::size_t i = 0; i < a.choices(); ++i) from_of.push_back(intern(from, held_after(g_, a, i, e.value)));
    if (b.kind != decision::forms_of_tensor)
      for (std::size_t j = 0; j < b.choices(); ++j) to_of.push_back(intern(to, needed_by(g_, b, j, e.value)));
    std::map<std::pair<std::size_t, std::size_t>, double> memo;
    std::vector<double> time;
    for (std::size_t i = 0; i < a.choices(); ++i)
      for (std::size_t j = 0; j < b.choices(); ++j) {
        const std::size_t x = from_of.empty() ? i : from_of[i], y = to_of.empty() ? j : to_of[j];
        const auto [at, fresh] = memo.try_emplace({x, y}, 0.0);
        if (fresh) at->second = pair_time(e, i, j);
        time.push_back(at->second);
      }
    out.time = interned(std::move(time));
    return out;
  }

  // Layers have edges alike: their times are held once.
  shared_table interned(std::vector<double> time) {
    const std::string_view bytes(reinterpret_cast<const char*>(time.data()), time.size() * sizeof(double));
    std::vector<shared_table>& alike = tables_[std::hash<std::string_view>()(bytes)];
    for (const shared_table& t : alike)
      if (t.all() == time) return t;
    alike.emplace_back(std::move(time));
    return alike.back();
  }

  const graph& g_;
  const mesh_shape& mesh_;
  const decision_graph& d_;
  const target target_;
  const long real_bytes_;
  std::map<std::string, priced> unique_;
  detail::known_conversions conversions_;
  std::vector<std::string> key_of_;  // of a decision: what it computes under which choices
  std::vector<priced*> of_node_;
  std::unordered_map<std::size_t, std::vector<shared_table>> tables_;  // by hash
};

}  // namespace cfp
