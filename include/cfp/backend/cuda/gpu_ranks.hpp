// Ranks that have a GPU each, however they came to be: threads of this process, or processes that a launcher started.
#pragma once

#include <cfp/backend/cuda/device/rank_gpu.hpp>
#include <cfp/backend/own_kernels.hpp>
#include <cfp/backend/ranks_on.hpp>
#include <cfp/communicator/launched/run_launched.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>
#include <cfp/core/bad_input.hpp>

#include <memory>
#include <string>

namespace cfp::inline v0_1::cuda {

namespace detail {

template <template <class> class Gpu, class Pool, class Context>
std::unique_ptr<backend> gpu_ranks_of(const mesh_shape& mesh, cfp::number type, const std::string& description,
                                      const nccl_options& options) {
  const auto of = [&]<class T>(T) -> std::unique_ptr<backend> {
    using device = basic_rank_gpu<Gpu<T>>;
    typename device::parts shared;
    shared.connected = options;
    return std::make_unique<ranks_on<device, Pool, Context>>(mesh, type, std::move(shared), description);
  };
  switch (type) {
    case number::float32: return of(float{});
    case number::bfloat16: return of(bf16{});
    case number::float16: return of(fp16{});
    case number::float64: break;
  }
  throw bad_input("GPUs have no kernels for numbers stored as float64; take float32 or bfloat16");
}

}  // namespace detail

/// `Gpu<T>` is a basic_gpu for numbers stored as T. Where a launcher started several processes, each is a rank: every
/// one of them makes it alike. Throws bad_input for numbers that GPUs have no kernels for, for kernels of
/// one's own, and for a mesh that has not as many devices as there are processes.
template <template <class> class Gpu>
std::unique_ptr<backend> gpu_ranks(const mesh_shape& mesh, cfp::number type, const own_kernels& own,
                                   const std::string& description, const nccl_options& options = {}) {
  if (!own.empty())
    throw bad_input("kernels of one's own run on GPUs only where nvcc compiles them: add them to cuda::kernels there");
  if (one_of_several())
    return detail::gpu_ranks_of<Gpu, launched_pool, launched_context>(mesh, type, description, options);
  return detail::gpu_ranks_of<Gpu, rank_pool, rank_context>(mesh, type, description, options);
}

}  // namespace cfp::cuda
