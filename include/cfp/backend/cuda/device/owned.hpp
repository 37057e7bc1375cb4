// Streams and events of CUDA, owned.
#pragma once

#include <cfp/communicator/nccl/cuda_error.hpp>

#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

namespace cfp::inline v0_1::cuda {

namespace detail {

struct stream_delete {
  void operator()(cudaStream_t s) const { cudaStreamDestroy(s); }
};
struct event_delete {
  void operator()(cudaEvent_t e) const { cudaEventDestroy(e); }
};
using owned_stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, stream_delete>;
using owned_event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, event_delete>;

inline owned_stream make_stream() {
  cudaStream_t s = nullptr;
  check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "make a stream");
  return owned_stream(s);
}
inline owned_event make_event(unsigned flags) {
  cudaEvent_t e = nullptr;
  check(cudaEventCreateWithFlags(&e, flags), "make an event");
  return owned_event(e);
}

}  // namespace detail

}  // namespace cfp::cuda
