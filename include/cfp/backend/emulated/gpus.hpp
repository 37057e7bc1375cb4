// Ranks that have an emulated GPU each: see emulated_gpus.hpp.
#pragma once

#include <cfp/backend/emulated/device.hpp>
#include <cfp/backend/emulated_gpus.hpp>
#include <cfp/backend/ranks_on.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>
#include <cfp/core/bad_input.hpp>

namespace cfp::inline v0_1 {

namespace detail {

template <class T>
std::unique_ptr<backend> emulated_ranks(const mesh_shape& mesh, number type, unsigned order, const own_kernels& own) {
  emulated::parts<T> parts;
  parts.order = order;
  parts.for_host = own;
  return std::make_unique<ranks_on<emulated::rank_gpu<T, rank_context>, rank_pool, rank_context>>(
      mesh, type, std::move(parts), "emulated GPU");
}

}  // namespace detail

CFP_INLINE std::unique_ptr<backend> emulated_gpus_in_order(const mesh_shape& mesh, number type, unsigned order,
                                                           const own_kernels& own) {
  switch (type) {
    case number::float32: return detail::emulated_ranks<float>(mesh, type, order, own);
    case number::bfloat16: return detail::emulated_ranks<bf16>(mesh, type, order, own);
    case number::float16: return detail::emulated_ranks<fp16>(mesh, type, order, own);
    case number::float64: break;
  }
  throw bad_input("GPUs have no kernels for numbers stored as float64; take float32 or bfloat16");
}

CFP_INLINE std::unique_ptr<backend> emulated_gpus(const mesh_shape& mesh, number type, const own_kernels& own) {
  return emulated_gpus_in_order(mesh, type, 0, own);
}

}  // namespace cfp
