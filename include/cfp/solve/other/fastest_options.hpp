// What is left to the second of two levels: of each run of layers only the option of the least time, chosen before it
// is known which stage the run is (Alpa's inner level, arXiv 2201.12023, section 4).
#pragma once

#include <cfp/solve/stage_problem.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A problem with only the fastest option of each run and number of devices, of those that a device has the memory for
/// with one micro-batch. Must outlive the searches of `problem`, as what `of` reads must outlive it.
class fastest_options {
 public:
  explicit fastest_options(const stage_problem& of) : problem(of) {
    problem.options = [this, all = of.options](int, int first, int end) -> const std::vector<stage_option>& {
      const auto [at, is_new] = chosen_.try_emplace({first, end});
      if (is_new)
        for (const stage_option& o : all(0, first, end)) add(at->second, o);
      return at->second;
    };
  }
  fastest_options(const fastest_options&) = delete;
  fastest_options& operator=(const fastest_options&) = delete;

  stage_problem problem;

 private:
  void add(std::vector<stage_option>& to, const stage_option& o) const {
    if (o.always + o.kept > problem.memory) return;
    const auto same = std::find_if(to.begin(), to.end(), [&](const stage_option& x) { return x.devices == o.devices; });
    if (same == to.end()) to.push_back(o);
    else if (o.forward + o.backward < same->forward + same->backward) *same = o;
  }

  std::map<std::pair<int, int>, std::vector<stage_option>> chosen_;
};

}  // namespace cfp
