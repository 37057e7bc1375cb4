#include "ranks.hpp"

#include "arguments.hpp"
#include "files.hpp"
#include "report.hpp"

#include <cfp/backend/ranks_on.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/communicator/launched/run_launched.hpp>
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

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>

namespace program {

using cfp::bad_input;

cfp::make_ranks ranks_of(const arguments& a) {
  if (a.backend == "threads")
    return [](const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels& own) {
      if (mesh.devices() > 64)
        throw bad_input("--mesh: " + std::to_string(mesh.devices()) + " ranks, at most 64 run as threads");
      return cfp::threads(mesh, type, own);
    };
  if (a.backend == "mpi") {
#if defined(CFP_WITH_MPI)
    return [](const cfp::mesh_shape& mesh, cfp::number type, const cfp::own_kernels& own) {
      return cfp::processes(mesh, type, own);
    };
#else
    throw bad_input("--backend mpi: this program was built without MPI; install libopenmpi-dev and build it again");
#endif
  }
  if (a.backend == "cuda") {
#if defined(CFP_WITH_GPUS)
    return [make = a.share_gpus ? cfp::shared_gpus : cfp::gpus](const cfp::mesh_shape& mesh, cfp::number type,
                                                                const cfp::own_kernels& own) {
      try {
        return make(mesh, type, own);
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

namespace {

// Makes each number the least or the most of those that all processes have in its place.
using combine_numbers = std::function<void(std::vector<double>&, cfp::reduction)>;

void same_everywhere(const arguments& a, const combine_numbers& combine) {
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
  put(contents(own_file("models", "--model", a.model)));
  for (std::size_t i = 1; i < files.size(); ++i) put(contents(files[i].second));
  most = least;
  combine(least, cfp::reduction::min);
  combine(most, cfp::reduction::max);
  const std::string backend = "--backend " + a.backend + ": the processes ";
  if (least[0] < most[0]) throw bad_input(backend + "were started with different options; give all of them the same");
  for (std::size_t i = 0; i < files.size(); ++i)
    if (least[i + 1] < most[i + 1])
      throw bad_input(backend + "read different files for " + files[i].first + " (" + files[i].second +
                      "); copy the same one to every machine");
}

// Before anything runs. The first process looks, the others hear of it and end too.
void check_files(const arguments& a, const combine_numbers& combine) {
  const std::string wrong = is_first() ? wrong_files(a) : std::string();
  std::vector<double> refused{wrong.empty() ? 0.0 : 1.0};
  combine(refused, cfp::reduction::max);
  if (refused[0] > 0) throw bad_input(wrong);
}

// This process is a rank of `Pool`.
template <class Pool>
int run_among(int rank, int (*command)(const arguments&), const arguments& a) {
  process = rank;
  if (!is_first() && std::freopen("/dev/null", "w", stdout) == nullptr)
    throw std::runtime_error("/dev/null cannot be opened");
  try {
    const cfp::mesh_shape mesh = cfp::read_mesh(a.mesh);
    std::optional<Pool> pool;
    try {
      pool.emplace(cfp::sizes(mesh));
    } catch (const cfp::bad_input& e) {
      throw bad_input("--mesh " + a.mesh + ": " + e.what());
    }
    pool->set_deadline(std::chrono::nanoseconds(static_cast<std::int64_t>(a.deadline * 1e9)));
    const auto combine = [&](std::vector<double>& x, cfp::reduction by) {
      pool->run([&](auto& context) { context.world.all_reduce(x.data(), x.size(), by); });
    };
    same_everywhere(a, combine);
    check_files(a, combine);
    pool.reset();
    return command(a);
  } catch (...) {  // before what connects them ends
    return report();
  }
}

// As one of several processes, if it is.
std::optional<cfp::launched_rank> launched() {
  try {
    return cfp::one_of_several();
  } catch (const cfp::bad_input& e) {
    throw bad_input(e.what());
  }
}

}  // namespace

int run_command(int (*command)(const arguments&), const arguments& a) {
  if (a.share_gpus && a.backend != "cuda")
    throw bad_input("--share-gpus: ranks have GPUs with --backend cuda, not with " + a.backend);
#if defined(CFP_WITH_MPI)
  if (a.machine.empty() && a.backend == "mpi") {
    const cfp::process_job job;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return run_among<cfp::process_pool>(rank, command, a);
  }
#endif
  if (a.machine.empty() && a.backend == "cuda")
    if (const auto me = launched()) return run_among<cfp::launched_pool>(me->rank, command, a);
  check_files(a, [](std::vector<double>&, cfp::reduction) {});
  return command(a);
}

}  // namespace program
