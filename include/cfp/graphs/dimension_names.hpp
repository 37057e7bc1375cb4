// Names for the dimensions of a graph that was read: files have sizes, people say batch, heads and hidden, and so do
// the plans that bear their names. A name says what a dimension is used for, nothing follows from it.
#pragma once

#include <cfp/graphs/rule_sketch.hpp>
#include <cfp/model/graph.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace detail {

class dimension_namer {
 public:
  explicit dimension_namer(graph& g) : g_(g) {
    int count = 0;
    for (const value& v : g.values) first_of_value_.push_back(count), count += v.rank();
    for (const operation& o : g.operations) first_of_operation_.push_back(count), count += o.r.factors.size();
    parent_.resize(static_cast<std::size_t>(count));
    std::iota(parent_.begin(), parent_.end(), 0);
    for (int i = 0; i < g.size(); ++i) each_dim(i, [&](int v, int d, int f) { join(of_dim(v, d), of_factor(i, f)); });
  }

  void run() {
    name_inputs();
    for (int i = 0; i < g_.size(); ++i) name_selected(i);
    for (int i = 0; i < g_.size(); ++i) name_compared(i);
    for (int i = 0; i < g_.size(); ++i) name_rows(i);
    for (int i = 0; i < g_.size(); ++i) name_hidden(i);
    for (value& v : g_.values) rename(v);
    for (int i = 0; i < g_.size(); ++i) rename(i);
  }

 private:
  int of_dim(int v, int d) const { return first_of_value_[static_cast<std::size_t>(v)] + d; }
  int of_factor(int o, int f) const { return first_of_operation_[static_cast<std::size_t>(o)] + f; }
  int root(int n) {
    while (parent_[static_cast<std::size_t>(n)] != n) n = parent_[static_cast<std::size_t>(n)];
    return n;
  }
  void join(int a, int b) { parent_[static_cast<std::size_t>(root(a))] = root(b); }
  // The dimensions of an operation's tensors that are one factor each.
  template <class F>
  void each_dim(int i, const F& f) const {
    const operation& o = g_.at(i);
    const auto of = [&](const pattern& p, int v) {
      for (int k = 0; k < p.factors.size(); ++k)
        if (std::count(p.group.begin(), p.group.end(), p.group[k]) == 1) f(v, p.group[k], p.factors[k]);
    };
    for (int k = 0; k < o.operands.size(); ++k) of(o.r.operands[k], o.operands[k]);
    for (int k = 0; k < o.results.size(); ++k) of(o.r.results[k], o.results[k]);
  }

  bool give(int node, std::string_view called) { return names_.try_emplace(root(node), called).second; }
  bool has_name(int node) { return names_.count(root(node)) > 0; }

  void name_inputs() {
    for (int v = 0; v < g_.value_count(); ++v) {
      if (g_[v].role != value_role::input) continue;
      for (int d = 0; d < g_[v].rank(); ++d) {
        const std::string_view called = g_[v].dims[d].view();
        const auto says = [&](std::string_view word) { return called.find(word) != std::string_view::npos; };
        if (says("batch")) give(of_dim(v, d), "batch");
        else if (says("seq") || (d == 1 && g_[v].type == element::index)) give(of_dim(v, d), "sequence");
        else if (called != name_of_size(g_[v].shape[d])) give(of_dim(v, d), called);
      }
    }
  }
  // What indices select from.
  void name_selected(int i) {
    const operation& o = g_.at(i);
    if (o.op->index_operand < 0) return;
    const value& index = g_[o.operands[o.op->index_operand]];
    for (int f = 0; f < o.r.factors.size(); ++f)
      if (o.r.factors[f].one_hot) give(of_factor(i, f), index.rank() > 1 ? "vocabulary" : "positions");
  }
  // Of a product of two tensors that are computed: what both have and keep are heads, what is summed over their depth.
  void name_compared(int i) {
    const operation& o = g_.at(i);
    if (o.op->body != op_body::product || !computed(o.operands[0]) || !computed(o.operands[1])) return;
    for (int f = 0; f < o.r.factors.size(); ++f) {
      const bool both = o.r.operands[0].dim_of(f) >= 0 && o.r.operands[1].dim_of(f) >= 0;
      if (!both || has_name(of_factor(i, f))) continue;
      give(of_factor(i, f), o.r.is_reduction(f) ? "depth" : "heads");
    }
  }
  bool computed(int v) const { return g_[v].producer >= 0; }
  // What is normalised.
  void name_rows(int i) {
    const int f = g_.at(i).r.find("width");
    if (f >= 0) give(of_factor(i, f), "width");
  }
  // What a weight makes and no sum of operators follows: it goes through a function of its own.
  void name_hidden(int i) {
    const operation& o = g_.at(i);
    if (o.op->body != op_body::map || o.op->linear != linearity::none || o.r.operands.size() > 2 ||
        o.r.results[0].factors.empty())
      return;
    const int f = o.r.results[0].factors.back();
    if (!o.r.is_reduction(f) && made_by_weight_.empty()) find_made();
    if (const int n = root(of_factor(i, f)); std::count(made_by_weight_.begin(), made_by_weight_.end(), n) > 0)
      give(n, "hidden");
  }
  void find_made() {
    for (int i = 0; i < g_.size(); ++i) {
      const operation& o = g_.at(i);
      if (o.op->body != op_body::product || computed(o.operands[1])) continue;
      for (const signed char f : o.r.results[0].factors)
        if (o.r.operands[0].dim_of(f) < 0) made_by_weight_.push_back(root(of_factor(i, f)));
    }
  }

  void rename(value& v) {
    const int id = static_cast<int>(&v - g_.values.data());
    std::vector<std::string> taken;
    for (int d = 0; d < v.rank(); ++d) {
      const auto at = names_.find(root(of_dim(id, d)));
      taken.push_back(free_name(at != names_.end() ? at->second : std::string(v.dims[d].view()), taken));
      v.dims[d] = name(taken.back());
    }
  }
  // Gradients that are written out speak of a rule's factors by their names.
  void rename(int i) {
    operation& o = g_.at(i);
    if (o.op->gradient_steps > 0) return;
    std::vector<std::string> taken;
    for (int f = 0; f < o.r.factors.size(); ++f) {
      const auto at = names_.find(root(of_factor(i, f)));
      const std::string called = at != names_.end() ? at->second : std::string(o.r.factors[f].label.view());
      if (called.starts_with("..")) return;
      taken.push_back(free_name(called, taken));
    }
    for (int f = 0; f < o.r.factors.size(); ++f) o.r.factors[f].label = name(taken[static_cast<std::size_t>(f)]);
  }

  graph& g_;
  std::vector<int> first_of_value_, first_of_operation_, parent_, made_by_weight_;
  std::map<int, std::string> names_;
};

}  // namespace detail

inline void name_dimensions(graph& g) { detail::dimension_namer(g).run(); }

}  // namespace cfp::graphs
