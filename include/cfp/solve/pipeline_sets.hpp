// Which pipelines a number of devices is made into, where sequences have many lengths: few that take long ones, more
// that are quick with short ones. (Hydraulis' strategies, arXiv 2412.07894.)
#pragma once

#include <cfp/solve/sequence_dispatch.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Calls `visit` with how many pipelines of each kind there are, for every set that takes exactly so many devices.
inline void every_pipeline_set(const std::vector<sequence_pipeline>& kinds, int devices,
                               const std::function<void(const std::vector<int>&)>& visit) {
  for (const sequence_pipeline& k : kinds)
    if (k.devices < 1) throw bad_input("a pipeline has 1 device or more, not " + std::to_string(k.devices));
  std::vector<int> count(kinds.size(), 0);
  const std::function<void(std::size_t, int)> from = [&](std::size_t k, int left) {
    if (k == kinds.size()) {
      if (left == 0) visit(count);
      return;
    }
    for (count[k] = 0; count[k] * kinds[k].devices <= left; ++count[k]) from(k + 1, left - count[k] * kinds[k].devices);
    count[k] = 0;
  };
  from(0, devices);
}

inline std::vector<sequence_pipeline> pipelines_of(const std::vector<sequence_pipeline>& kinds,
                                                   const std::vector<int>& count) {
  std::vector<sequence_pipeline> out;
  for (std::size_t k = 0; k < kinds.size(); ++k) out.insert(out.end(), static_cast<std::size_t>(count[k]), kinds[k]);
  return out;
}

struct pipeline_set {
  std::vector<int> count;  ///< of each kind; none: no set takes all sequences
  dispatched plan{};
  long looked_at = 0, left_out = 0;  ///< sets that sequences were given to, and those that cannot be better
};

/// The set in which a batch of sequences takes the least time. Left out are sets that no sequence of the longest fits,
/// and those in which all their pipelines together, each as quick as the quickest, take longer than one that was found.
inline pipeline_set best_pipeline_set(const std::vector<sequence_pipeline>& kinds, int devices,
                                      const std::vector<long>& lengths, long most = 200000, bool prune = true) {
  pipeline_set out;
  out.plan.ms = std::numeric_limits<double>::infinity();
  every_pipeline_set(kinds, devices, [&](const std::vector<int>& count) {
    const std::vector<sequence_pipeline> all = pipelines_of(kinds, count);
    double quickest = 0;
    for (const long l : lengths) {
      double least = std::numeric_limits<double>::infinity();
      for (const sequence_pipeline& p : all)
        if (p.takes(l)) least = std::min(least, p.ms(l));
      quickest += least;
    }
    const bool none_takes = !(quickest < std::numeric_limits<double>::infinity());
    if (none_takes || (prune && quickest / static_cast<double>(all.size()) >= out.plan.ms)) {
      ++out.left_out;
      return;
    }
    ++out.looked_at;
    dispatched plan = dispatch_sequences(lengths, all, most);
    if (plan.ms < out.plan.ms) out.plan = std::move(plan), out.count = count;
  });
  return out;
}

}  // namespace cfp
