// Ranks in a mesh, and which of them meet along an axis.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Ranks in a mesh, row-major: the last axis varies fastest.
class rank_grid {
 public:
  static constexpr int whole = -1;  ///< in place of an axis: all ranks

  /// Throws bad_input for an axis smaller than 1.
  explicit rank_grid(std::vector<int> mesh) : mesh_(std::move(mesh)) {
    for (const int n : mesh_) {
      if (n < 1) throw bad_input("a mesh axis has at least 1 rank, got: " + std::to_string(n));
      size_ *= n;
    }
  }

  int size() const { return size_; }
  const std::vector<int>& mesh() const { return mesh_; }

  /// Coordinate of a rank on an axis; on `whole`, the rank itself.
  int coordinate(int rank, int axis) const {
    if (axis == whole) return rank;
    return rank / stride(axis) % mesh_[static_cast<std::size_t>(axis)];
  }

  /// The ranks that differ from one only on an axis, itself included, in order.
  std::vector<int> members(int rank, int axis) const {
    std::vector<int> out;
    const int apart = axis == whole ? 1 : stride(axis),
              n = axis == whole ? size_ : mesh_[static_cast<std::size_t>(axis)];
    for (int i = 0; i < n; ++i) out.push_back(rank + (i - coordinate(rank, axis)) * apart);
    return out;
  }

 private:
  int stride(int axis) const {
    int n = 1;
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < mesh_.size(); ++i) n *= mesh_[i];
    return n;
  }

  std::vector<int> mesh_;
  int size_ = 1;
};

}  // namespace cfp
