// A graph that is copied operation by operation, so that others can stand in the place of some; what the loss does not
// need is left out in the end.
#pragma once

#include <cfp/graphs/graph_builder.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// The graph without what its loss does not come from.
inline graph without_unused(const graph& from) {
  std::vector<bool> needed(from.values.size());
  needed[static_cast<std::size_t>(from.loss)] = true;
  std::vector<bool> kept(from.operations.size());
  for (int i = from.size() - 1; i >= 0; --i) {
    bool counts = false;
    for (const int r : from.at(i).results) counts = counts || needed[static_cast<std::size_t>(r)];
    if (!counts) continue;
    kept[static_cast<std::size_t>(i)] = true;
    for (const int x : from.at(i).operands) needed[static_cast<std::size_t>(x)] = true;
    for (const int r : from.at(i).results) needed[static_cast<std::size_t>(r)] = true;
  }
  graph out;
  std::vector<int> place(from.values.size(), -1);
  for (int v = 0; v < from.value_count(); ++v) {
    if (!needed[static_cast<std::size_t>(v)]) continue;
    value one = from[v];
    one.producer = -1;
    place[static_cast<std::size_t>(v)] = out.add(one);
  }
  for (int i = 0; i < from.size(); ++i) {
    if (!kept[static_cast<std::size_t>(i)]) continue;
    operation o = from.at(i);
    for (int& x : o.operands) x = place[static_cast<std::size_t>(x)];
    for (int& r : o.results) r = place[static_cast<std::size_t>(r)];
    out.add(o);
  }
  out.loss = place[static_cast<std::size_t>(from.loss)];
  return out;
}

class graph_copy {
 public:
  graph_builder build{};  ///< of what stands in the place of others

  explicit graph_copy(const graph& from) : from_(from), place_(from.values.size(), -1) {
    for (int v = 0; v < from.value_count(); ++v)
      if (from[v].producer < 0) place_[static_cast<std::size_t>(v)] = build.g.add(from[v]);
  }

  /// What stands for a value of the graph that is copied.
  int of(int v) const { return place_[static_cast<std::size_t>(v)]; }
  /// Copies an operation.
  void take(int i) {
    operation o = from_.at(i);
    for (int& x : o.operands) x = of(x);
    for (int& r : o.results) {
      value made = from_[r];
      made.producer = -1;
      r = place_[static_cast<std::size_t>(r)] = build.g.add(made);
    }
    build.g.add(o);
  }
  /// Another value stands for one, and is called as it is.
  void replace(int v, int by) {
    place_[static_cast<std::size_t>(v)] = by;
    build.g[by].label = from_[v].label;
  }
  graph finished() {
    build.g.loss = of(from_.loss);
    return without_unused(build.g);
  }

 private:
  const graph& from_;
  std::vector<int> place_;
};

}  // namespace cfp::graphs
