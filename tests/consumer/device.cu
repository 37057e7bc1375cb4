// What a consumer of the component cuda compiles with nvcc.
#include <cfp/communicator/nccl/nccl_communicator.hpp>
#include <cfp/op/bf16.hpp>

#include <concepts>

template <std::convertible_to<float> T>
__global__ void twice(T* x) {
  x[threadIdx.x] = T(2 * static_cast<float>(x[threadIdx.x]));
}

void twice_everywhere(const cfp::nccl_communicator& group, cfp::bf16* x, std::size_t count) {
  twice<<<1, static_cast<unsigned>(count), 0, group.stream()>>>(x);
  group.all_reduce(x, count, cfp::reduction::sum);
  group.wait();
}
