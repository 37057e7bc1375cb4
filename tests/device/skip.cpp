// Without a GPU, tests that need one end at once: one sentence, exit code 77.
#include <cfp/communicator/nccl/cuda_error.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

[[maybe_unused]] const bool there = [] {
  int count = 0;
  const cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count > 0) return true;
  std::fprintf(stderr, "no GPU here: %s; run this where nvidia-smi lists one\n",
               cfp::detail::cuda_says("cudaGetDeviceCount", e != cudaSuccess ? e : cudaErrorNoDevice).c_str());
  std::_Exit(77);
}();

}  // namespace
