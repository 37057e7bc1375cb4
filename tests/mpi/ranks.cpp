// Ranks as processes: `mpirun -n N ranks CASE`. Prints what happened; exit code 0 if all is well, 2 if ranks failed, 1
// if a result is wrong.
#include <cfp/communicator/mpi/run_processes.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

#include "../random_collectives.hpp"

#include <csignal>
#include <cstdio>
#include <map>

using namespace cfp;

namespace {

template <class T>
bool equal(process_pool& pool, const char* type) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::vector<std::byte> mine;
    pool.run([&](process_context& c) { exchange<T>(c, seed, mine); });
    std::vector<std::byte> expected;
    run_ranks(pool.mesh(), [&](rank_context& c) {
      std::vector<std::byte> of_thread;
      exchange<T>(c, seed, of_thread);
      if (c.rank == pool.rank()) expected = of_thread;
    });
    if (mine == expected) continue;
    std::printf("rank %d: %s differs from threads with seed %u\n", pool.rank(), type, seed);
    return false;
  }
  return true;
}

int run(const std::string& what, int processes) {
  const std::map<std::string, std::vector<int>> meshes = {{"mesh", {processes / 2, 2}}, {"line", {processes}}};
  if (const auto mesh = meshes.find(what); mesh != meshes.end()) {
    process_pool pool(mesh->second);
    const bool same = equal<float>(pool, "float") & equal<double>(pool, "double") & equal<bf16>(pool, "bf16") &
                      equal<std::int32_t>(pool, "int32") & equal<std::uint8_t>(pool, "uint8");
    if (same && pool.rank() == 0) std::printf("as threads, to the bit\n");
    return same ? 0 : 1;
  }
  if (what == "too_many") process_pool({processes + 1});
  process_pool pool({processes});
  pool.set_deadline(std::chrono::milliseconds(what == "late" || what == "apart" ? 300 : 5000));
  float x[8] = {};
  if (what == "jobs") {  // one after the other, without waiting in any; then one rank fails
    for (int i = 0; i < 20; ++i)
      pool.run([&](process_context& c) {
        if (i % 3 == 0) c.world.barrier();
        if (i == 17 && c.rank == 0) throw std::runtime_error("out of luck in job 17");
        if (i > 17) std::printf("job %d should not run\n", i);
      });
  }
  if (what == "apart") {
    pool.run(
        [&](process_context& c) { std::this_thread::sleep_for(std::chrono::milliseconds(c.rank == 1 ? 900 : 0)); });
    std::printf("ended well\n");
    return 0;
  }
  pool.run([&](process_context& c) {
    if (what == "throws" && c.rank == 1) throw std::runtime_error("out of luck");
    if (what == "both" && c.rank < 2) throw std::runtime_error("out of luck");
    if (what == "wordy" && c.rank == 1) throw std::runtime_error("out of luck" + std::string(100000, '!'));
    if (what == "large") c.world.broadcast(x, std::size_t{1} << 31, 0);
    if (what == "stream") {  // of the rank that fails: it must not hold up its end
      std::thread stream;
      if (c.rank == 0)
        stream = std::thread([&] {
          try {
            c.axes[0].barrier();
          } catch (const communicator_error&) {}
        });
      if (c.rank == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        c.fail("out of luck");
        stream.join();
        return;
      }
      while (!c.stopped()) std::this_thread::yield();
    }
    if (what == "stopped") {  // outside collectives
      if (c.rank == 1) throw std::runtime_error("out of luck");
      while (!c.stopped()) std::this_thread::yield();
      c.fail("stopped in a wait of its own", true);
      return;
    }
    if (what == "leaves" && c.rank == 1) return;
    if (what == "killed" && c.rank == 1) std::raise(SIGKILL);
    if (what == "late" && c.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(450));
    const std::size_t count = what == "different" && c.rank == 1 ? 7 : 8;
    const reduction by = what == "other_sum" && c.rank == 1 ? reduction::max : reduction::sum;
    for (int i = 0; i < 100; ++i) c.axes[0].all_reduce(x, count, by);
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const process_job job;
  int processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  try {
    return run(argc > 1 ? argv[1] : "line", processes);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
