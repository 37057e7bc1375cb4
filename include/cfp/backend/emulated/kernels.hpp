// The kernels for GPUs, to be emulated. With CFP_EMULATED_COMPILED defined, files of their own must hold
// `template class cfp::cuda::kernels<float, cfp::emulated::queue>;`, the same for bfloat16 and half precision, and,
// with CFP_INLINE defined as nothing, emulated/gpus.hpp.
#pragma once

#include <cfp/backend/cuda/kernel/kernels.hpp>
#include <cfp/backend/emulated/queue.hpp>

#if defined(CFP_EMULATED_COMPILED)
extern template class cfp::cuda::kernels<float, cfp::emulated::queue>;
extern template class cfp::cuda::kernels<cfp::bf16, cfp::emulated::queue>;
extern template class cfp::cuda::kernels<cfp::fp16, cfp::emulated::queue>;
#endif
