// The executor compiles for GPUs: of a rank among others, and of one alone in the place of any.
#include <cfp/runtime/cuda/device.cuh>

template class cfp::cuda::executor<cfp::bf16, cfp::cuda::lone_gpu<cfp::bf16>>;
template class cfp::cuda::executor<cfp::bf16, cfp::cuda::rank_gpu<cfp::bf16>>;
template class cfp::cuda::executor<float, cfp::cuda::rank_gpu<float>>;
