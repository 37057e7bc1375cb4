#include <cfp/runtime/cuda/device.cuh>

template class cfp::cuda::kernels<cfp::bf16, cfp::cuda::queue>;
template class cfp::cuda::executor<cfp::bf16, cfp::cuda::lone_gpu<cfp::bf16>>;
template class cfp::cuda::executor<cfp::bf16, cfp::cuda::rank_gpu<cfp::bf16>>;
