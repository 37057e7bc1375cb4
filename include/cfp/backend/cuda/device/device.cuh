// GPUs that run programs by the kernels that nvcc compiles and by cuBLASLt.
#pragma once

#include <cfp/backend/cuda/device/kernels.cuh>
#include <cfp/backend/cuda/device/rank_gpu.hpp>
#include <cfp/backend/cuda/product/matrix_library.hpp>

namespace cfp::inline v0_1::cuda {

template <class T>
using gpu = basic_gpu<T, queue, matrix_library>;
template <class T>
using rank_gpu = basic_rank_gpu<gpu<T>>;
template <class T>
using lone_gpu = basic_lone_gpu<gpu<T>>;

}  // namespace cfp::cuda
