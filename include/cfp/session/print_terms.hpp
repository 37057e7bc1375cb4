// Where the time of a step goes, as text and as JSON.
#pragma once

#include <cfp/profile/machine/time_terms.hpp>
#include <cfp/session/texts.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// A line each, milliseconds and shares of the step.
inline std::string terms_text(const std::vector<time_term>& terms) {
  double all = 0;
  for (const time_term& t : terms) all += t.ms;
  std::string out = detail::printed("%-22s %10s %8s %16s\n", "a step's time", "ms", "share", "beside operators");
  for (const time_term& t : terms)
    out += detail::printed("%-22s %10.3f %7.1f%%", t.name.c_str(), t.ms, 100 * t.ms / all) +
           (t.beside > 0 ? detail::printed(" %16.3f\n", t.beside) : "\n");
  return out + detail::printed("%-22s %10.3f\n", "together", all);
}

inline nlohmann::ordered_json terms_json(const std::vector<time_term>& terms) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const time_term& t : terms) out.push_back({{"term", t.name}, {"ms", t.ms}, {"beside_ms", t.beside}});
  return out;
}

/// That of all places alike: each term's mean over them, which sum up to the step too.
inline std::vector<time_term> mean_terms(const std::vector<std::vector<time_term>>& places) {
  std::vector<time_term> out;
  const auto n = static_cast<double>(places.size());
  for (const std::vector<time_term>& one : places)
    for (const time_term& t : one) {
      const auto at = std::find_if(out.begin(), out.end(), [&](const time_term& x) { return x.name == t.name; });
      time_term& to = at == out.end() ? (out.push_back({t.name}), out.back()) : *at;
      to.ms += t.ms / n, to.beside += t.beside / n;
    }
  return out;
}

}  // namespace cfp
