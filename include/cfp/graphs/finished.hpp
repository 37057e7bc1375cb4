// The end of a graph that was read: its loss, and whether its rules cut dimensions alike.
#pragma once

#include <cfp/graphs/dimension_names.hpp>
#include <cfp/graphs/graph_options.hpp>
#include <cfp/graphs/recognised.hpp>
#include <cfp/graphs/row_operators.hpp>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace detail {

// What the file took for granted of indices: what a batch may give ends there too.
inline void bound_indices(graph& g, const given_tensor& t) {
  if (t.below == 0 || t.indices < 0) return;
  g[t.indices].fill.bound = std::min(g[t.indices].fill.bound, t.below);
}

// What was declared as numbers and as indices, and is read as one of them, has its own name.
inline void call_given(graph& g, const std::vector<std::shared_ptr<given_tensor>>& given) {
  for (const std::shared_ptr<given_tensor>& t : given) {
    if (g.find(t->label) >= 0) continue;
    for (const char* const twin : {".numbers", ".indices"})
      if (const int v = g.find(t->label + twin); v >= 0 && g[v].producer < 0) g[v].label = long_name(t->label);
  }
}

}  // namespace detail

/// The loss: an output that is one number, or the sum of an output times an input of its shape.
inline void finish_with_loss(row_operators& p, const held& output, const std::string& called, read_graph& out) {
  if (output.id < 0) throw bad_input("output '" + called + "' is not computed from anything");
  if (output.is_whole) throw bad_input("output '" + called + "' holds whole numbers, of which there is no gradient");
  p.build.label = "loss";
  int loss = p.build.numbers(output);
  if (p.build.g[loss].rank() > 0) {
    auto cotangent = std::make_shared<given_tensor>();
    cotangent->label = "cotangent";
    cotangent->shape = output.shape;
    for (const auto& [name, size] : p.build.dims_of(loss)) cotangent->names.push_back(name);
    cotangent->shape = without_ones(output.shape);
    std::vector<int> all(cotangent->shape.size());
    std::iota(all.begin(), all.end(), 0);
    const held flat = p.build.computed(loss, cotangent->shape);
    loss = p.build.numbers(p.einsum(flat, all, held_given(cotangent), all, {}));
    out.said.push_back("output '" + called + "' " + shape_text(output.shape) +
                       " is no loss: the sum of it times an input 'cotangent' stands in for one");
  }
  p.build.g.loss = loss;
  for (const std::shared_ptr<given_tensor>& t : p.build.given) detail::bound_indices(p.build.g, *t);
  out.forward = recognised(p.build.g, p.build.fixed);
  detail::call_given(out.forward, p.build.given);
  name_dimensions(out.forward);
  for (const auto& [label, numbers] : p.build.fixed)
    if (out.forward.find(label) >= 0) out.fixed.emplace(label, numbers);
  for (const std::shared_ptr<given_tensor>& t : p.build.given)
    if (t->is_weight && out.forward.find(t->label) >= 0) out.weights.push_back(t);
}

}  // namespace cfp::graphs
