// Every kernel of the catalogue compiled for GPUs, for IEEE half precision.
#include <cfp/runtime/cuda/kernels.hpp>
#include <cfp/runtime/cuda/queue.cuh>

template class cfp::cuda::kernels<cfp::fp16, cfp::cuda::queue>;
