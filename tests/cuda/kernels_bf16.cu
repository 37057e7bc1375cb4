// Every kernel of the catalogue compiled for GPUs, for bfloat16.
#include <cfp/runtime/cuda/kernels.hpp>
#include <cfp/runtime/cuda/queue.cuh>

template class cfp::cuda::kernels<cfp::bf16, cfp::cuda::queue>;
