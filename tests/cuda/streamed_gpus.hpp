// Ranks with a GPU each, all of it what runs where there are GPUs, but that CUDA, cuBLASLt and NCCL are the stand-in,
// and kernels are emulated: streams, events, graphs, products, collectives, waits and failures are the real code.
#pragma once

#include "stand_in.hpp"

#include <cfp/backend/cuda/device/rank_gpu.hpp>
#include <cfp/backend/cuda/product/matrix_library.hpp>
#include <cfp/backend/emulated/kernels.hpp>
#include <cfp/backend/host/product_kernel.hpp>
#include <cfp/backend/host/stored_narrow.hpp>
#include <cfp/backend/own_kernels.hpp>
#include <cfp/backend/ranks_on.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace streamed {

inline std::chrono::nanoseconds deadline = std::chrono::seconds(20);  // of what is made next

/// In the place of cuBLASLt products by the host's library, to the bit those of emulated GPUs; alone, what follows is
/// left to kernels.
class host_products {
 public:
  class product {
   public:
    product() = default;
    product(const cfp::call& c, void (*by)(const cfp::call&)) : call_(c), run_(by) {}
    explicit operator bool() const { return run_ != nullptr; }
    void run(cudaStream_t stream) const {
      stand_in::later(stream, [c = call_, by = run_] { by(c); });
    }

   private:
    cfp::call call_{};
    void (*run_)(const cfp::call&) = nullptr;
  };

  template <class T>
  product prepare(const cfp::call& c, const cfp::cuda::epilogue& e) const {
    if (e.any()) return {};
    return {c, cfp::host::stored_as<T, &cfp::host::run_product<cfp::wide_t<T>>>()};
  }
  void choose(cudaStream_t, const std::function<void()>&) const {}
  void choose(std::span<const cfp::cuda::algorithm_choice>) const {}
  std::vector<cfp::cuda::algorithm_choice> choices() const { return {}; }
  static std::string name() { return "the host's"; }
};

template <class T, class Library>
using gpu = cfp::cuda::basic_gpu<T, cfp::emulated::queue, Library>;

template <class T, class Library>
struct rank_gpu : cfp::cuda::basic_rank_gpu<gpu<T, Library>> {
  rank_gpu(const typename gpu<T, Library>::parts& shared, cfp::rank_context& rank)
      : cfp::cuda::basic_rank_gpu<gpu<T, Library>>(shared, rank, {.deadline = deadline}) {}
};

template <class Library>
std::unique_ptr<cfp::backend> gpus_with(const cfp::mesh_shape& mesh, cfp::number type) {
  cfp::emulated::put_into_stream = &stand_in::later;
  openblas_set_num_threads(1);
  const auto of = [&]<class T>(T) -> std::unique_ptr<cfp::backend> {
    return std::make_unique<cfp::ranks_on<rank_gpu<T, Library>, cfp::rank_pool, cfp::rank_context>>(
        mesh, type, typename gpu<T, Library>::parts(), "a GPU of the stand-in");
  };
  if (type == cfp::number::float32) return of(float{});
  if (type == cfp::number::bfloat16) return of(cfp::bf16{});
  throw std::invalid_argument("these GPUs have kernels for float32 and bfloat16");
}

/// As cfp::gpus.
inline std::unique_ptr<cfp::backend> gpus(const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels&) {
  return gpus_with<cfp::cuda::matrix_library>(mesh, type);
}

}  // namespace streamed
