// What kernels for GPUs there are, compiled once for all programs here.
#include <cfp/runtime/cuda/no_queue.hpp>

template class cfp::cuda::kernels<cfp::bf16, cfp::cuda::no_queue>;
