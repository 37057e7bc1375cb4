// The libraries themselves on a machine without a GPU: `no_gpu threads`, or `mpirun -n 2 no_gpu processes`. Every rank
// must say that there is none; the exit code is then 3. Exit code 77: there is one.
#include <cfp/communicator/nccl/nccl_communicator.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

#if defined(CFP_TEST_MPI)
#include <cfp/communicator/mpi/run_processes.hpp>
#endif

#include <cstdio>
#include <string>

namespace {

template <class Context>
void connect(Context& rank) {
  cfp::nccl_world world(rank, {.deadline = std::chrono::seconds(20)});
  cfp::nccl_context(world, rank.rank).world.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "threads";
#if defined(CFP_TEST_MPI)
  const cfp::process_job job;
#endif
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0) {
    std::printf("this machine has a GPU\n");
    return 77;
  }
  try {
    if (how == "threads") cfp::run_ranks(2, [](cfp::rank_context& rank) { connect(rank); });
#if defined(CFP_TEST_MPI)
    if (how == "processes") cfp::process_pool({2}).run([](cfp::process_context& rank) { connect(rank); });
#endif
  } catch (const cfp::rank_failure& e) {
    std::printf("%s\n", (e.what() + std::string("\n")).c_str());
    return 3;
  }
  return 1;
}
