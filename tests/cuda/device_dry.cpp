// bench/device.cu where there is no GPU: every line of the host's half, over the stand-in for CUDA and its libraries.
#include "streamed_gpus.hpp"

#include "../../bench/device.hpp"

#include <cfp/profile/gpu_here.hpp>
#include <cfp/profile/measure/instruction_timer.hpp>

namespace device_bench {
template <class T>
struct gpu : cfp::cuda::basic_lone_gpu<streamed::gpu<T, cfp::cuda::matrix_library>> {
  using base = cfp::cuda::basic_lone_gpu<streamed::gpu<T, cfp::cuda::matrix_library>>;
  explicit gpu(const typename base::parts& shared = typename base::parts{}) : base(emulated(shared)) {}

 private:
  static const typename base::parts& emulated(const typename base::parts& shared) {
    cfp::emulated::put_into_stream = &stand_in::later;
    return shared;
  }
};
}  // namespace device_bench

#include "../../bench/device_work.hpp"

namespace cfp::inline v0_1 {

instruction_device gpu_here() {
  struct timed {
    device_bench::gpu<bf16> gpu{};
    instruction_timer<device_bench::gpu<bf16>> timer{gpu, {0, 1, 1}};
  };
  return {
      "a GPU of the stand-in",
      [all = std::make_shared<timed>()](const instruction& i, const program& p,
                                        const graph& g) -> std::optional<double> { return all->timer(i, p, g).ms; }};
}

}  // namespace cfp
