// A parameter server in the memory of one process: threads read weights and add updates, each at most so many clocks
// ahead of the slowest (SSP: Ho et al., NIPS 2013).
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

class weight_server {
 public:
  /// What a worker reads at the beginning of a clock.
  struct reading {
    std::vector<double> weights;
    int missed = 0;  ///< clocks before it of which some update may not be in them: those the slowest worker has to go
  };

  /// A staleness of 0 is BSP; `any_staleness` (`pipeline/parameter_server.hpp`): nobody waits.
  weight_server(std::vector<double> weights, int workers, int staleness)
      : weights_(std::move(weights)), clocks_(static_cast<std::size_t>(std::max(0, workers))), staleness_(staleness) {
    if (workers < 1 || staleness < 0)
      throw bad_input("a parameter server has 1 worker or more and a staleness of 0 or more, not " +
                      std::to_string(workers) + " and " + std::to_string(staleness));
  }

  /// Waits until the worker is at most `staleness` clocks ahead of the slowest. It then sees all updates of clocks that
  /// are through, and of those that are not, less than `staleness` ahead of its own, what is there.
  reading read(int worker) {
    std::unique_lock lock(mutex_);
    const int clock = clocks_.at(static_cast<std::size_t>(worker));
    moved_.wait(lock, [&] { return clock - slowest() <= staleness_; });
    reading out{weights_, clock - slowest()};
    for (const auto& [of, sum] : later_)
      if (of - clock < staleness_) add(out.weights, sum);
    return out;
  }

  /// Ends the worker's clock.
  void update(int worker, const std::vector<double>& by) {
    const std::lock_guard lock(mutex_);
    if (by.size() != weights_.size())
      throw bad_input("an update has " + std::to_string(by.size()) + " numbers, the weights " +
                      std::to_string(weights_.size()));
    int& clock = clocks_.at(static_cast<std::size_t>(worker));
    std::vector<double>& sum = later_.try_emplace(clock, by.size()).first->second;
    add(sum, by);
    ++clock;
    for (; !later_.empty() && later_.begin()->first < slowest(); later_.erase(later_.begin()))
      add(weights_, later_.begin()->second);
    moved_.notify_all();
  }

  /// After all updates so far.
  std::vector<double> weights() const {
    const std::lock_guard lock(mutex_);
    std::vector<double> out = weights_;
    for (const auto& [of, sum] : later_) add(out, sum);
    return out;
  }

 private:
  int slowest() const { return *std::min_element(clocks_.begin(), clocks_.end()); }
  static void add(std::vector<double>& to, const std::vector<double>& by) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += by[i];
  }

  mutable std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<double> weights_;                 // after all clocks that are through
  std::map<int, std::vector<double>> later_{};  // sums of updates of clocks that are not
  std::vector<int> clocks_;                     // that each worker is at
  int staleness_;
};

}  // namespace cfp
