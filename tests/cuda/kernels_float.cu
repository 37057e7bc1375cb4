// Every kernel of the catalogue compiled for GPUs, for float.
#include <cfp/runtime/cuda/kernels.hpp>
#include <cfp/runtime/cuda/queue.cuh>

template class cfp::cuda::kernels<float, cfp::cuda::queue>;
