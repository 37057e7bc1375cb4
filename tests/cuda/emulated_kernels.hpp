// The kernels for GPUs on the emulation, compiled once for all tests (emulated_kernels_*.cpp).
#pragma once

#include "emulated_queue.hpp"

#include <cfp/runtime/cuda/kernels.hpp>

extern template class cfp::cuda::kernels<float, emulated::queue>;
extern template class cfp::cuda::kernels<cfp::bf16, emulated::queue>;
extern template class cfp::cuda::kernels<cfp::fp16, emulated::queue>;
