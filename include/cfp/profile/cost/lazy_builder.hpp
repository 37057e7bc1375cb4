// Cost graphs whose times are made known as they are asked for.
#pragma once

#include <cfp/profile/cost/cost_builder.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// What measuring what a plan uses came to.
struct asked {
  long figures = 0;  ///< that were not known
  bool all = true;   ///< by now all are
};

/// A builder that may say a bound in the place of a time (`asking_`), of the first way to price.
class lazy_builder : public cost_builder {
 public:
  using cost_builder::cost_builder;

  /// Has what a plan of the last graph uses measured, what seems longest first, until the plan takes `rise` more than
  /// it seemed to; says how many figures were not known. Unless none, the next question is for a plan of a new graph.
  asked ask(const std::vector<int>& choices, double rise = std::numeric_limits<double>::infinity()) {
    const std::vector<open_figure> open = open_figures(choices);
    const bool before = std::exchange(asking_, true);
    const long unknown = unknown_;
    asked out{0, true};
    for (const open_figure& f : open) {
      if (!(rise >= 0)) {
        out.all = false;
        break;
      }
      rise -= measured_time(f) - f.least;
    }
    asking_ = before;
    out.figures = unknown_ - unknown;
    if (out.figures > 0 && measured_again()) unique_.clear();  // to be priced anew
    return out;
  }

 protected:
  /// Measures once more what may have been disturbed; false if there is nothing.
  virtual bool measured_again() { return false; }

 private:
  // Something a plan uses of which a bound is known: a choice of a decision, or, where `node` is none, what an edge
  // brings.
  struct open_figure {
    double least = 0;
    priced* node = nullptr;
    std::size_t choice = 0;
    const decision_edge* edge = nullptr;
    std::size_t from = 0, to = 0;
  };
  std::vector<open_figure> open_figures(const std::vector<int>& choices) {
    std::vector<open_figure> out;
    const bool before = std::exchange(asking_, false);
    const long unknown = unknown_;
    const auto chosen = [&](int node) { return static_cast<std::size_t>(choices[static_cast<std::size_t>(node)]); };
    for (std::size_t n = 0; n < d_.nodes.size(); ++n)
      if (const std::size_t c = chosen(static_cast<int>(n)); of_node_[n] != nullptr && !of_node_[n]->known[c])
        out.push_back({of_node_[n]->time[0][c], of_node_[n], c});
    for (const decision_edge& e : d_.edges) {
      const long so_far = unknown_;
      const double least = pair_times(e, chosen(e.from), chosen(e.to))[0];
      if (unknown_ > so_far) out.push_back({least, nullptr, 0, &e, chosen(e.from), chosen(e.to)});
    }
    asking_ = before;
    unknown_ = unknown;
    std::stable_sort(out.begin(), out.end(),
                     [](const open_figure& a, const open_figure& b) { return a.least > b.least; });
    return out;
  }
  double measured_time(const open_figure& f) {
    if (f.node == nullptr) return pair_times(*f.edge, f.from, f.to)[0];
    if (!f.node->known[f.choice]) price(*f.node, f.choice);  // or equal layers were asked for
    return f.node->time[0][f.choice];
  }
};

}  // namespace cfp
