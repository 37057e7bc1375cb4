// The NCCL communicator on GPUs, several processes sharing one if they must: `launch.sh N nccl CASE`. Every collective
// is compared with that of threads. Prints what happened; exit code 0 if all is well, 2 if ranks failed, 1 if a result
// is wrong, 77 if there is no GPU.
#include "../random_collectives.hpp"

#include <cfp/communicator/launched/run_launched.hpp>
#include <cfp/communicator/nccl/nccl_communicator.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

using namespace cfp;
using namespace std::chrono_literals;

namespace {

template <class T>
class device_buffer {
 public:
  explicit device_buffer(const std::vector<T>& x) : size_(x.size()) {
    if (size_ == 0) return;
    detail::cuda_check(cudaMalloc(&memory_, size_ * sizeof(T)), "cudaMalloc");
    detail::cuda_check(cudaMemcpy(memory_, x.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  device_buffer(const device_buffer&) = delete;
  ~device_buffer() { cudaFree(memory_); }

  T* data() { return memory_; }
  std::vector<T> read() const {
    std::vector<T> x(size_);
    if (size_ > 0)
      detail::cuda_check(cudaMemcpy(x.data(), memory_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return x;
  }

 private:
  T* memory_ = nullptr;
  std::size_t size_ = 0;
};

template <class T>
bool equal(nccl_context& gpu, const std::vector<int>& mesh, const char* type) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::vector<std::byte> mine, expected;
    gpu.reset_counted();
    gpu.world.reset_counted();
    exchange<T, device_buffer>(gpu, seed, mine, true);
    run_ranks(mesh, [&](rank_context& c) {
      std::vector<std::byte> of_thread;
      exchange<T>(c, seed, of_thread, true);
      if (c.rank == gpu.rank) expected = of_thread;
    });
    if (mine == expected) continue;
    std::printf("rank %d: %s differs from threads with seed %u\n", gpu.rank, type, seed);
    return false;
  }
  return true;
}

// Sums that are repeated by a graph, which lives on where it is kept.
bool graph_doubles(nccl_world& world, nccl_context& gpu, std::shared_ptr<captured_graph>& kept) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  detail::cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  device_buffer<float> x({1.0f});
  const nccl_communicator group = gpu.world.on(stream);
  group.all_reduce(x.data(), 1, reduction::sum);
  detail::cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < 3; ++i) group.all_reduce(x.data(), 1, reduction::sum);
  detail::cuda_check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  detail::cuda_check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  kept = std::make_shared<captured_graph>(exec);
  world.hold(kept);
  for (int i = 0; i < 2; ++i) detail::cuda_check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
  group.wait();
  float expected = 1;
  for (int i = 0; i < 7; ++i) expected *= static_cast<float>(gpu.size);
  const bool right = x.read()[0] == expected;
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return right;
}

int run(const std::string& what, int processes) {
  const std::vector<int> mesh = what == "mesh" ? std::vector<int>{processes / 2, 2} : std::vector<int>{processes};
  launched_pool pool(mesh);
  pool.set_deadline(60s);
  bool right = true;
  std::shared_ptr<captured_graph> kept;
  pool.run([&](launched_context& rank) {
    nccl_world world(rank, {.deadline = what == "missing" ? 5s : 60s, .share_gpus = true});
    nccl_context gpu(world, rank.rank);
    device_buffer<float> x(std::vector<float>(8));
    gpu.world.all_reduce(x.data(), 8, reduction::sum);
    gpu.world.wait();
    if (what == "line" || what == "mesh")
      right = equal<float>(gpu, mesh, "float") & equal<double>(gpu, mesh, "double") & equal<bf16>(gpu, mesh, "bf16") &
              equal<std::int32_t>(gpu, mesh, "int32") & equal<std::int64_t>(gpu, mesh, "int64") &
              equal<std::uint8_t>(gpu, mesh, "uint8");
    if (what == "graph" || what == "captured") right = graph_doubles(world, gpu, kept);
    const bool throws = what == "throws" || what == "captured";
    if (throws && rank.rank == 1) throw std::runtime_error("out of luck");
    if (what == "missing" && rank.rank == 1) std::this_thread::sleep_for(10s);
    if (what == "killed" && rank.rank == 1) std::raise(SIGKILL);
    if (throws || what == "missing" || what == "killed") gpu.axes[0].all_reduce(x.data(), 8, reduction::sum);
    gpu.world.wait();
  });
  if (right && pool.rank() == 0) std::printf("as threads\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) return 77;
  try {
    return run(argc > 1 ? argv[1] : "line", find_launched_rank().value_or(launched_rank{}).size);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
