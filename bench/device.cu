// What bench_device asks of a GPU.
#include "device.hpp"

#include <cfp/backend/cuda/device/device.cuh>

namespace device_bench {
template <class T>
using gpu = cfp::cuda::lone_gpu<T>;
}  // namespace device_bench

#include "device_work.hpp"
