// Ranks that have an NVIDIA GPU each: see gpus.hpp.
#pragma once

#include <cfp/backend/cuda/device/describe_gpu.hpp>
#include <cfp/backend/cuda/device/device.cuh>
#include <cfp/backend/gpus.hpp>
#include <cfp/backend/ranks_on.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>
#include <cfp/core/bad_input.hpp>

namespace cfp::inline v0_1 {

namespace detail {

/// `Pool` makes the ranks, `Context` is what it gives them: threads or processes.
template <class Pool, class Context>
std::unique_ptr<backend> gpu_ranks(const mesh_shape& mesh, number type, const own_kernels& own) {
  if (!own.empty())
    throw bad_input(
        "kernels of one's own run on GPUs only where nvcc compiles them: add them to "
        "cuda::kernels there");
  const std::string what = cuda::describe_gpu().name;
  const auto of = [&]<class T>(T) -> std::unique_ptr<backend> {
    return std::make_unique<ranks_on<cuda::rank_gpu<T>, Pool, Context>>(mesh, type, cuda::parts<T, cuda::queue>(),
                                                                        what);
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

CFP_INLINE std::unique_ptr<backend> gpus(const mesh_shape& mesh, number type, const own_kernels& own) {
  return detail::gpu_ranks<rank_pool, rank_context>(mesh, type, own);
}

}  // namespace cfp
