// The strategies of a layer that Galvatron looks at (Miao et al., VLDB 2023, arXiv 2211.13878): for each
// number of pipeline stages a decision tree over the devices of one stage, a level for each paradigm that is used.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// Data parallel, data parallel with sharded weights and state (ZeRO-3), tensor parallel.
enum class paradigm : std::uint8_t { data, sharded_data, tensor };

/// One level of a strategy: so many ways, by a paradigm.
struct strategy_level {
  paradigm how = paradigm::data;
  int degree = 1;
};

struct hybrid_strategy {
  int pipeline = 1;                    ///< stages, outermost
  std::vector<strategy_level> levels;  ///< of the devices of a stage, outermost first; none: one device
  bool recomputes = false;             ///< keeps only what enters the layer
};

/// As "pp2-sdp2-tp2", outermost first.
inline std::string to_string(const hybrid_strategy& s) {
  std::string out = "pp" + std::to_string(s.pipeline);
  for (const strategy_level& l : s.levels)
    out += (l.how == paradigm::data ? "-dp" : l.how == paradigm::tensor ? "-tp" : "-sdp") + std::to_string(l.degree);
  return out + (s.recomputes ? "-ckpt" : "");
}

/// What is enumerated.
struct hybrid_space {
  bool mixes_data = false;  ///< data and sharded data parallel in one layer too; the paper prunes those
  bool recomputes = false;  ///< each strategy also with recomputation
};

namespace detail {

inline bool may_follow(const std::vector<strategy_level>& levels, paradigm next, bool mixes_data) {
  for (const strategy_level& l : levels) {
    if (l.how == next) return false;  // one level for each paradigm
    if (!mixes_data && l.how != paradigm::tensor && next != paradigm::tensor) return false;
  }
  return true;
}

// All ways to share `devices` out over further levels: the order matters, inner levels have the faster links.
inline void add_levels(hybrid_strategy& s, int devices, const hybrid_space& of, std::vector<hybrid_strategy>& to) {
  if (devices == 1) {
    to.push_back(s);
    if (!of.recomputes) return;
    to.push_back(s);
    to.back().recomputes = true;
    return;
  }
  for (const paradigm how : {paradigm::data, paradigm::sharded_data, paradigm::tensor}) {
    if (!may_follow(s.levels, how, of.mixes_data)) continue;
    for (int degree = 2; degree <= devices; degree *= 2) {
      s.levels.push_back({how, degree});
      add_levels(s, devices / degree, of, to);
      s.levels.pop_back();
    }
  }
}

}  // namespace detail

/// The strategies on a number of devices. Throws bad_input where that is no power of two.
inline std::vector<hybrid_strategy> hybrid_strategies(int devices, const hybrid_space& of = {}) {
  if (devices < 1 || (devices & (devices - 1)) != 0)
    throw bad_input("strategies are enumerated for a power of two of devices, not " + std::to_string(devices));
  std::vector<hybrid_strategy> out;
  for (int pipeline = 1; pipeline <= devices; pipeline *= 2) {
    hybrid_strategy s;
    s.pipeline = pipeline;
    detail::add_levels(s, devices / pipeline, of, out);
  }
  return out;
}

}  // namespace cfp
