// Ranks with a GPU each, all of it what runs where there are GPUs, but that CUDA, cuBLASLt and NCCL are the stand-in,
// and kernels are emulated: streams, events, graphs, products, collectives, waits and failures are the real code.
#pragma once

#include "stand_in.hpp"

#include <cfp/backend/cuda/gpu_ranks.hpp>
#include <cfp/backend/cuda/product/matrix_library.hpp>
#include <cfp/backend/emulated/kernels.hpp>
#include <cfp/backend/host/product_kernel.hpp>
#include <cfp/backend/host/stored_narrow.hpp>
#include <cfp/backend/own_kernels.hpp>

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
using rank_gpu = cfp::cuda::basic_rank_gpu<gpu<T, Library>>;

template <class Library>
struct with {
  template <class T>
  using gpu = streamed::gpu<T, Library>;
};

template <class Library>
std::unique_ptr<cfp::backend> gpus_with(const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels& own = {},
                                        bool share = false) {
  cfp::emulated::put_into_stream = &stand_in::later;
  openblas_set_num_threads(1);
  cfp::nccl_options options;
  options.deadline = deadline;
  options.share_gpus = share;
  return cfp::cuda::gpu_ranks<with<Library>::template gpu>(mesh, type, own, "a GPU of the stand-in", options);
}

/// One alone, in the place of any rank.
template <class T>
struct lone_gpu : cfp::cuda::basic_lone_gpu<gpu<T, cfp::cuda::matrix_library>> {
  using base = cfp::cuda::basic_lone_gpu<gpu<T, cfp::cuda::matrix_library>>;
  explicit lone_gpu(const typename base::parts& shared = typename base::parts{}) : base(emulated(shared)) {}

 private:
  static const typename base::parts& emulated(const typename base::parts& shared) {
    cfp::emulated::put_into_stream = &stand_in::later;
    return shared;
  }
};

/// As cfp::gpus.
inline std::unique_ptr<cfp::backend> gpus(const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels& own) {
  return gpus_with<cfp::cuda::matrix_library>(mesh, type, own);
}

}  // namespace streamed
