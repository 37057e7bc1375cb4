// Plans for conditions that change, as text and as JSON.
#pragma once

#include <cfp/session/course_plan.hpp>
#include <cfp/session/texts.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

inline std::string course_plan_name(const machine_plan& p) {
  return p.meshes.front().mesh + " " + p.meshes.front().fastest()->plan;
}

}  // namespace detail

/// A line for each condition: what a step takes under its own plan and under the others, and what it takes to change to
/// its own from that of the first, and after how many steps that pays.
inline std::string course_text(const course_plan& c) {
  using detail::printed;
  const course_table& t = c.table;
  constexpr double never = std::numeric_limits<double>::infinity();
  int wide = 12, wide_plan = 10;
  for (const std::string& called : t.conditions) wide = std::max(wide, static_cast<int>(called.size()));
  for (const machine_plan& p : c.plans)
    wide_plan = std::max(wide_plan, static_cast<int>(detail::course_plan_name(p).size()) + 3);
  std::string out = printed("%-*s  %-*s", wide, "a step, ms", wide_plan, "its plan");
  for (std::size_t p = 0; p < t.plans.size(); ++p) out += printed(" %9s", ("under " + std::to_string(p + 1)).c_str());
  out += "   to change from the first's plan\n";
  for (std::size_t n = 0; n < t.conditions.size(); ++n) {
    const int own = c.of_condition[n], first = c.of_condition.front();
    out += printed("%-*s  ", wide, t.conditions[n].c_str());
    if (own < 0) {
      out += "nothing fits\n";
      continue;
    }
    const auto mine = static_cast<std::size_t>(own);
    out += printed("%d: %-*s", own + 1, wide_plan - 3, detail::course_plan_name(c.plans[mine]).c_str());
    for (const std::vector<double>& ms : t.ms) out += ms[n] < never ? printed(" %9.1f", ms[n]) : printed(" %9s", "-");
    if (first >= 0 && first != own) {
      const double takes = t.change_ms(first, own), gain = t.step_ms(first, static_cast<int>(n)) - t.ms[mine][n];
      const state_move& move = c.moves[static_cast<std::size_t>(first)][mine];
      out += printed("   %.1f ms for at most %.0f MiB each", takes, detail::mib(move.most()));
      if (move.lost > 0) out += printed(", %.0f MiB from a file", detail::mib(move.lost));
      if (gain > 0 && gain < never) out += printed(", pays after %.0f steps", std::ceil(takes / gain));
    }
    out += "\n";
  }
  return out + "-: it does not run there, or not within the memory\n";
}

inline nlohmann::ordered_json course_json(const course_plan& c) {
  const course_table& t = c.table;
  nlohmann::ordered_json out{{"conditions", nlohmann::ordered_json::array()},
                             {"plans", nlohmann::ordered_json::array()}};
  for (std::size_t n = 0; n < t.conditions.size(); ++n)
    out["conditions"].push_back(
        {{"name", t.conditions[n]},
         {"plan", c.of_condition[n] < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(c.of_condition[n])}});
  for (std::size_t p = 0; p < t.plans.size(); ++p) {
    nlohmann::ordered_json one{{"found_for", t.plans[p]}, {"plan", detail::course_plan_name(c.plans[p])}};
    for (std::size_t n = 0; n < t.conditions.size(); ++n)  // null: it does not run
      one["step_ms"].push_back(t.ms[p][n] < std::numeric_limits<double>::infinity() ? nlohmann::ordered_json(t.ms[p][n])
                                                                                    : nlohmann::ordered_json());
    for (std::size_t q = 0; q < t.plans.size(); ++q)
      one["change"].push_back({{"ms", t.change_ms(static_cast<int>(p), static_cast<int>(q))},
                               {"most_bytes", c.moves[p][q].most()},
                               {"all_bytes", c.moves[p][q].all()},
                               {"lost_bytes", c.moves[p][q].lost}});
    out["plans"].push_back(std::move(one));
  }
  return out;
}

}  // namespace cfp
