// The kernels of the catalogue as a GPU runs them. With CFP_COMPILED defined they are those of a compiled library.
#pragma once

#include <cfp/backend/cuda/device/queue.cuh>
#include <cfp/backend/cuda/kernel/kernels.hpp>

#if defined(CFP_COMPILED)
extern template class cfp::cuda::kernels<float, cfp::cuda::queue>;
extern template class cfp::cuda::kernels<cfp::bf16, cfp::cuda::queue>;
extern template class cfp::cuda::kernels<cfp::fp16, cfp::cuda::queue>;
#endif
