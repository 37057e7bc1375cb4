// Machines that one may choose among, with prices.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/profile/machine/machine.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct fleet {
  struct pool {
    std::string name{};  ///< of its machine
    machine on{};        ///< all that there are
    double price = 0;    ///< of a device and hour
  };
  std::string name{}, currency{};
  std::vector<pool> pools{};
  std::optional<interconnect> between{};         ///< what joins pools; none: a plan lives in one
  std::map<std::string, std::string> sources{};  ///< of prices, in words
};

/// How many devices of a machine may be taken: parts of its levels that divide them, all of the levels inside.
inline std::vector<int> counts_of(const machine& m) {
  std::vector<int> out;
  for (std::size_t l = 0; l < m.levels.size(); ++l)
    for (int joined = 1; joined <= m.levels[l].joins; ++joined)
      if (m.levels[l].joins % joined == 0) out.push_back(m.unit(l) * joined);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// So many devices of a machine, the innermost. Throws bad_input unless that is a whole part: its words begin with
/// `asked`.
inline machine part_of(const machine& m, int devices, const std::string& asked) {
  const std::vector<int> counts = counts_of(m);
  if (std::find(counts.begin(), counts.end(), devices) == counts.end()) {
    std::string list;
    for (const int n : counts) list += (list.empty() ? "" : ", ") + std::to_string(n);
    throw bad_input(asked + ": '" + m.name + "' has whole parts of " + list + " devices; take one of them");
  }
  machine out = innermost(m, devices);
  if (devices < m.devices()) out.name = std::to_string(devices) + " of " + m.name;
  return out;
}

}  // namespace cfp
