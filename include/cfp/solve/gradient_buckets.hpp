// Data parallelism as people run it: gradients go out in buckets while backward goes on. Buckets of a size as PyTorch's
// DistributedDataParallel fills them (Li et al., VLDB 2020, arXiv 2006.15704) and as Horovod fuses what is ready
// (Sergeev, Del Balso, arXiv 1802.05799); and the best ones there are.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// What backward makes next: how long it takes, and the gradients that are there then.
struct made_gradients {
  double ms = 0;
  double bytes = 0;
};

/// Milliseconds of a collective of so many bytes; increasing.
using collective_ms = std::function<double(double bytes)>;

/// Buckets, one after the other: of each, the first step that is not its.
struct gradient_buckets {
  std::vector<int> ends;
  double ms = 0;  ///< from the beginning of backward until all are summed up
};

/// As soon as the last gradient of a bucket is there, and the bucket before is through, it goes out. Throws bad_input
/// for ends that do not ascend to the number of steps.
inline double overlapped_ms(const std::vector<made_gradients>& steps, const std::vector<int>& ends,
                            const collective_ms& sum) {
  double ready = 0, through = 0;
  int at = 0;
  for (const int end : ends) {
    if (end <= at || end > static_cast<int>(steps.size()))
      throw bad_input("a bucket ends at step " + std::to_string(end) + " of " + std::to_string(steps.size()) +
                      ", and begins at " + std::to_string(at) + ": ends must ascend");
    double bytes = 0;
    for (; at < end; ++at) {
      ready += steps[static_cast<std::size_t>(at)].ms;
      bytes += steps[static_cast<std::size_t>(at)].bytes;
    }
    through = std::max(through, ready) + sum(bytes);
  }
  if (at < static_cast<int>(steps.size()))
    throw bad_input("buckets end at step " + std::to_string(at) + " of " + std::to_string(steps.size()) +
                    ": the last one must end with the steps");
  return through;
}

/// As DistributedDataParallel fills them: a bucket is full with so many bytes or more (its default: 25 MiB).
inline gradient_buckets buckets_of(double most, const std::vector<made_gradients>& steps, const collective_ms& sum) {
  if (!(most > 0)) throw bad_input("a bucket holds more than 0 bytes, not " + std::to_string(most));
  gradient_buckets out;
  double bytes = 0;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    bytes += steps[n].bytes;
    if (bytes < most && n + 1 < steps.size()) continue;
    out.ends.push_back(static_cast<int>(n + 1));
    bytes = 0;
  }
  out.ms = overlapped_ms(steps, out.ends, sum);
  return out;
}

/// As Horovod fuses them: whenever the last collective is through, or the next gradient is there, all that are there
/// go out together, at most so many bytes of them (its default: 64 MiB), one at least.
inline gradient_buckets fused_ready(double most, const std::vector<made_gradients>& steps, const collective_ms& sum) {
  if (!(most > 0)) throw bad_input("what is fused holds more than 0 bytes, not " + std::to_string(most));
  gradient_buckets out;
  double ready = 0;  // when the last of those that go out is there
  for (std::size_t n = 0; n < steps.size();) {
    double bytes = steps[n].bytes;
    ready += steps[n++].ms;
    out.ms = std::max(out.ms, ready);
    for (; n < steps.size() && ready + steps[n].ms <= out.ms && bytes + steps[n].bytes <= most; ++n)
      ready += steps[n].ms, bytes += steps[n].bytes;
    out.ms += sum(bytes);
    out.ends.push_back(static_cast<int>(n));
  }
  return out;
}

/// The best buckets: for each step when all before it can be through, the sooner the better for all that follows.
inline gradient_buckets best_buckets(const std::vector<made_gradients>& steps, const collective_ms& sum) {
  struct prefix {
    double through = std::numeric_limits<double>::infinity();
    int from = 0;  // where its last bucket begins
  };
  const int all = static_cast<int>(steps.size());
  std::vector<prefix> known(steps.size() + 1);
  known[0].through = 0;
  double ready = 0;
  for (int end = 1; end <= all; ++end) {
    ready += steps[static_cast<std::size_t>(end - 1)].ms;
    double bytes = 0;
    for (int from = end - 1; from >= 0; --from) {
      bytes += steps[static_cast<std::size_t>(from)].bytes;
      const double through = std::max(known[static_cast<std::size_t>(from)].through, ready) + sum(bytes);
      if (through < known[static_cast<std::size_t>(end)].through)
        known[static_cast<std::size_t>(end)] = {through, from};
    }
  }
  gradient_buckets out;
  for (int end = all; end > 0; end = known[static_cast<std::size_t>(end)].from) out.ends.insert(out.ends.begin(), end);
  out.ms = known.back().through;
  return out;
}

}  // namespace cfp
