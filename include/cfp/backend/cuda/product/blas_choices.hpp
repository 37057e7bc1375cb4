// What cuBLASLt suggests for each product, and what of it is taken.
#pragma once

#include <cfp/backend/cuda/product/algorithm_choice.hpp>

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

namespace cfp::inline v0_1::cuda {

struct blas_choice {
  std::uint64_t product = 0;  ///< as in algorithm_choice
  std::vector<cublasLtMatmulHeuristicResult_t> suggested{};
  std::size_t best = 0;
  bool chosen = false;
};

class blas_choices {
 public:
  /// It stays where it is.
  blas_choice& of(std::uint64_t product) {
    for (blas_choice& c : all_)
      if (c.product == product) return c;
    blas_choice& out = all_.emplace_back();  // nvcc 13.0 fails where one is made of a list in braces
    out.product = product;
    return out;
  }

  /// Those that are made.
  std::vector<algorithm_choice> made() const {
    std::vector<algorithm_choice> out;
    for (const blas_choice& c : all_)
      if (c.chosen) out.push_back({c.product, static_cast<std::int64_t>(c.best)});
    return out;
  }

  /// Makes the same, of products that are here, or will be.
  void take(std::span<const algorithm_choice> others) {
    for (const algorithm_choice& o : others) wanted_[o.product] = static_cast<std::size_t>(o.algorithm);
    for (blas_choice& c : all_) recall(c);
  }
  /// Once its suggestions are there.
  void recall(blas_choice& c) const {
    const auto at = wanted_.find(c.product);
    if (at == wanted_.end() || at->second >= c.suggested.size()) return;
    c.best = at->second;
    c.chosen = true;
  }

 private:
  std::deque<blas_choice> all_;
  std::unordered_map<std::uint64_t, std::size_t> wanted_;
};

}  // namespace cfp::cuda
