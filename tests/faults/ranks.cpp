#include "ranks.hpp"

#include "moment.hpp"

#include <cfp/backend/host/host_ranks.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

#if defined(CFP_FAULTS_MPI)
#include <cfp/communicator/mpi/run_processes.hpp>
#endif
#if defined(CFP_FAULTS_GPUS)
#include "../cuda/streamed_gpus.hpp"
#endif

namespace faults {

namespace {

// What the engine asks of a device for every instruction, and for every collective.
template <class Device>
class passing : public Device {
 public:
  using Device::Device;
  void put(const typename Device::queue& q, const std::function<void(const typename Device::queue&)>& work) {
    pass(this->rank(), kind::instruction);
    Device::put(q, work);
  }
  template <class Recorded>
  void replay(const Recorded& r) {
    pass(this->rank(), kind::instruction);
    Device::replay(r);
  }
  decltype(auto) among(unsigned axes, const typename Device::queue& q) const {
    pass(this->rank(), kind::collective);
    return Device::among(axes, q);
  }
};

template <class Pool, class Context>
std::unique_ptr<cfp::backend> on_host(const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels&) {
  using device = passing<cfp::host::device<float, Context>>;
  return std::make_unique<cfp::ranks_on<device, Pool, Context>>(mesh, type, typename device::parts{}, "here");
}

#if defined(CFP_FAULTS_GPUS)
template <class T>
using gpu = streamed::gpu<T, streamed::host_products>;

std::unique_ptr<cfp::backend> on_gpus(const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels&) {
  using device = passing<cfp::cuda::basic_rank_gpu<gpu<float>>>;
  cfp::emulated::put_into_stream = &stand_in::later;
  typename device::parts shared;
  return std::make_unique<cfp::ranks_on<device, cfp::launched_pool, cfp::launched_context>>(
      mesh, type, std::move(shared), "a GPU of the stand-in");
}
#endif

}  // namespace

cfp::make_ranks ranks_of(const std::string& world) {
  if (world == "threads") return on_host<cfp::rank_pool, cfp::rank_context>;
#if defined(CFP_FAULTS_MPI)
  if (world == "mpi") return on_host<cfp::process_pool, cfp::process_context>;
#endif
#if defined(CFP_FAULTS_GPUS)
  if (world == "gpus") return on_gpus;
#endif
  throw cfp::bad_input("this program was built without " + world);
}

}  // namespace faults
