// What a program that is built with GPUs asks for, over the stand-in: cfp::gpus, cfp::shared_gpus, cfp::gpu_here. Such
// a program fails if it made a call that CUDA or NCCL would not have allowed.
#include "streamed_gpus.hpp"

#include <cfp/backend/gpus.hpp>
#include <cfp/profile/gpu_here.hpp>
#include <cfp/profile/measure/instruction_timer.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

struct watch {
  watch() {
    if (const char* gpus = std::getenv("CFP_STAND_IN_GPUS")) stand_in::fault.gpus = std::atoi(gpus);
  }
  ~watch() {
    if (stand_in::seen.misuses == 0) return;
    std::fprintf(stderr, "%d calls that CUDA or NCCL would not have allowed\n", stand_in::seen.misuses.load());
    _exit(70);
  }
} const watched;

}  // namespace

namespace cfp::inline v0_1 {

std::unique_ptr<backend> gpus(const mesh_shape& mesh, number type, const own_kernels& own) {
  return streamed::gpus(mesh, type, own);
}

std::unique_ptr<backend> shared_gpus(const mesh_shape& mesh, number type, const own_kernels& own) {
  return streamed::gpus_with<cuda::matrix_library>(mesh, type, own, true);
}

instruction_device gpu_here() {
  struct timed {
    streamed::lone_gpu<bf16> gpu{};
    instruction_timer<streamed::lone_gpu<bf16>> timer{gpu, {0, 1, 1}};
  };
  return {
      "a GPU of the stand-in",
      [all = std::make_shared<timed>()](const instruction& i, const program& p,
                                        const graph& g) -> std::optional<double> { return all->timer(i, p, g).ms; }};
}

}  // namespace cfp
