#include "ranks.hpp"

#include "arguments.hpp"
#include "report.hpp"

#include <cfp/backend/threads.hpp>
#include <cfp/model/name_hash.hpp>
#include <cfp/model/read_mesh.hpp>

#if defined(CFP_WITH_MPI)
#include <cfp/backend/processes.hpp>
#endif
#if defined(CFP_WITH_GPUS)
#include <cfp/backend/gpus.hpp>
#endif
#if defined(CFP_WITH_EMULATED_GPUS)
#include <cfp/backend/emulated_gpus.hpp>
#endif

#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>

namespace program {

using cfp::bad_input;

cfp::make_ranks ranks_of(const std::string& backend) {
  if (backend == "threads")
    return [](const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels& own) {
      if (mesh.devices() > 64)
        throw bad_input("--mesh: " + std::to_string(mesh.devices()) + " ranks, at most 64 run as threads");
      return cfp::threads(mesh, type, own);
    };
  if (backend == "mpi") {
#if defined(CFP_WITH_MPI)
    return [](const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels& own) {
      return cfp::processes(mesh, type, own);
    };
#else
    throw bad_input("--backend mpi: this program was built without MPI; install libopenmpi-dev and build it again");
#endif
  }
  if (backend == "cuda") {
#if defined(CFP_WITH_GPUS)
    return [](const cfp::mesh_shape& mesh, cfp::number type,
              const cfp::own_kernels& own) -> std::unique_ptr<cfp::backend> {
      try {
        return cfp::gpus(mesh, type, own);
      } catch (const cfp::error& e) {  // there is none
        throw bad_input(std::string("--backend cuda: ") + e.what());
      }
    };
#else
    throw bad_input("--backend cuda: this program was built without CUDA; install the CUDA toolkit and build it again");
#endif
  }
#if defined(CFP_WITH_EMULATED_GPUS)
  return [](const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels& own) {
    return cfp::emulated_gpus(mesh, type, own);
  };
#else
  throw bad_input("--backend emulated: this program was built without the emulation; install libboost-context-dev");
#endif
}

int run_as_process([[maybe_unused]] int (*main)(const arguments&), [[maybe_unused]] const arguments& a) {
#if defined(CFP_WITH_MPI)
  const cfp::process_job job;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  if (!is_first() && std::freopen("/dev/null", "w", stdout) == nullptr)
    throw std::runtime_error("/dev/null cannot be opened");
  try {
    const cfp::mesh_shape mesh = cfp::read_mesh(a.mesh);
    try {
      same_everywhere(*cfp::processes(mesh), a);
    } catch (const cfp::bad_input& e) {
      throw bad_input("--mesh " + a.mesh + ": " + e.what());
    }
    return main(a);
  } catch (...) {  // before MPI ends
    return report();
  }
#else
  ranks_of("mpi");
  return 2;
#endif
}

void same_everywhere(cfp::backend& ranks, const arguments& a) {
  std::vector<double> least, most;
  const std::vector<std::pair<std::string, std::string>> files{{"the model", a.model},
                                                               {"--text", a.text},
                                                               {"--profile", a.profile},
                                                               {"--plan", a.plan},
                                                               {"--against", a.against}};
  const auto put = [&](const std::string& bytes) {  // as much of a hash as a double holds
    least.push_back(static_cast<double>(cfp::name_hash(bytes) >> 11));
  };
  put(a.all);
  for (const auto& [what, path] : files) {
    std::ifstream file(path, std::ios::binary);
    put(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  most = least;
  ranks.run([&](cfp::rank& r) {
    r.combine(least, cfp::reduction::min);
    r.combine(most, cfp::reduction::max);
  });
  if (least[0] < most[0])
    throw bad_input("--backend mpi: the processes were started with different options; give all of them the same");
  for (std::size_t i = 0; i < files.size(); ++i)
    if (least[i + 1] < most[i + 1])
      throw bad_input("--backend mpi: the processes read different files for " + files[i].first + " (" +
                      files[i].second + "); copy the same one to every machine");
}

}  // namespace program
