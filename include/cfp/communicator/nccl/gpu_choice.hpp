// Which GPU a rank takes: the one with its number among the ranks of its host.
#pragma once

#include <cfp/communicator/communicator.hpp>
#include <cfp/communicator/nccl/cuda_error.hpp>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>

namespace cfp::inline v0_1::detail {

/// Where a rank runs.
struct rank_place {
  std::uint64_t host = 0;  ///< its name, hashed
  std::int64_t process = 0;
};

inline std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

inline rank_place this_place() {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : host_name()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return {hash, getpid()};
}

/// To NCCL this process is a host of its own, reached through sockets: otherwise it refuses two ranks on one GPU. What
/// the environment says already, stays.
inline void pretend_own_host(int rank) {
  setenv("NCCL_HOSTID", ("cfp-rank-" + std::to_string(rank)).c_str(), 0);
  for (const char* off : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"}) setenv(off, "1", 0);
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  setenv("NCCL_MAX_CTAS", "2", 0);  // small kernels: those of all ranks take turns
}

/// Makes a GPU current for this thread, and returns its number. All ranks call it together, before anything of NCCL.
/// With `share`, processes may have one in common. Throws communicator_error if there is none for this rank.
template <class World, class Communicator>
int take_gpu(const rank_context_of<World, Communicator>& control, bool share) {
  int gpus = 0;
  cudaError_t code = cudaGetDeviceCount(&gpus);
  if (code == cudaSuccess && gpus == 0) code = cudaErrorNoDevice;
  if (code != cudaSuccess)
    throw communicator_error("no GPU on host " + host_name() + ": " + cuda_says("cudaGetDeviceCount", code) +
                             "; run where nvidia-smi lists one");

  const rank_place mine = this_place();
  std::vector<rank_place> places(static_cast<std::size_t>(control.size));
  control.world.all_gather(&mine, places.data(), 1);
  int here = 0, number = 0;  // ranks on this host, and how many of them before this one
  for (int r = 0; r < control.size; ++r) {
    if (places[static_cast<std::size_t>(r)].host != mine.host) continue;
    if (r < control.rank) ++number;
    ++here;
  }
  const bool several_here = std::count_if(places.begin(), places.end(), [&](const rank_place& p) {
                              return p.host == mine.host && p.process == mine.process;
                            }) > 1;

  const std::string has = "host " + host_name() + " has " + std::to_string(here) + " ranks and " +
                          std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
  if (here > gpus && !share)
    throw communicator_error(
        has +
        ", and each rank takes one; start fewer there, or share them to test correctness (nccl_options::share_gpus)");
  if (here > gpus && several_here)
    throw communicator_error(has + ", and NCCL lets only ranks that are processes share one; start them with mpirun");
  if (here > gpus) pretend_own_host(control.rank);
  detail::cuda_check(cudaSetDevice(number % gpus), "cudaSetDevice");
  return number % gpus;
}

}  // namespace cfp
