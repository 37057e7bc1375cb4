// Everything a plan decides, as a graph: strategies of parts, and for tensors that several parts share where they rest,
// in which partitions they are materialised, and in which placement their gradients are added.
#pragma once

#include <cfp/block/fingerprint.hpp>
#include <cfp/block/known_choices.hpp>
#include <cfp/block/known_partitions.hpp>
#include <cfp/block/less_kept.hpp>
#include <cfp/block/tensor_forms.hpp>

namespace cfp::inline v0_1 {

namespace detail {

class decision_builder {
 public:
  decision_builder(const graph& g, const block_structure& s, const mesh_shape& mesh, axis_choice::rest_t furthest,
                   const held_axis& held, const recomputation* again, keeping::resting_t on_host)
      : g_(g), s_(s), mesh_(mesh), furthest_(furthest), held_(held), again_(again), on_host_(on_host),
        owner_(g.operations.size(), -1), known_(g), partitions_(g) {}

  decision_graph run() {
    for (std::size_t p = 0; p < s_.parts.size(); ++p) add_part(static_cast<int>(p));
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
    if (again_ != nullptr) out_.remade = again_->remade;  // between parts, which are the first nodes in their order
    if (again_ != nullptr && on_host_ != keeping::on_device) out_.borders = again_->borders;
    for (const remade_tensor& r : out_.remade)
      out_.edges.push_back({r.from, r.to, r.value, static_cast<int>(&r - out_.remade.data())});
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

  void own(decision d) {
    for (int o : d.operations) owner_[static_cast<std::size_t>(o)] = static_cast<int>(out_.nodes.size());
    out_.nodes.push_back(std::move(d));
  }
  decision of_value(decision::kind_t kind, int v, const std::vector<int>& operations) const {
    decision d;
    d.kind = kind;
    d.index = v;
    d.label = std::string(g_[v].label.view());
    d.operations = operations;
    return d;
  }

  void add_part(int index) {
    const part& p = s_.parts[static_cast<std::size_t>(index)];
    const axis_choice held = held_.axis < 0 ? axis_choice{} : held_.of_part[static_cast<std::size_t>(index)];
    decision d;
    d.index = index;
    d.label = p.kind != part::body ? std::string(g_[g_.at(p.forward.back()).results[0]].label.view())
                                   : s_.blocks[static_cast<std::size_t>(p.block)].label;
    d.operations = p.operations;
    std::string key = known_.key(d);
    const auto put_number = [&](auto x) { key.append(std::to_string(x)) += ' '; };
    for (const int x : {held.split, held.target, static_cast<int>(held.rest)}) put_number(x);
    for (const std::vector<int>* some : {&p.forward, &p.anchors}) {
      for (const int o : *some) put_number(place_in(p.operations, o));
      key += ';';
    }
    const auto less = again_ == nullptr ? recomputed_parts() : again_->parts[static_cast<std::size_t>(index)];
    key += text_of_less(g_, p, less);
    for (const std::string& reason :
         known_.give(d, std::move(key), [&] { return with_less_kept(g_, p, strategies_of(p, held), less, on_host_); }))
      out_.dropped.push_back(d.label + ": " + reason);
    own(std::move(d));
  }

  choice_set strategies_of(const part& p, const axis_choice& held) {
    const strategy_space space(g_, p, mesh_, furthest_, held_.axis, held);
    choice_set out;
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
      out.assigned.push_back(std::move(mine));
      out.names.push_back(space.text(s));
      out.strategies.push_back(s);
    }
    out.dropped = space.dropped;
    out_.uneven.insert(space.uneven.begin(), space.uneven.end());
    return out;
  }

  // Distinct partitions in which parts need a tensor, partial ones apart.
  std::vector<partition> needs(int v, bool partial_too) {
    std::vector<partition> found;
    for (int node : reading(v))
      add_distinct(found, partitions_[partitions_.before(out_.nodes[static_cast<std::size_t>(node)], v)], partial_too);
    return found;
  }
  static void add_distinct(std::vector<partition>& found, const known_partitions::list& some, bool partial_too) {
    for (const partition& p : some.all)
      if ((partial_too || !p.is_partial()) && std::find(found.begin(), found.end(), p) == found.end())
        found.push_back(p);
  }
  std::vector<int> reading(int v) const {
    std::vector<int> nodes;
    for (int o : partitions_.readers(v))
      if (const int n = owner_[static_cast<std::size_t>(o)]; n >= 0 && n != producer(v)) nodes.push_back(n);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }
  int producer(int v) const {
    if (const auto at = resting_.find(v); at != resting_.end()) return at->second;
    return g_[v].producer < 0 ? -1 : owner_[static_cast<std::size_t>(g_[v].producer)];
  }

