// Decisions of a graph whose segments stand for many: which are made alike, and how many each stands for.
#pragma once

#include <cfp/block/decision.hpp>
#include <cfp/block/repeats.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/model/equal_layers.hpp>
#include <cfp/solve/solution.hpp>
#include <cfp/solve/tied.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// The segment of a decision: of what it computes, or the tensor it holds; -1: of none.
inline int segment_of(const decision& d, const repeats& r) {
  if (d.kind == decision::forms_of_tensor) return r.of_value[static_cast<std::size_t>(d.index)];
  return d.operations.empty() ? -1 : r.of_operation[static_cast<std::size_t>(d.operations.front())];
}

// Segments around one that stands for many: alike, and together with it.
inline std::vector<int> groups_of(const repeats& r) {
  std::vector<int> out(r.times.size(), -1);
  const auto alike = [&](std::size_t a) { return r.like_next[a] && r.may_go[a]; };
  for (std::size_t i = 0; i < r.times.size(); ++i) {
    if (r.times[i] == 1) continue;
    std::size_t first = i, last = i;
    for (long n = 0; n < beside_many && first > 0 && alike(first - 1) && out[first - 1] < 0; ++n) --first;
    for (long n = 0; n < beside_many && last + 1 < r.times.size() && alike(last); ++n) ++last;
    for (std::size_t s = first; s <= last; ++s) out[s] = static_cast<int>(first);
  }
  return out;
}

}  // namespace detail

/// Of a graph in which some segment stands for many.
inline tied_nodes folded_decisions(const decision_graph& d, const repeats& r) {
  const std::vector<int> group = detail::groups_of(r);
  std::vector<int> segment, place(r.times.size());  // of each node; the next in each segment
  tied_nodes out;
  std::map<std::pair<int, int>, int> sets;  // of a group: of a place in its segments
  std::vector<const decision*> first;       // of each set
  int count = 0;
  for (const decision& n : d.nodes) {
    const int s = detail::segment_of(n, r);
    segment.push_back(s);
    const auto at = static_cast<std::size_t>(std::max(s, 0));
    const bool tied = s >= 0 && group[at] >= 0;
    out.set_of.push_back(tied ? sets.try_emplace({group[at], place[at]++}, count).first->second : count);
    if (out.set_of.back() == count) first.push_back(&n), ++count;
    if (first[static_cast<std::size_t>(out.set_of.back())]->names.id() != n.names.id())
      throw bad_input(n.label + ": layers that are said to be equal are not, as it has other choices than " +
                      first[static_cast<std::size_t>(out.set_of.back())]->label);
    out.node_times.push_back(s < 0 ? 1 : static_cast<double>(r.times[at]));
  }
  for (const decision_edge& e : d.edges) {
    const int a = segment[static_cast<std::size_t>(e.from)], b = segment[static_cast<std::size_t>(e.to)];
    const auto times = [&](int s) { return s < 0 ? 1.0 : static_cast<double>(r.times[static_cast<std::size_t>(s)]); };
    // Between two neighbours it is there once for each of what the first stands for.
    out.edge_times.push_back(a >= 0 && b >= 0 && std::abs(a - b) == 1 ? times(std::min(a, b))
                                                                      : std::max(times(a), times(b)));
  }
  return out;
}

/// What solvers are given of decisions, where layers may stand for many.
class folding {
 public:
  /// Without repeats, or if no segment stands for many, all is as it is.
  folding(const decision_graph& d, const repeats* r) {
    if (r != nullptr && r->folded()) tied_ = folded_decisions(d, *r);
  }
  explicit operator bool() const { return tied_.has_value(); }

  cost_graph of(cost_graph sums) const { return tied_ ? (*tied_)(sums) : std::move(sums); }
  /// With the choices of all decisions.
  solution all(solution s) const {
    if (tied_ && s.feasible) s.choices = tied_->of_nodes(s.choices);
    return s;
  }
  /// Of a choice for all decisions.
  double time(const cost_graph& sums, const std::vector<int>& choices) const {
    return tied_ ? evaluate((*tied_)(sums), tied_->of_sets(choices)).time : evaluate(sums, choices).time;
  }

 private:
  std::optional<tied_nodes> tied_;
};

}  // namespace cfp
