// Joint choices of several nodes of a problem.
#pragma once

#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

/// Joint choices of some nodes, numbered.
class joint_choices {
 public:
  joint_choices() = default;
  joint_choices(const problem& p, const std::vector<std::size_t>& nodes) {
    for (const std::size_t n : nodes) sizes_.push_back(p.nodes[n].size());
  }
  [[nodiscard]] double count() const {
    double all = 1;
    for (const std::size_t s : sizes_) all *= static_cast<double>(s);
    return all;
  }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(count()); }
  /// What the k-th node chooses in a joint choice.
  [[nodiscard]] std::size_t of(std::size_t joint, std::size_t k) const {
    for (std::size_t i = sizes_.size(); --i > k;) joint /= sizes_[i];
    return joint % sizes_[k];
  }

 private:
  std::vector<std::size_t> sizes_;
};

}  // namespace cfp::detail
