// Ranks with GPUs as processes, `mpirun -n 2 apart CASE`, over the stand-in: each process has one of its own, so that
// NCCL never connects them. What one rank finds must reach the other over MPI. Exit code 3.
#include "stand_in.hpp"

#include <cfp/communicator/mpi/run_processes.hpp>
#include <cfp/communicator/nccl/nccl_communicator.hpp>

#include <cstdio>
#include <string>

int main(int, char** argv) {
  const cfp::process_job job;
  const bool refused = argv[1] == std::string("refused");
  if (refused) stand_in::fault.start_refused = 1;
  try {
    cfp::process_pool({2}).run([&](cfp::process_context& rank) {
      const auto limit = refused ? std::chrono::seconds(20) : std::chrono::milliseconds(300);
      cfp::nccl_world(rank, {.deadline = limit});
    });
  } catch (const cfp::rank_failure& e) {
    std::printf("%s\n", e.what());
    return stand_in::seen.made == stand_in::seen.aborted ? 3 : 1;
  }
  return 1;
}
