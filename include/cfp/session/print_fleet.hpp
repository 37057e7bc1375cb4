// What there is to choose among in a fleet, as text and as JSON.
#pragma once

#include <cfp/session/fleet_plan.hpp>
#include <cfp/session/texts.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

inline std::string state_text(const fleet_offer& x) {
  switch (x.state) {
    case fleet_offer::planned: return printed("%10.1f ms", x.ms);
    case fleet_offer::unfit: return "does not fit";
    case fleet_offer::above_budget: return "above the budget";
    case fleet_offer::beaten: return printed("beaten: at least %.1f ms", x.least_ms);
    case fleet_offer::not_asked: break;
  }
  return "more devices than needed";
}

inline std::string devices_text(const fleet_offer& x) {
  return x.parts.size() > 1 ? x.machine : std::to_string(x.devices) + " of " + x.machine;
}

inline std::string plan_name(const fleet_offer& x) {
  if (x.in_stages) {
    const staged_layout& l = x.in_stages->plan.layout;
    return printed("%d places of %s, %s", l.places, to_string(l.inside).c_str(), l.schedule.c_str());
  }
  if (x.in_copies) {
    std::string shares;
    for (const machine_plan& p : x.in_copies->copies)
      shares += (shares.empty() ? "" : " + ") + std::to_string(p.micro_batches);
    return printed("copies, %s of %d micro-batches", shares.c_str(), x.in_copies->micro_batches);
  }
  const machine_plan::on_mesh& on = x.plan.meshes.front();
  return on.mesh + " " + on.fastest()->plan +
         (x.plan.micro_batches > 1 ? ", " + std::to_string(x.plan.micro_batches) + " micro-batches" : "");
}

}  // namespace detail

/// A line for each part of a machine, and for those that are joined and of the front, which are marked. `step_tokens`:
/// tokens of a step; `tokens`: of all the training, if they are known: what it takes and costs.
inline std::string fleet_text(const fleet_plan& f, double step_tokens, double tokens = 0) {
  using detail::printed;
  const std::vector<const fleet_offer*> front = f.front();
  const auto is_best = [&](const fleet_offer& x) { return std::find(front.begin(), front.end(), &x) != front.end(); };
  int wide = 18;
  for (const fleet_offer* const x : front) wide = std::max(wide, static_cast<int>(x->machine.size()));
  std::string out = printed("%-*s %7s %9s   %-13s %10s %12s%s   %s\n", wide, f.name.c_str(), "devices",
                            (f.currency + "/h").c_str(), "a step", "tokens/s", (f.currency + "/Mtoken").c_str(),
                            tokens > 0 ? printed(" %9s %12s", "days", f.currency.c_str()).c_str() : "", "plan");
  for (const fleet_offer& x : f.offers) {
    if (x.parts.size() > 1 && !is_best(x)) continue;
    out += printed("%-*s %7d %9.2f   ", wide, x.machine.c_str(), x.devices, x.hourly);
    if (x.state != fleet_offer::planned) {
      out += detail::state_text(x) + "\n";
      continue;
    }
    const double steps = tokens / step_tokens;
    out += printed("%10.1f ms %10.0f %12.4g", x.ms, 1000 * step_tokens / x.ms, 1e6 * x.price() / step_tokens) +
           (tokens > 0 ? printed(" %9.1f %12.0f", steps * x.ms / 8.64e7, steps * x.price()) : "") + " " +
           (is_best(x) ? "* " : "  ") + detail::plan_name(x) + "\n";
  }
  return out +
         printed("*: none takes less of both time and money; planned %d of %zu",
                 f.count(fleet_offer::planned) + f.count(fleet_offer::unfit), f.offers.size()) +
         (f.count(fleet_offer::beaten) > 0
              ? printed(", %d beaten by what no plan there takes less than", f.count(fleet_offer::beaten))
              : "") +
         (f.count(fleet_offer::above_budget) > 0 ? printed(", %d above the budget", f.count(fleet_offer::above_budget))
                                                 : "") +
         "\n";
}

inline nlohmann::ordered_json fleet_json(const fleet_plan& f, double step_tokens) {
  static constexpr const char* states[] = {"planned", "does not fit", "above the budget", "beaten", "not asked"};
  const std::vector<const fleet_offer*> front = f.front();
  nlohmann::ordered_json out{{"fleet", f.name}, {"currency", f.currency}, {"offers", nlohmann::ordered_json::array()}};
  for (const fleet_offer& x : f.offers) {
    nlohmann::ordered_json one{{"machine", x.machine},
                               {"devices", x.devices},
                               {"hourly", x.hourly},
                               {"least_ms", x.least_ms},
                               {"state", states[x.state]}};
    if (x.state == fleet_offer::planned) {
      one["step_ms"] = x.ms;
      one["tokens_per_second"] = 1000 * step_tokens / x.ms;
      one["price_of_a_step"] = x.price();
      one["plan"] = detail::plan_name(x);
      one["front"] = std::find(front.begin(), front.end(), &x) != front.end();
    }
    out["offers"].push_back(std::move(one));
  }
  return out;
}

}  // namespace cfp
