// The GPU here as a device that says how long instructions take: see gpu_here.hpp.
#pragma once

#include <cfp/backend/cuda/device/describe_gpu.hpp>
#include <cfp/backend/cuda/device/device.cuh>
#include <cfp/core/config.hpp>
#include <cfp/profile/gpu_here.hpp>
#include <cfp/profile/measure/instruction_timer.hpp>

#include <memory>

namespace cfp::inline v0_1 {

namespace detail {
struct timed_gpu {
  cuda::lone_gpu<bf16> gpu;
  instruction_timer<cuda::lone_gpu<bf16>> timer{gpu, {0.05, 5, 25}};
};
}  // namespace detail

CFP_INLINE instruction_device gpu_here() {
  const std::string called = cuda::describe_gpu().name;
  return {called,
          [all = std::make_shared<detail::timed_gpu>()](const instruction& i, const program& p,
                                                        const graph& g) -> std::optional<double> {
            try {
              return all->timer(i, p, g).ms;
            } catch (const cuda::out_of_memory&) {
              return std::nullopt;
            }
          }};
}

}  // namespace cfp
