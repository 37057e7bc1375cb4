#include "gpu.hpp"

#include "gpu_kernels.hpp"

#include <cfp/profile/instruction_timer.hpp>
#include <cfp/runtime/cuda/describe_gpu.hpp>

namespace {

using cfp::bf16;
using device = cfp::cuda::lone_gpu<bf16>;

struct parts {
  cfp::cuda::kernels<bf16, cfp::cuda::queue> kernels{};
  cfp::cuda::fusions<bf16, cfp::cuda::queue> fusions{kernels};
  device gpu{};
  cfp::cuda::instruction_timer<bf16, device> timer{kernels, fusions, gpu, {0.05, 5, 25}};
};

}  // namespace

example::gpu_here example::gpu() {
  const cfp::cuda::gpu_description what = cfp::cuda::describe_gpu();
  return {what.name, [all = std::make_shared<parts>()](const cfp::instruction& i, const cfp::program& p, const cfp::graph& g) -> std::optional<double> {
            try {
              return all->timer(i, p, g).ms;
            } catch (const cfp::cuda::out_of_memory&) {
              return std::nullopt;
            }
          }};
}
