// Which GPU a rank takes: the first of those it sees that no rank before it on its host takes. Schedulers show a
// process all GPUs of a host, or one; which one it is, its UUID tells.
#pragma once

#include <cfp/communicator/communicator.hpp>
#include <cfp/communicator/nccl/cuda_error.hpp>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

using gpu_identity = std::array<char, 16>;

/// Where a rank runs, and what it sees there.
struct rank_place {
  static constexpr int most = 32;

  std::uint64_t host = 0;  ///< its name, hashed
  std::int64_t process = 0;
  int gpus = 0;
  gpu_identity seen[most]{};
};

inline std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

inline rank_place this_place(int gpus) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : host_name()) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  rank_place out{hash, getpid(), std::min(gpus, rank_place::most), {}};
  for (int i = 0; i < out.gpus; ++i) {
    cudaDeviceProp properties{};
    cuda_check(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
    std::memcpy(out.seen[i].data(), properties.uuid.bytes, sizeof properties.uuid.bytes);
  }
  return out;
}

/// Ranks in their order each take the first GPU they see that is free, else one that the fewest have.
struct gpu_choice {
  int number = 0;           ///< among those this rank sees
  bool shared = false;      ///< on this rank's host some GPU has several ranks
  int ranks = 0, gpus = 0;  ///< on this host
};
inline gpu_choice choose_gpu(const std::vector<rank_place>& places, int rank) {
  const std::uint64_t host = places[static_cast<std::size_t>(rank)].host;
  std::map<gpu_identity, int> taken;
  gpu_choice out;
  for (int r = 0; r < static_cast<int>(places.size()); ++r) {
    const rank_place& p = places[static_cast<std::size_t>(r)];
    if (p.host != host) continue;
    int best = 0;
    for (int i = 0; i < p.gpus; ++i)
      if (taken[p.seen[i]] < taken[p.seen[best]]) best = i;
    out.shared = taken[p.seen[best]]++ > 0 || out.shared;
    if (r == rank) out.number = best;
    ++out.ranks;
  }
  out.gpus = static_cast<int>(taken.size());
  return out;
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

  const rank_place mine = this_place(gpus);
  std::vector<rank_place> places(static_cast<std::size_t>(control.size));
  control.world.all_gather(&mine, places.data(), 1);
  const gpu_choice choice = choose_gpu(places, control.rank);
  const bool several_here = std::count_if(places.begin(), places.end(), [&](const rank_place& p) {
                              return p.host == mine.host && p.process == mine.process;
                            }) > 1;

  const std::string has = "host " + host_name() + " has " + std::to_string(choice.ranks) + " ranks and " +
                          std::to_string(choice.gpus) + (choice.gpus == 1 ? " GPU" : " GPUs") + " that they see";
  if (choice.shared && !share)
    throw communicator_error(has +
                             ", and each rank takes one; start fewer there, or share them to test correctness "
                             "(cfp::shared_gpus, --share-gpus)");
  if (choice.shared && several_here)
    throw communicator_error(
        has + ", and NCCL lets only ranks that are processes share one; start them with torchrun or mpirun");
  if (choice.shared) pretend_own_host(control.rank);
  detail::cuda_check(cudaSetDevice(choice.number), "cudaSetDevice");
  return choice.number;
}

}  // namespace cfp
