// Ranks that cases of whole trainings run on: a GPU alone where nvcc compiles them, emulated GPUs elsewhere.
#pragma once

#include "tested_device.hpp"

#include <cfp/backend/ranks_on.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

#if defined(__CUDACC__)

namespace tested {

constexpr int two = 1;  ///< ranks, where a GPU is not alone
/// Sigmoids are off by up to 2^-18 of themselves, not 2^-24: that decides the direction of 64 times as many elements,
/// and the differences of tensors are roots of sums of squares.
constexpr double wider = 8;

template <class T>
struct rank_gpu : cfp::cuda::lone_gpu<T> {
  rank_gpu(const typename cfp::cuda::gpu<T>::parts& shared, cfp::rank_context& rank) : cfp::cuda::lone_gpu<T>(shared) {
    this->be(rank.rank);
  }
  cfp::traffic counted(int) const { return {}; }
  void reset_counted() const {}
};

inline std::unique_ptr<cfp::backend> ranks(const cfp::mesh_shape& mesh, cfp::number type, unsigned) {
  const auto of = [&]<class T>(T) -> std::unique_ptr<cfp::backend> {
    using on = cfp::ranks_on<rank_gpu<T>, cfp::rank_pool, cfp::rank_context>;
    return std::make_unique<on>(mesh, type, typename rank_gpu<T>::parts(), "a GPU");
  };
  return type == cfp::number::float32 ? of(float{}) : of(cfp::bf16{});
}

}  // namespace tested

#else

#include <cfp/backend/emulated_gpus.hpp>

namespace tested {

constexpr int two = 2;
constexpr double wider = 1;

/// `order`: in which threads take turns.
inline std::unique_ptr<cfp::backend> ranks(const cfp::mesh_shape& mesh, cfp::number type, unsigned order) {
  return cfp::emulated_gpus_in_order(mesh, type, order);
}

}  // namespace tested

#endif
