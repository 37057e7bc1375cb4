// Ranks in a mesh, and which of them meet along an axis, or along several at once.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Ranks in a mesh, row-major: the last axis varies fastest. The groups they meet in have numbers: `whole`, each axis,
/// then each set of several axes that have more than one rank each; then, of every axis, the pairs of ranks on it.
class rank_grid {
 public:
  static constexpr int whole = -1;  ///< the group of all ranks

  /// Throws bad_input for an axis smaller than 1.
  explicit rank_grid(std::vector<int> mesh) : mesh_(std::move(mesh)) {
    for (const int n : mesh_) {
      if (n < 1) throw bad_input("a mesh axis has at least 1 rank, got: " + std::to_string(n));
      size_ *= n;
    }
    for (std::size_t a = 0; a < mesh_.size(); ++a) axes_.push_back(1U << a), pairs_ += 2 * mesh_[a];
    for (unsigned axes = 1; axes < 1U << mesh_.size(); ++axes)
      if ((axes & (axes - 1)) != 0 && long_axes(axes)) axes_.push_back(axes);
  }

  int size() const { return size_; }
  const std::vector<int>& mesh() const { return mesh_; }

  /// Groups along axes have numbers below this, from `whole` on, and all groups below the next.
  int groups() const { return static_cast<int>(axes_.size()); }
  int groups_and_pairs() const { return groups() + pairs_; }
  /// The group of two ranks alone, which differ only on an axis, for what the one with coordinate `from` sends there:
  /// another one than for the way back, so that both can be under way. All pairs of equal from + to, modulo the size of
  /// the axis, have one number for either way: so every rank is in one of them, some by themselves.
  int pair(int axis, int from, int to) const {
    return groups() + 2 * std::accumulate(mesh_.begin(), mesh_.begin() + axis, 0) +
           2 * ((from + to) % mesh_[static_cast<std::size_t>(axis)]) + (from < to ? 0 : 1);
  }
  /// The group along a set of axes, a bit each: one axis, or several of more than one rank. -1 if there is none.
  int along(unsigned axes) const {
    const auto at = std::find(axes_.begin(), axes_.end(), axes);
    return at == axes_.end() ? -1 : static_cast<int>(at - axes_.begin());
  }
  /// "", " on axis 1", " on axes 0 and 2", " in pairs on axis 1": which group, in messages.
  std::string where(int group) const {
    if (group < 0 || group >= groups_and_pairs()) return "";
    if (group >= groups()) return " in pairs on axis " + std::to_string(paired(group).axis);
    const unsigned axes = axes_[static_cast<std::size_t>(group)];
    std::string out;
    for (std::size_t a = 0; a < mesh_.size(); ++a)
      if ((axes >> a & 1) != 0) out.append(out.empty() ? "" : " and ").append(std::to_string(a));
    return (group < static_cast<int>(mesh_.size()) ? " on axis " : " on axes ") + out;
  }

  /// Whether a group along several axes is all ranks.
  bool is_of_all(int group) const {
    return group >= static_cast<int>(mesh_.size()) && group < groups() &&
           members(0, group).size() == static_cast<std::size_t>(size_);
  }

  /// Place of a rank in its group: on `whole` the rank itself, on an axis its coordinate.
  int coordinate(int rank, int group) const {
    if (group == whole) return rank;
    if (group >= groups()) return members(rank, group).front() == rank ? 0 : 1;
    int out = 0;
    each_axis(group, [&](std::size_t a) { out = out * mesh_[a] + rank / stride(a) % mesh_[a]; });
    return out;
  }

  /// The ranks that differ from one only on the axes of a group, itself included, in order.
  std::vector<int> members(int rank, int group) const {
    std::vector<int> out;
    if (group == whole) {
      for (int r = 0; r < size_; ++r) out.push_back(r);
      return out;
    }
    if (group >= groups()) {
      const pairing p = paired(group);
      const int n = mesh_[static_cast<std::size_t>(p.axis)], step = stride(static_cast<std::size_t>(p.axis)),
                mine = rank / step % n, other = (p.sum - mine + n) % n;
      out.push_back(rank + (std::min(mine, other) - mine) * step);
      if (other != mine) out.push_back(rank + (std::max(mine, other) - mine) * step);
      return out;
    }
    out.push_back(rank);
    each_axis(group, [&](std::size_t a) { out.front() -= rank / stride(a) % mesh_[a] * stride(a); });
    each_axis(group, [&](std::size_t a) {
      std::vector<int> more;
      for (const int first : out)
        for (int i = 0; i < mesh_[a]; ++i) more.push_back(first + i * stride(a));
      out = std::move(more);
    });
    return out;
  }

 private:
  struct pairing {
    int axis = 0, sum = 0;  // of the coordinates, modulo the size of the axis
  };
  pairing paired(int group) const {
    pairing out{0, (group - groups()) / 2};
    while (out.sum >= mesh_[static_cast<std::size_t>(out.axis)]) out.sum -= mesh_[static_cast<std::size_t>(out.axis++)];
    return out;
  }
  bool long_axes(unsigned axes) const {
    for (std::size_t a = 0; a < mesh_.size(); ++a)
      if ((axes >> a & 1) != 0 && mesh_[a] == 1) return false;
    return true;
  }
  template <class F>
  void each_axis(int group, const F& f) const {
    for (std::size_t a = 0; a < mesh_.size(); ++a)
      if ((axes_[static_cast<std::size_t>(group)] >> a & 1) != 0) f(a);
  }
  int stride(std::size_t axis) const {
    int n = 1;
    for (std::size_t i = axis + 1; i < mesh_.size(); ++i) n *= mesh_[i];
    return n;
  }

  std::vector<int> mesh_;
  std::vector<unsigned> axes_;  // of each group along axes, a bit each
  int size_ = 1, pairs_ = 0;
};

}  // namespace cfp
