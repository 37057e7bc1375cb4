// Which of the plans people use a plan is, by the names they have for them; else the nearest of some, by our price.
#pragma once

#include <cfp/plan/machine_search.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/profile/machine/machine.hpp>

#include <cmath>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct usual_view {
  std::string outer, inner;  ///< kinds of parallelism along all axes but the last, and along the last
  int outer_size = 1, inner_size = 1;
  int other_parts = 0, parts = 0;  ///< that split otherwise in the plan, of how many; 0: it is this plan
  double slower = 0;               ///< by our price, relative to the plan; unknown if `priced` is false
  bool priced = false;
  std::string priced_on;

  /// Devices along axes of one of the kinds.
  int along(std::initializer_list<std::string_view> kinds) const {
    int out = 1;
    for (const std::string_view k : kinds) {
      if (outer == k) out *= outer_size;
      if (inner == k) out *= inner_size;
    }
    return out;
  }
  bool has(std::string_view kind) const { return outer == kind || inner == kind; }
};

/// Where plans are priced, and how.
struct pricing {
  machine on;
  machine_options how;  ///< with no limit of memory: what fits is not asked here
};

namespace detail {

/// Parts that a named plan would have split otherwise.
inline int parts_apart(const decision_graph& d, const std::vector<int>& choices, const std::vector<int>& wished,
                       int& parts) {
  int out = parts = 0;
  for (std::size_t n = 0; n < wished.size(); ++n) {
    if (d.nodes[n].kind != decision::strategy_of_part) continue;
    ++parts;
    const auto& names = d.nodes[n].names;
    const auto of = [&](int c) {  // what is kept is another question
      const std::string& whole = names[static_cast<std::size_t>(c)];
      return whole.substr(0, whole.find(','));
    };
    out += wished[n] < 0 || of(wished[n]) != of(choices[n]);
  }
  return out;
}

inline usual_view viewed_as(const named_plan& p, const mesh_shape& mesh) {
  usual_view out;
  const auto [first, last] = kinds_of(p);
  out.outer = first;
  out.inner = last.empty() ? first : last;
  out.inner_size = mesh.size(mesh.rank() - 1);
  out.outer_size = mesh.devices() / out.inner_size;
  return out;
}

}  // namespace detail

/// Some choices as one of those plans that `may` lets in, the first that they are; else the one of least time among
/// these, where both are priced alike, by the programs they become. Without a `price` the one that differs in fewest
/// parts. Throws bad_input if none is let in.
inline usual_view nearest_usual(const graph& g, const mesh_shape& mesh, const decision_graph& d,
                                const std::vector<int>& choices, const pricing* price,
                                const std::function<bool(const usual_view&)>& may) {
  std::vector<std::pair<usual_view, named_plan>> all;
  for (const named_plan& n : usual_plans(mesh, has_experts(g)))
    if (usual_view as = detail::viewed_as(n, mesh); may(as)) {
      as.other_parts = detail::parts_apart(d, choices, follow(n, d, mesh), as.parts);
      if (as.other_parts == 0) return as;
      all.emplace_back(as, n);
    }
  if (all.empty()) throw bad_input("of the plans people use none can be said there");
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].first.other_parts < all[nearest].first.other_parts) nearest = i;
  if (price == nullptr) return all[nearest].first;
  machine_options how = price->how;
  how.memory = max_total_memory / 2;
  machine_search search(g, mesh, d, price->on, how);
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const std::optional<evaluated> usual = search.usual(all[i].second); usual && usual->when.ms < least)
      least = usual->when.ms, nearest = i;
  usual_view out = all[nearest].first;
  out.priced = least < std::numeric_limits<double>::infinity();
  if (out.priced) out.slower = least / search.evaluate("plan", choices).when.ms - 1;
  out.priced_on = price->on.name;
  return out;
}

/// What is lost by saying a plan as one that it is not; nothing if it is.
inline std::string said_as(const usual_view& as, const std::string& whose) {
  if (as.other_parts == 0) return {};
  const std::string called = as.inner == as.outer ? as.outer : as.outer + "+" + as.inner;
  char figure[64] = "";
  if (as.priced)
    std::snprintf(figure, sizeof figure, "%.1f%% %s", 100 * std::abs(as.slower), as.slower < 0 ? "less" : "more");
  return "the plan is none of " + whose + ": " + std::to_string(as.other_parts) + " of its " +
         std::to_string(as.parts) + " parts split otherwise than the nearest one, " + called + ", which " +
         (as.priced ? "takes " + std::string(figure) + " time by our price on " + as.priced_on
                    : "is not priced against it");
}

}  // namespace cfp
