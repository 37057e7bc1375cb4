// What cuBLASLt suggests for each product, and what of it is taken.
#pragma once

#include <cfp/backend/cuda/product/algorithm_choice.hpp>

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
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

  /// Makes the same, of products that are here too.
  void take(std::span<const algorithm_choice> others) {
    for (const algorithm_choice& o : others)
      for (blas_choice& c : all_) {
        const auto which = static_cast<std::size_t>(o.algorithm);
        if (c.product != o.product || which >= c.suggested.size()) continue;
        c.best = which;
        c.chosen = true;
      }
  }

 private:
  std::deque<blas_choice> all_;
};

}  // namespace cfp::cuda
