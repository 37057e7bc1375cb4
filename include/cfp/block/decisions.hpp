// Everything a plan decides, as a graph: strategies of parts, and for tensors that several parts share where they rest,
// in which partitions they are materialised, and in which placement their gradients are added.
#pragma once

#include <cfp/block/decision.hpp>
#include <cfp/block/fingerprint.hpp>
#include <cfp/core/convert.hpp>

namespace cfp::inline v0_1 {

namespace detail {

class decision_builder {
 public:
  decision_builder(const graph& g, const block_structure& s, const mesh_shape& mesh, axis_choice::rest_t furthest,
                   const held_axis& held)
      : g_(g), s_(s), mesh_(mesh), furthest_(furthest), held_(held), owner_(g.operations.size(), -1) {}

  decision_graph run() {
    for (std::size_t p = 0; p < s_.parts.size(); ++p) add_part(static_cast<int>(p));
    readers_ = consumers(g_);
    std::map<int, std::vector<int>> sums, updates;
    std::vector<int> of_all;
    for (int i = 0; i < g_.size(); ++i)
      if (owner_[static_cast<std::size_t>(i)] < 0)
        (g_.at(i).hub < 0                 ? of_all
         : g_.at(i).when == phase::update ? updates[g_.at(i).hub]
                                          : sums[g_.at(i).hub])
            .push_back(i);
    if (!of_all.empty()) add_of_all(of_all);
    for (const auto& [v, ops] : updates) add_weight(v, ops);
    for (const auto& [v, ops] : sums) add_sum(v, ops);
    for (int v = 0; v < g_.value_count(); ++v) add_flow(v);
    tell_apart();
    return std::move(out_);
  }

 private:
  // Of several alike the second is "h.0.linear (2)".
  void tell_apart() {
    std::map<std::pair<int, std::string>, int> seen;
    for (decision& d : out_.nodes) {
      d.title = d.label;
      if (const int n = ++seen[{static_cast<int>(d.kind), d.label}]; n > 1) d.label += " (" + std::to_string(n) + ")";
    }
  }

  void own(const decision& d) {
    for (int o : d.operations) owner_[static_cast<std::size_t>(o)] = static_cast<int>(out_.nodes.size());
    out_.nodes.push_back(d);
  }

  void add_part(int index) {
    const part& p = s_.parts[static_cast<std::size_t>(index)];
    const strategy_space space(g_, p, mesh_, furthest_, held_.axis,
                               held_.axis < 0 ? axis_choice{} : held_.of_part[static_cast<std::size_t>(index)]);
    decision d;
    d.index = index;
    d.label = p.kind != part::body ? std::string(g_[g_.at(p.forward.back()).results[0]].label.view())
                                   : s_.blocks[static_cast<std::size_t>(p.block)].label;
    d.operations = p.operations;
    std::vector<assignment> all(g_.operations.size());
    for (const strategy& s : space.all) {
      space.assign(s, all);
      bool fits = true;
      std::vector<assignment> mine;
      for (int o : p.operations) {
        mine.push_back(all[static_cast<std::size_t>(o)]);
        fits = fits && admissible(g_.at(o).r, g_.at(o).op->linear, g_.at(o).sizes, mine.back(), mesh_);
      }
      if (!fits) continue;
      d.assigned.push_back(std::move(mine));
      d.names.push_back(space.text(s));
      d.strategies.push_back(s);
    }
    for (const std::string& reason : space.dropped) out_.dropped.push_back(d.label + ": " + reason);
    out_.uneven.insert(space.uneven.begin(), space.uneven.end());
    own(d);
  }

  // Distinct partitions in which parts need a tensor, partial ones apart.
  std::vector<partition> needs(int v, bool partial_too) const {
    std::vector<partition> found;
    for (int node : reading(v)) {
      const decision& d = out_.nodes[static_cast<std::size_t>(node)];
      for (std::size_t c = 0; c < d.choices(); ++c) add_distinct(found, needed_by(g_, d, c, v), partial_too);
    }
    return found;
  }
  static void add_distinct(std::vector<partition>& found, const partition& p, bool partial_too) {
    if ((partial_too || !p.is_partial()) && std::find(found.begin(), found.end(), p) == found.end()) found.push_back(p);
  }
  std::vector<int> reading(int v) const {
    std::set<int> nodes;
    for (int o : readers_[static_cast<std::size_t>(v)])
      if (const int n = owner_[static_cast<std::size_t>(o)]; n >= 0 && n != producer(v)) nodes.insert(n);
    return {nodes.begin(), nodes.end()};
  }
  int producer(int v) const {
    if (const auto at = resting_.find(v); at != resting_.end()) return at->second;
    return g_[v].producer < 0 ? -1 : owner_[static_cast<std::size_t>(g_[v].producer)];
  }

