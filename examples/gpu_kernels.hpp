// The catalogue's kernels for GPUs, compiled once for all programs here (gpu_kernels.cu).
#pragma once

#include <cfp/runtime/cuda/device.cuh>

extern template class cfp::cuda::kernels<cfp::bf16, cfp::cuda::queue>;
extern template class cfp::cuda::executor<cfp::bf16, cfp::cuda::lone_gpu<cfp::bf16>>;
