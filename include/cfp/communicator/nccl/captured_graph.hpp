// A CUDA graph that is ready to be launched.
#pragma once

#include <cfp/communicator/nccl/cuda_error.hpp>

#include <cuda_runtime.h>

#include <memory>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Owns a graph that was captured. NCCL's communicators end only when the graphs that call them have: whoever ends them
/// releases those first, wherever their owners are.
class captured_graph {
 public:
  explicit captured_graph(cudaGraphExec_t made) : made_(made) {}
  captured_graph(const captured_graph&) = delete;
  captured_graph& operator=(const captured_graph&) = delete;
  ~captured_graph() { release(); }

  /// Null once it is released.
  cudaGraphExec_t get() const { return made_; }
  /// What of it still runs on the GPU goes on.
  void release() {
    if (made_ != nullptr) cudaGraphExecDestroy(std::exchange(made_, nullptr));
  }

 private:
  cudaGraphExec_t made_;
};

/// Whether what is put into the stream becomes part of a graph.
inline bool capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  detail::cuda_check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

/// Those of a rank, whoever owns them.
class captured_graphs {
 public:
  void hold(const std::shared_ptr<captured_graph>& g) {
    std::erase_if(held_, [](const auto& one) { return one.expired(); });
    held_.push_back(g);
  }
  void release() {
    for (const auto& one : std::exchange(held_, {}))
      if (const auto g = one.lock()) g->release();
  }

 private:
  std::vector<std::weak_ptr<captured_graph>> held_;
};

}  // namespace cfp