  // An elementwise operation under the partition of its operands.
  static assignment under(const operation& o, const partition& p) {
    assignment a;
    for (int axis = 0; axis < max_axes; ++axis) {
      if (p.partial[axis].owed) a.factor[axis] = assignment::partial;
      else if (const int d = p.dim_of(axis); d >= 0) a.factor[axis] = o.r.operands[0].factors[d];
    }
    return a;
  }

  void add_choices(decision& d, const std::vector<partition>& partitions) {
    for (const partition& p : partitions) {
      if (!divides(p, g_[d.index].shape, mesh_)) continue;
      std::vector<assignment> mine;
      for (int o : d.operations) mine.push_back(under(g_.at(o), p));
      d.assigned.push_back(std::move(mine));
      d.names.push_back(describe(p, g_[d.index], mesh_));
    }
  }

  void add_of_all(const std::vector<int>& operations) {
    decision d;
    d.kind = decision::of_all_weights;
    d.index = g_.at(operations.back()).results[0];
    d.label = std::string(g_[d.index].label.view());
    d.operations = operations;
    d.names.push_back("replicated");
    d.assigned.emplace_back();
    for (int o : operations) {
      assignment a;
      for (int axis = 0; axis < mesh_.rank(); ++axis)
        if (mesh_.size(axis) > 1 && g_.at(o).op->linear == linearity::all) a.factor[axis] = assignment::partial;
      d.assigned.back().push_back(a);
    }
    own(d);
  }

  void add_weight(int v, const std::vector<int>& operations) {
    decision d;
    d.kind = decision::rest_of_weight;
    d.index = v;
    d.label = std::string(g_[v].label.view());
    d.operations = operations;
    add_choices(d, needs(v, false));
    resting_[v] = static_cast<int>(out_.nodes.size());
    own(d);
  }

  void add_sum(int v, const std::vector<int>& operations) {
    decision d;
    d.kind = decision::gradient_placement;
    d.index = v;
    d.label = std::string(g_[v].label.view());
    d.label += ".grad";
    d.operations = operations;
    std::vector<partition> found = needs(v, false);
    for (int o : operations)
      for (int x : g_.at(o).operands)
        if (const int from = producer(x); from >= 0) {
          const decision& source = out_.nodes[static_cast<std::size_t>(from)];
          for (std::size_t c = 0; c < source.choices(); ++c) add_distinct(found, held_after(g_, source, c, x), true);
        }
    add_choices(d, found);
    own(d);
  }

  void add_flow(int v) {
    const value& x = g_[v];
    if (x.role == value_role::input || x.role == value_role::constant || x.role == value_role::state) return;
    const int from = producer(v);
    if (from < 0) return;
    const std::vector<int> to = reading(v);
    if (to.empty()) return;
    if (to.size() == 1) {
      out_.edges.push_back({from, to[0], v});
      return;
    }
    decision d;
    d.kind = decision::forms_of_tensor;
    d.index = v;
    d.label = std::string(x.label.view());
    const std::vector<partition> wanted = needs(v, true);
    for (std::size_t a = 0; a < wanted.size(); ++a) {
      add_form(d, {{wanted[a]}, 1});
      for (std::size_t b = a + 1; b < wanted.size(); ++b)
        if (!local(wanted[a], wanted[b], x) && !local(wanted[b], wanted[a], x))
          add_form(d, {{wanted[a], wanted[b]}, 2});
    }
    const int hub = static_cast<int>(out_.nodes.size());
    out_.nodes.push_back(d);
    out_.edges.push_back({from, hub, v});
    for (int n : to) out_.edges.push_back({hub, n, v});
  }

  bool local(const partition& a, const partition& b, const value& x) const {
    const conversion c = convert(a, b, x.shape, 4, mesh_);
    return c.possible && c.collectives() == 0;
  }
  void add_form(decision& d, const list<partition, 2>& forms) const {
    std::string label;
    for (const partition& p : forms) {
      if (!label.empty()) label += " and ";
      label += describe(p, g_[d.index], mesh_);
    }
    d.forms.push_back(forms);
    d.names.push_back(label);
  }

  const graph& g_;
  const block_structure& s_;
  const mesh_shape& mesh_;
  axis_choice::rest_t furthest_;
  const held_axis& held_;
  std::vector<int> owner_;
  std::vector<std::vector<int>> readers_;
  std::map<int, int> resting_;  // weight -> decision that holds it
  decision_graph out_;
};

}  // namespace detail

/// All decisions of a training graph on a mesh. Weights that are gathered again for backward save memory and never
/// time: such choices are there only where `furthest` says so. On an axis that is held there is no choice.
inline decision_graph decisions(const graph& g, const block_structure& s, const mesh_shape& mesh,
                                axis_choice::rest_t furthest = axis_choice::scattered, const held_axis& held = {}) {
  return detail::decision_builder(g, s, mesh, furthest, held).run();
}

}  // namespace cfp
