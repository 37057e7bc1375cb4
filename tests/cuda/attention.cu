// Every kernel of attention compiles for GPUs.
#include <cfp/runtime/cuda/attention.hpp>
#include <cfp/runtime/cuda/thread.cuh>

#include <cuda_fp16.h>

namespace {

struct queue {
  template <class Kernel>
  void launch(const Kernel& k, long blocks, long shared_bytes = 0) const {
    cfp::cuda::run_kernel<Kernel><<<static_cast<unsigned>(blocks), Kernel::threads, static_cast<std::size_t>(shared_bytes)>>>(k);
  }
};

template <class T>
void run(const cfp::cuda::attention_call& c) {
  cfp::cuda::run_attention_forward<T>(queue{}, c);
  cfp::cuda::run_attention_backward<T>(queue{}, c);
}

}  // namespace

void attention(const cfp::cuda::attention_call& c) {
  run<cfp::bf16>(c);
  run<__half>(c);
}
