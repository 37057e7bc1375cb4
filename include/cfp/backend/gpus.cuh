// Ranks that have an NVIDIA GPU each: see gpus.hpp.
#pragma once

#include <cfp/backend/cuda/device/describe_gpu.hpp>
#include <cfp/backend/cuda/device/device.cuh>
#include <cfp/backend/cuda/gpu_ranks.hpp>
#include <cfp/backend/gpus.hpp>
#include <cfp/core/config.hpp>

namespace cfp::inline v0_1 {

CFP_INLINE std::unique_ptr<backend> gpus(const mesh_shape& mesh, number type, const own_kernels& own) {
  return cuda::gpu_ranks<cuda::gpu>(mesh, type, own, cuda::describe_gpu().name);
}

CFP_INLINE std::unique_ptr<backend> shared_gpus(const mesh_shape& mesh, number type, const own_kernels& own) {
  nccl_options options;
  options.share_gpus = true;
  return cuda::gpu_ranks<cuda::gpu>(mesh, type, own, cuda::describe_gpu().name, options);
}

}  // namespace cfp
