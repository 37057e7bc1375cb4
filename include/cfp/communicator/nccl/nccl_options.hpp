// How a rank with a GPU uses NCCL.
#pragma once

#include <cuda_runtime.h>

#include <chrono>

namespace cfp::inline v0_1 {

struct nccl_options {
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);  ///< of every wait
  cudaStream_t stream = nullptr;                                 ///< of the collectives, unless they are told another
  bool share_gpus = false;  ///< several processes on one GPU, through sockets: tests what is computed, not how fast
};

}  // namespace cfp
