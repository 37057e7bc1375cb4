// What the stand-in for CUDA and NCCL can be told to do wrong, and what it has seen.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <functional>

namespace stand_in {

inline constexpr int none = -1;

/// Ranks are those of the world, GPUs have the numbers of their ranks.
struct faults {
  int gpus = 64;
  std::atomic<int> has_no_gpu{none};      ///< cudaGetDeviceCount fails on every rank (any number but `none`)
  std::atomic<int> start_refused{none};   ///< ncclCommInitRankConfig fails on this rank
  std::atomic<int> start_unending{none};  ///< this rank never connects
  std::atomic<int> split_broken{none};    ///< ncclCommSplit fails on this rank, some time after it was called
  std::atomic<int> issue_unending{none};  ///< NCCL never gets to give this rank's collectives to the GPU
  std::atomic<int> broken{none};          ///< this rank's communicators report an asynchronous error
  std::atomic<int> stream_broken{none};   ///< work on this rank's GPU fails
  std::atomic<int> end_unending{none};    ///< this rank's communicators never finalise
};
inline faults fault;

/// Bytes of each GPU: all, and what is taken before anybody asks for memory.
struct gpu_size {
  std::atomic<long> total{1l << 40};
  static constexpr long context = 3 << 20, communicator = 1 << 19;
};
inline gpu_size size_of_gpu;

/// The one GPU that this thread sees, as schedulers may show it; none: all of them.
inline thread_local int only_gpu = none;

struct record {
  std::atomic<int> made{0}, aborted{0}, destroyed{0};  ///< communicators
  std::atomic<int> events{0};                          ///< that exist
  std::atomic<int> graphs{0};                          ///< captured
  std::atomic<int> pinned{0};                          ///< pieces of page-locked memory that exist
  std::atomic<int> asked{0};                           ///< times that anybody asked how far a stream has come
  std::atomic<int> launches{0};                        ///< of kernels and products, not those of graphs
  std::atomic<int> misuses{0};  ///< calls that a real library would not allow, or that would spoil a capture
};
inline record seen;

inline void reset() {
  fault.gpus = 64;
  size_of_gpu.total = 1l << 40;
  for (std::atomic<int>* f : {&fault.has_no_gpu, &fault.start_refused, &fault.start_unending, &fault.split_broken,
                              &fault.issue_unending, &fault.broken, &fault.stream_broken, &fault.end_unending})
    *f = none;
  for (std::atomic<int>* n : {&seen.made, &seen.aborted, &seen.destroyed, &seen.events, &seen.graphs, &seen.pinned,
                              &seen.asked, &seen.launches, &seen.misuses})
    *n = 0;
}

/// Work at the end of a stream.
void later(cudaStream_t, std::function<void()> work);

}  // namespace stand_in
