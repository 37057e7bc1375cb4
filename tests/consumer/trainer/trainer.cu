// The trainer on GPUs over NCCL: a process each. Ends with 77 where there is no GPU.
//
//   trainer [--ranks N] [--id FILE] [--steps N] [--seconds N]
//
// --ranks starts that many processes here, which may share a GPU; without it RANK and WORLD_SIZE say who this is, and
// --id names a new file through which rank 0 tells the others how to meet. After so many seconds a process ends itself.
#include "trainer.hpp"

#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace trainer {

inline constexpr int no_gpu = 77;

inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}
inline void check(ncclResult_t code, const char* what) {
  if (code != ncclSuccess) throw std::runtime_error(std::string(what) + ": " + ncclGetErrorString(code));
}

template <class F>
__global__ void each_index(long count, F f) {
  const long threads = long{gridDim.x} * blockDim.x;
  for (long i = long{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += threads) f(i);
}

class gpu_machine {
 public:
  using number = float;
  gpu_machine(int rank, int ranks, const ncclUniqueId& id) : rank_(rank) {
    check(ncclCommInitRank(&world_, ranks, id, rank), "ncclCommInitRank");
  }
  gpu_machine(const gpu_machine&) = delete;
  /// Waits for the others; who met an error ends without.
  void close() {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (const group& g : groups_) check(ncclCommDestroy(g.comm), "ncclCommDestroy");
    check(ncclCommDestroy(world_), "ncclCommDestroy");
  }

  int rank() const { return rank_; }
  template <class T>
  std::shared_ptr<T> memory(long count) const {
    T* items = nullptr;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    check(cudaMalloc(&items, bytes), "cudaMalloc");
    const std::shared_ptr<T> out(items, [](T* x) { cudaFree(x); });
    check(cudaMemset(items, 0, bytes), "cudaMemset");
    return out;
  }
  std::vector<number> fetch(const number* x, long count) const {
    std::vector<number> out(static_cast<std::size_t>(count));
    check(cudaMemcpy(out.data(), x, out.size() * sizeof(number), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return out;
  }
  template <class F>
  void each(long count, const F& f) const {
    constexpr long block = 128;
    each_index<<<static_cast<unsigned>(std::min((count + block - 1) / block, 4096L)), block>>>(count, f);
    check(cudaGetLastError(), "a kernel");
  }

  void all_reduce(const cfp::tensor_step& step, const number* in, number* out) {
    const auto count = static_cast<std::size_t>(step.count());
    check(ncclAllReduce(in, out, count, ncclFloat, operation(step.combine), among(step), nullptr), "ncclAllReduce");
  }
  void reduce_scatter(const cfp::tensor_step& step, const number* in, number* out) {
    const auto count = static_cast<std::size_t>(step.count());
    check(ncclReduceScatter(in, out, count, ncclFloat, operation(step.combine), among(step), nullptr),
          "ncclReduceScatter");
  }
  void all_gather(const cfp::tensor_step& step, const number* in, number* out) {
    const auto count = static_cast<std::size_t>(step.count());
    check(ncclAllGather(in, out, count, ncclFloat, among(step), nullptr), "ncclAllGather");
  }

 private:
  struct group {
    cfp::list<cfp::name, cfp::max_axes> axes;
    ncclComm_t comm = nullptr;
  };
  static ncclRedOp_t operation(cfp::reduction by) {
    return by == cfp::reduction::sum ? ncclSum : by == cfp::reduction::max ? ncclMax : ncclMin;
  }
  // All ranks come here in the same order, so a group is made when it is first needed.
  ncclComm_t among(const cfp::tensor_step& step) {
    for (const group& g : groups_)
      if (g.axes == step.axes) return g.comm;
    groups_.push_back({step.axes});
    const int color = step.color(gpt::mesh::shape, rank_), key = step.key(gpt::mesh::shape, rank_);
    check(ncclCommSplit(world_, color, key, &groups_.back().comm, nullptr), "ncclCommSplit");
    return groups_.back().comm;
  }

  int rank_;
  ncclComm_t world_ = nullptr;
  std::vector<group> groups_;
};

struct options {
  int ranks = 0, steps = 4;
  unsigned seconds = 120;
  std::string id;
};

inline ncclUniqueId meet(int rank, const std::string& file) {
  ncclUniqueId id{};
  if (rank == 0) {
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::ofstream(file + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
    std::filesystem::rename(file + ".new", file);  // there at once, or not at all
    return id;
  }
  while (!std::filesystem::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal);
  return id;
}

inline int run_rank(int rank, int ranks, const options& given) {
  alarm(given.seconds);  // whatever this rank waits for then will not come
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    if (rank == 0) std::printf("no GPU here, nothing was run\n");
    return no_gpu;
  }
  if (ranks > gpus) {  // NCCL refuses ranks that share a GPU, unless they look like hosts
    setenv("NCCL_HOSTID", ("rank" + std::to_string(rank)).c_str(), 1);
    for (const char* off : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"}) setenv(off, "1", 1);
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_MAX_CTAS", "2", 1);  // the kernels of all ranks take turns
  }
  try {
    check(cudaSetDevice(rank % gpus), "cudaSetDevice");
    gpu_machine machine(rank, ranks, meet(rank, given.id));
    train(machine, given.steps);
    machine.close();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
    return 1;
  }
}

/// A process for every rank; when one fails, the others are ended.
inline int run_all(const options& given) {
  std::vector<pid_t> running;
  for (int rank = 0; rank < given.ranks; ++rank) {
    const pid_t child = fork();  // nothing of CUDA was called yet: it does not survive this
    if (child == 0) {
      const int code = run_rank(rank, given.ranks, given);
      std::fflush(nullptr);
      _exit(code);  // whoever failed may have others waiting in NCCL, which would wait for them as it ends
    }
    if (child > 0) running.push_back(child);
  }
  int result = static_cast<int>(running.size()) == given.ranks ? 0 : 1;
  while (!running.empty()) {
    if (result != 0 && result != no_gpu)
      for (const pid_t other : running) kill(other, SIGKILL);
    int status = 0;
    const pid_t ended = wait(&status);
    std::erase(running, ended);
    if (result == 0) result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  std::filesystem::remove(given.id);
  return result;
}

}  // namespace trainer

int main(int count, char** arguments) {
  trainer::options given;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = arguments[i];
    if (word == "--ranks") given.ranks = std::atoi(arguments[i + 1]);
    else if (word == "--steps") given.steps = std::atoi(arguments[i + 1]);
    else if (word == "--seconds") given.seconds = static_cast<unsigned>(std::atoi(arguments[i + 1]));
    else if (word == "--id") given.id = arguments[i + 1];
  }
  const char *rank = std::getenv("RANK"), *ranks = std::getenv("WORLD_SIZE");
  const int all = given.ranks > 0 ? given.ranks : ranks != nullptr ? std::atoi(ranks) : 0;
  if (all != gpt::mesh::shape.devices() || (given.ranks == 0 && (rank == nullptr || given.id.empty()))) {
    std::fprintf(stderr, "this mesh has %d devices: --ranks %d, or RANK, WORLD_SIZE=%d and --id FILE\n",
                 gpt::mesh::shape.devices(), gpt::mesh::shape.devices(), gpt::mesh::shape.devices());
    return 2;
  }
  if (given.ranks == 0) return trainer::run_rank(std::atoi(rank), all, given);
  if (given.id.empty()) given.id = std::filesystem::temp_directory_path() / ("trainer." + std::to_string(getpid()));
  return trainer::run_all(given);
}
