// Cost graphs whose times are made known as they are asked for.
#pragma once

#include <cfp/profile/cost/cost_builder.hpp>
#include <cfp/solve/lazy.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A builder that may say a bound and a guess in the place of a time (`asking_`). Says both of everything: its two ways
/// to price.
class lazy_builder : public cost_builder {
 public:
  using cost_builder::cost_builder;

  /// The cost graph as far as times are known.
  partly_known costs_so_far() {
    std::vector<cost_graph> out = collect({});
    if (told_by_table()) {
      unique_.clear();
      out = collect({});
    }
    return {std::move(out[0]), std::move(out[1])};
  }

  /// Has what a plan of the last graph uses measured, what is expected to raise its bound most first, until it takes so
  /// much more than it seemed to; says how many figures were not known. Unless none, the next question is for a plan of
  /// a new graph.
  asked ask(const std::vector<int>& choices, excess_wanted excess = {}) {
    const std::vector<open_figure> open = open_figures(choices);
    const bool before = std::exchange(asking_, true);
    const long unknown = unknown_;
    asked out{0, true};
    for (const open_figure& f : open) {
      if (!(excess.least >= 0 && excess.expected >= 0)) {
        out.all = false;
        break;
      }
      const double ms = measured_time(f);
      excess.least -= ms - f.least;
      excess.expected -= ms - f.expected;
    }
    asking_ = before;
    out.figures = unknown_ - unknown;
    if (out.figures > 0 && measured_again()) unique_.clear();  // to be priced anew
    return out;
  }

  /// Whether all that a plan of the last graph uses is known.
  bool knows(const std::vector<int>& choices) { return open_figures(choices).empty(); }

  /// Has what some edges bring measured, of a plan of the last graph. Says whether anything was.
  template <class Wanted>
  bool ask_conversions(const std::vector<int>& choices, const Wanted& wanted) {
    const bool before = std::exchange(asking_, true);
    const long unknown = unknown_;
    for (const open_figure& f : open_figures(choices))
      if (f.edge && wanted(*f.edge)) measured_time(f);
    asking_ = before;
    return unknown_ > unknown;
  }

 protected:
  std::size_t ways() const override { return 2; }
  /// Whether what was known before tells now of the bounds of the rest.
  virtual bool told_by_table() { return false; }
  /// Measures once more what may have been disturbed; false if there is nothing.
  virtual bool measured_again() { return false; }

 private:
  // Something a plan uses of which a bound is known: a choice of a decision, or, where `node` is none, what an edge
  // brings.
  struct open_figure {
    double least = 0, expected = 0;
    priced* node = nullptr;
    std::size_t choice = 0;
    const decision_edge* edge = nullptr;
    std::size_t from = 0, to = 0;
    double weight = 0;  ///< by how much the plan's bound is expected to rise, wherever the plan uses it
  };
  std::vector<open_figure> open_figures(const std::vector<int>& choices) {
    std::vector<open_figure> out;
    const bool before = std::exchange(asking_, false);
    const long unknown = unknown_;
    const auto chosen = [&](int node) { return static_cast<std::size_t>(choices[static_cast<std::size_t>(node)]); };
    std::map<std::pair<const void*, std::size_t>, double> of_all;  // layers that are alike
    for (std::size_t n = 0; n < d_.nodes.size(); ++n)
      if (const std::size_t c = chosen(static_cast<int>(n)); of_node_[n] != nullptr && !of_node_[n]->known[c])
        out.push_back({of_node_[n]->time[0][c], of_node_[n]->time[1][c], of_node_[n], c});
    for (const decision_edge& e : d_.edges) {
      const long so_far = unknown_;
      const figures ms = pair_times(e, chosen(e.from), chosen(e.to));
      if (unknown_ > so_far) out.push_back({ms[0], ms[1], nullptr, 0, &e, chosen(e.from), chosen(e.to)});
    }
    asking_ = before;
    unknown_ = unknown;
    const auto alike = [](const open_figure& f) {
      return std::pair{static_cast<const void*>(f.node ? static_cast<const void*>(f.node) : f.edge), f.choice};
    };
    for (const open_figure& f : out) of_all[alike(f)] += f.expected - f.least;
    for (open_figure& f : out) f.weight = of_all[alike(f)];
    std::stable_sort(out.begin(), out.end(),
                     [](const open_figure& a, const open_figure& b) { return a.weight > b.weight; });
    return out;
  }
  double measured_time(const open_figure& f) {
    if (f.node == nullptr) return pair_times(*f.edge, f.from, f.to)[0];
    if (!f.node->known[f.choice]) price(*f.node, f.choice);  // or equal layers were asked for
    return f.node->time[0][f.choice];
  }
};

}  // namespace cfp
