#include "emulated_queue.hpp"

#include <cfp/runtime/cuda/kernels.hpp>

template class cfp::cuda::kernels<float, emulated::queue>;
