// The GPU here as a device that says how long instructions take. Defined in gpu_here.cuh, which nvcc compiles, or in
// the compiled library `cfp::kernels`.
#pragma once

#include <cfp/profile/instruction_device.hpp>

namespace cfp::inline v0_1 {

/// Of programs lowered for `cuda::catalogue_target(number::bfloat16)`. Throws device_error, in words, if there is
/// no GPU.
instruction_device gpu_here();

}  // namespace cfp
