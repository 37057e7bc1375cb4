// Machines that one may choose among, with prices.
#pragma once

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

}  // namespace cfp
