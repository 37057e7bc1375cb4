// bench/device.cu where there is no GPU: every line of the host's half, over the stand-in for CUDA and its libraries.
#include "streamed_gpus.hpp"

#include "../../bench/device.hpp"

namespace device_bench {
template <class T>
using gpu = streamed::lone_gpu<T>;
}  // namespace device_bench

#include "../../bench/device_work.hpp"
