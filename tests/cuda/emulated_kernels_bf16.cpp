#include "emulated_queue.hpp"

#include <cfp/runtime/cuda/kernels.hpp>

template class cfp::cuda::kernels<cfp::bf16, emulated::queue>;