  // An operation of a tensor, which is in that partition.
  static assignment under(const operation& o, const partition& p) {
    assignment a;
    for (int axis = 0; axis < max_axes; ++axis) {
      if (p.partial[axis].owed) a.factor[axis] = assignment::partial;
      else if (const int d = p.dim_of(axis); d >= 0) a.factor[axis] = static_cast<signed char>(hub_factor_of(o, d));
    }
    return a;
  }

  // A decision on one of these partitions, as far as they divide.
  void add_placed(decision d, const std::vector<partition>& partitions) {
    const value& x = g_[d.index];
    std::string key = known_.key(d);
    for (const partition& p : partitions) put(key, p);
    known_.give(d, std::move(key), [&] {
      choice_set out;
      for (const partition& p : partitions) {
        if (!divides(p, x.shape, mesh_)) continue;
        out.assigned.emplace_back();
        for (int o : d.operations) out.assigned.back().push_back(under(g_.at(o), p));
        out.names.push_back(describe(p, x, mesh_));
      }
      return out;
    });
    own(std::move(d));
  }

  void add_of_all(const std::vector<int>& operations) {
    decision d = of_value(decision::of_all_weights, g_.at(operations.back()).results[0], operations);
    known_.give(d, known_.key(d), [&] {
      choice_set out{{{}}, {}, {}, {"replicated"}, {}};
      for (int o : operations) {
        assignment a;
        for (int axis = 0; axis < mesh_.rank(); ++axis)
          if (mesh_.size(axis) > 1 && g_.at(o).op->linear == linearity::all) a.factor[axis] = assignment::partial;
        out.assigned.back().push_back(a);
      }
      return out;
    });
    own(std::move(d));
  }

  void add_weight(int v, const std::vector<int>& operations) {
    const std::vector<partition> found = needs(v, false);
    resting_[v] = static_cast<int>(out_.nodes.size());
    add_placed(of_value(decision::rest_of_weight, v, operations), found);
  }

  void add_sum(int v, const std::vector<int>& operations) {
    decision d = of_value(decision::gradient_placement, v, operations);
    d.label += ".grad";
    std::vector<partition> found = needs(v, false);
    for (int o : operations)
      for (int x : g_.at(o).operands)
        if (const int from = producer(x); from >= 0)
          add_distinct(found, partitions_[partitions_.after(out_.nodes[static_cast<std::size_t>(from)], x)], true);
    add_placed(std::move(d), found);
  }

  void add_flow(int v) {
    const value& x = g_[v];
    if (x.role == value_role::input || x.role == value_role::constant || x.role == value_role::state) return;
    const int from = producer(v);
    if (from < 0) return;
    const std::vector<int> to = reading(v);
    if (to.size() == 1) out_.edges.push_back({from, to[0], v});
    if (to.size() < 2) return;
    const int hub = static_cast<int>(out_.nodes.size());
    add_forms(v);
    out_.edges.push_back({from, hub, v});
    for (int n : to) out_.edges.push_back({hub, n, v});
  }

  // A tensor with several readers.
  void add_forms(int v) {
    const value& x = g_[v];
    decision d = of_value(decision::forms_of_tensor, v, {});
    const std::vector<partition> wanted = needs(v, true);
    std::string key = known_.key(d);
    for (int i = 0; i < x.rank(); ++i)
      key.append(x.dims[i].view()).append(1, '=').append(std::to_string(x.shape[i])) += ' ';
    for (const partition& p : wanted) put(key, p);
    known_.give(d, std::move(key), [&] { return forms_of(x, wanted, mesh_); });
    own(std::move(d));
  }
  const graph& g_;
  const block_structure& s_;
  const mesh_shape& mesh_;
  axis_choice::rest_t furthest_;
  const held_axis& held_;
  const recomputation* again_;  // none: all is kept
  keeping::resting_t on_host_;
  std::vector<int> owner_;
  std::map<int, int> resting_;  // weight -> decision that holds it
  known_choices known_;
  known_partitions partitions_;
  decision_graph out_;
};

}  // namespace detail

/// All decisions of a training graph on a mesh. Weights that are gathered again for backward save memory and never
/// time: such choices are there only where `furthest` says so. On an axis that is held there is no choice. `again`:
/// what parts may compute again for backward, which they never gain by but memory; none: all is kept. `on_host`: the
/// same of how far weights may rest on the host; if at all, so may what backward reads.
inline decision_graph decisions(const graph& g, const block_structure& s, const mesh_shape& mesh,
                                axis_choice::rest_t furthest = axis_choice::scattered, const held_axis& held = {},
                                const recomputation* again = nullptr, keeping::resting_t on_host = keeping::on_device) {
  return detail::decision_builder(g, s, mesh, furthest, held, again, on_host).run();
}

}  // namespace cfp
