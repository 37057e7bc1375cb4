// The NCCL communicator over a stand-in for CUDA and NCCL (stand_in.cpp says what that shows and what it does not): its
// results are those of threads, and no failure of one rank makes any rank hang.
#include "stand_in.hpp"

#include "../catch.hpp"
#include "../random_collectives.hpp"

#include <cfp/communicator/nccl/nccl_communicator.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

#include <cuda_fp16.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

template <>
inline constexpr ncclDataType_t cfp::nccl_type<__half> = ncclFloat16;

namespace ranks_cases {

using namespace cfp;
using namespace std::chrono_literals;
using stand_in::fault;
using stand_in::seen;

namespace {

constexpr auto limit = 300ms;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Runs a job on ranks with GPUs. Returns what it throws, or "".
std::string run(const std::vector<int>& mesh, const std::function<void(nccl_world&, nccl_context&)>& job,
                nccl_options options = {.deadline = limit}, std::chrono::nanoseconds control = 20s) {
  try {
    run_ranks(
        mesh,
        [&](rank_context& rank) {
          nccl_world world(rank, options);
          nccl_context gpu(world, rank.rank);
          job(world, gpu);
        },
        control);
  } catch (const rank_failure& e) {
    return e.what();
  }
  return "";
}

/// The law of every failure: it is known soon, each rank reports, nobody keeps a communicator or an event, and no call
/// was wrong.
void check_all_reported(const std::string& said, int ranks, std::chrono::steady_clock::time_point begin) {
  CAPTURE(said);
  CHECK(std::chrono::steady_clock::now() - begin < limit + 5s);
  for (int r = 0; r < ranks; ++r)
    CHECK((contains(said, "rank " + std::to_string(r) + " failed: ") ||
           contains(said, "rank " + std::to_string(r) + " stopped in ")));
  CHECK(seen.made == seen.aborted + seen.destroyed);
  CHECK(seen.events == 0);
  CHECK(seen.misuses == 0);
}

template <class T>
void check_as_threads(const std::vector<int>& mesh, unsigned seed) {
  const auto ranks = static_cast<std::size_t>(rank_grid(mesh).size());
  std::vector<std::vector<std::byte>> expected(ranks), here(ranks);
  run_ranks(mesh, [&](rank_context& c) { exchange<T>(c, seed, expected[static_cast<std::size_t>(c.rank)]); });
  const std::string said =
      run(mesh, [&](nccl_world&, nccl_context& c) { exchange<T>(c, seed, here[static_cast<std::size_t>(c.rank)]); },
          {.deadline = 20s});
  CHECK(said == "");
  CHECK(here == expected);
}

}  // namespace

TEST_CASE("collectives between GPUs give what they give between threads, and count the same") {
  stand_in::reset();
  for (const std::vector<int>& mesh : std::vector<std::vector<int>>{{1}, {2}, {3}, {2, 2}, {2, 1, 3}})
    for (unsigned seed = 1; seed <= 3; ++seed) {
      CAPTURE(mesh, seed);
      check_as_threads<float>(mesh, seed);
      check_as_threads<double>(mesh, seed);
      check_as_threads<bf16>(mesh, seed);
      check_as_threads<std::int32_t>(mesh, seed);
      check_as_threads<std::int64_t>(mesh, seed);
      check_as_threads<std::int8_t>(mesh, seed);
    }
  CHECK(seen.made > 0);
  CHECK(seen.made == seen.destroyed);
  CHECK(seen.aborted == 0);
  CHECK(seen.events == 0);
  CHECK(seen.misuses == 0);
}

TEST_CASE("a type that the trait gives to NCCL is reduced, any other is moved") {
  stand_in::reset();
  struct triple {
    int a, b, c;
    bool operator==(const triple&) const = default;
  };
  static_assert(nccl_number<__half> && nccl_number<bf16> && nccl_number<long> && nccl_number<long long>);
  static_assert(!nccl_number<triple> && !nccl_number<bool> && !nccl_number<short>);
  const std::string said = run({2}, [](nccl_world&, nccl_context& c) {
    __half x = __float2half(1.5f + static_cast<float>(c.rank));
    c.world.all_reduce(&x, 1, reduction::sum);
    const triple mine{c.rank, 7, -c.rank};
    triple all[2];
    c.world.all_gather(&mine, all, 1);
    c.world.wait();
    if (__half2float(x) != 4.0f) throw std::logic_error("the sum is wrong");
    if (all[0] != triple{0, 7, 0} || all[1] != triple{1, 7, -1}) throw std::logic_error("a triple is wrong");
  });
  CHECK(said == "");
}

TEST_CASE("collectives run on the stream they are told, in its order") {
  stand_in::reset();
  const std::string said = run({2}, [](nccl_world& world, nccl_context& c) {
    cudaStream_t a = nullptr, b = nullptr;
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    float x = 1, y = 1;
    const nccl_communicator on_a = c.world.on(a), on_b = c.axes[0].on(b);
    for (int i = 0; i < 10; ++i) {
      on_a.all_reduce(&x, 1, reduction::sum);
      on_b.all_reduce(&y, 1, reduction::sum);
    }
    world.synchronise(a);
    on_b.wait();
    if (x != 1024 || y != 1024) throw std::logic_error("a sum is wrong");
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
  });
  CHECK(said == "");
  CHECK(seen.misuses == 0);
}

TEST_CASE("while a stream is captured nothing is asked of it, and the graph does what was called") {
  stand_in::reset();
  const std::string said = run({2}, [](nccl_world& world, nccl_context& c) {
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    const nccl_communicator group = c.world.on(stream);
    float x = 1;
    group.all_reduce(&x, 1, reduction::sum);  // not yet waited for
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    for (int i = 0; i < 3; ++i) group.all_reduce(&x, 1, reduction::sum);
    group.barrier();
    bool refused = false;
    try {
      group.wait();
    } catch (const bad_input& e) {
      refused = contains(e.what(), "end the capture first");
    }
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    group.wait();
    const float before = x;
    for (int i = 0; i < 2; ++i) cudaGraphLaunch(exec, stream);
    world.synchronise(stream);
    if (!refused || before != 2 || x != 128) throw std::logic_error("the graph is wrong");
    if (group.counted().calls[0] != 4) throw std::logic_error("calls of a graph count once");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  });
  CHECK(said == "");
  CHECK(seen.misuses == 0);
}

TEST_CASE("without a GPU every rank says so") {
  stand_in::reset();
  fault.has_no_gpu = 0;
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({2}, [](nccl_world&, nccl_context&) {});
  CAPTURE(said);
  check_all_reported(said, 2, begin);
  CHECK(contains(said, ": cudaGetDeviceCount says cudaErrorNoDevice ("));
  CHECK(seen.made == 0);
}

TEST_CASE("more ranks than GPUs on a host are an error, threads cannot share one") {
  for (const bool share : {false, true}) {
    stand_in::reset();
    fault.gpus = 3;
    const auto begin = std::chrono::steady_clock::now();
    const std::string said = run({2, 2}, [](nccl_world&, nccl_context&) {}, {.deadline = limit, .share_gpus = share});
    CAPTURE(said);
    check_all_reported(said, 4, begin);
    CHECK(contains(said, " has 4 ranks and 3 GPUs that they see, and "));
    CHECK(contains(said, share ? "start them with torchrun" : "start fewer there"));
  }
}

TEST_CASE("ranks that see one GPU each take that, unless it is the same") {
  for (const bool same : {false, true}) {
    stand_in::reset();
    CAPTURE(same);
    std::string said;
    std::atomic<int> numbers{0};
    try {
      run_ranks({4}, [&](rank_context& rank) {
        stand_in::only_gpu = same ? rank.rank / 2 : rank.rank;
        struct all_again {
          ~all_again() { stand_in::only_gpu = stand_in::none; }
        } afterwards;
        nccl_world world(rank, {.deadline = limit});
        numbers += world.device();
        nccl_context(world, rank.rank).world.barrier();
      });
    } catch (const rank_failure& e) {
      said = e.what();
    }
    CAPTURE(said);
    CHECK(contains(said, "has 4 ranks and 2 GPUs that they see, and each rank takes one") == same);
    CHECK((same || said.empty()));
    CHECK(numbers == 0);
  }
}

TEST_CASE("which GPU a rank takes, as hosts and schedulers show them") {
  using cfp::detail::choose_gpu;
  using cfp::detail::rank_place;
  const auto place = [](std::uint64_t host, const std::string& gpus) {
    rank_place p{host, 0, static_cast<int>(gpus.size()), {}};
    for (std::size_t i = 0; i < gpus.size(); ++i) p.seen[i][0] = gpus[i];
    return p;
  };
  const std::vector<rank_place> two_hosts = {place(1, "ab"), place(2, "cd"), place(1, "ab"), place(2, "cd")};
  for (int r = 0; r < 4; ++r) {
    CHECK(choose_gpu(two_hosts, r).number == r / 2);
    CHECK_FALSE(choose_gpu(two_hosts, r).shared);
  }
  CHECK_FALSE(choose_gpu({place(1, "a"), place(1, "b")}, 1).shared);  // one each
  CHECK(choose_gpu({place(1, "a"), place(1, "a")}, 0).shared);        // the same one
  CHECK(choose_gpu({place(1, "ab"), place(1, "bc"), place(1, "ca")}, 2).number == 0);
  CHECK(choose_gpu({place(1, "ab"), place(1, "ab"), place(1, "ab")}, 1).shared);
  CHECK(choose_gpu({place(1, "ab"), place(1, "ab"), place(1, "ab"), place(1, "ab")}, 3).number == 1);
}

TEST_CASE("a start that NCCL refuses, or that never ends, is reported by all ranks") {
  for (const bool refused : {true, false}) {
    stand_in::reset();
    (refused ? fault.start_refused : fault.start_unending) = 1;
    const auto begin = std::chrono::steady_clock::now();
    const std::string said = run({3}, [](nccl_world&, nccl_context&) {});
    CAPTURE(said);
    check_all_reported(said, 3, begin);
    CHECK(contains(said, refused
                             ? "rank 1 failed: the start of NCCL among 3 ranks failed: NCCL says unhandled system error"
                             : "failed: the start of NCCL among 3 ranks did not end within 300 ms"));
    CHECK(seen.aborted == (refused ? 2 : 3));
  }
}

TEST_CASE("a rank that never comes to the start is reported by those who did") {
  stand_in::reset();
  const auto begin = std::chrono::steady_clock::now();
  std::string said;
  try {
    run_ranks(
        3,
        [](rank_context& rank) {
          if (rank.rank != 1) nccl_world(rank, {.deadline = limit});
          else std::this_thread::sleep_for(3 * limit);
        },
        limit);
  } catch (const rank_failure& e) {
    said = e.what();
  }
  CAPTURE(said);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  CHECK(contains(said, " waited 300 ms in all_gather of 1 element for rank 1"));
}

TEST_CASE("a split that breaks on one rank is reported by all") {
  stand_in::reset();
  fault.split_broken = 2;
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({2, 2}, [](nccl_world&, nccl_context&) {});
  CAPTURE(said);
  check_all_reported(said, 4, begin);
  CHECK(contains(said, "rank 2 failed: NCCL's split on axis 0 failed after "));
  CHECK(contains(said, "ms: NCCL says internal error"));
  CHECK(contains(said, "rank 0 stopped in NCCL's split on axis 0"));
  CHECK(seen.made == 4);
  CHECK(seen.aborted == 4);
}

TEST_CASE("a rank that does not come to a collective: those who wait say which, on which axis, for how long") {
  stand_in::reset();
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({2, 2}, [](nccl_world& world, nccl_context& c) {
    std::vector<float> x(9);
    c.world.all_reduce(x.data(), 5, reduction::sum);
    c.axes[1].all_reduce(x.data(), 9, reduction::sum);
    if (c.rank != 3) c.axes[0].all_reduce(x.data(), 8, reduction::sum);  // rank 1 waits for it
    if (c.rank != 3) c.axes[1].all_reduce(x.data(), 7, reduction::sum);  // rank 2 waits for it
    world.synchronise(nullptr);
    c.world.barrier();
  });
  CAPTURE(said);
  check_all_reported(said, 4, begin);
  CHECK(contains(said, " did not end within 300 ms"));
  CHECK((contains(said, "rank 1 failed: all_reduce of 8 elements on axis 0 did") ||
         contains(said, "rank 1 stopped in all_reduce of 8 elements on axis 0")));
  CHECK((contains(said, "rank 2 failed: all_reduce of 7 elements on axis 1 did") ||
         contains(said, "rank 2 stopped in all_reduce of 7 elements on axis 1")));
  CHECK(seen.made == 12);
  CHECK(seen.aborted == 12);
}

TEST_CASE("a rank that leaves instead of coming is reported by those who wait, and by itself when it closes") {
  stand_in::reset();
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({2}, [](nccl_world&, nccl_context& c) {
    float x = 0;
    if (c.rank == 0) c.world.broadcast(&x, 1, 1);
  });
  CAPTURE(said);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  CHECK(contains(said, "rank 0 failed: the end of NCCL, after broadcast of 1 element, did not end within 300 ms"));
  CHECK(seen.made == seen.aborted + seen.destroyed);
  CHECK(seen.misuses == 0);
}

TEST_CASE("an asynchronous error on one rank reaches all") {
  stand_in::reset();
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({3},
                               [](nccl_world&, nccl_context& c) {
                                 float x[4] = {};
                                 if (c.rank == 2) {  // does not come before NCCL has found out
                                   std::this_thread::sleep_for(50ms);
                                   fault.broken = 0;
                                   std::this_thread::sleep_for(50ms);
                                 }
                                 c.axes[0].all_reduce(x, 4, reduction::max);
                                 c.axes[0].wait();
                               },
                               {.deadline = 10s});
  CAPTURE(said);
  check_all_reported(said, 3, begin);
  CHECK(contains(said, "rank 0 failed: all_reduce of 4 elements on axis 0 failed after "));
  CHECK(contains(said, " ms: NCCL says remote process exited or there was a network error"));
  CHECK(contains(said, "rank 1 stopped in all_reduce of 4 elements on axis 0"));
  CHECK(seen.aborted == 6);
}

TEST_CASE("work that fails on a GPU reaches all") {
  stand_in::reset();
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({2},
                               [](nccl_world&, nccl_context& c) {
                                 float x = 0;
                                 if (c.rank == 1) fault.stream_broken = 1;
                                 c.world.all_reduce(&x, 1, reduction::sum);
                                 c.world.wait();
                                 c.world.barrier();
                                 c.world.barrier();
                               },
                               {.deadline = 10s});
  CAPTURE(said);
  check_all_reported(said, 2, begin);
  CHECK(contains(said, "rank 1 failed: all_reduce of 1 element failed after "));
  CHECK(contains(said, "cudaStreamQuery says cudaErrorIllegalAddress"));
  CHECK(seen.aborted == 4);
}

TEST_CASE("NCCL that never issues a collective meets the deadline") {
  stand_in::reset();
  fault.issue_unending = 1;
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({2}, [](nccl_world&, nccl_context& c) {
    double x[2] = {};
    c.axes[0].reduce_scatter(x, x + c.rank, 1, reduction::sum);
    c.axes[0].wait();
    c.world.barrier();
  });
  CAPTURE(said);
  check_all_reported(said, 2, begin);
  CHECK(contains(said, " failed: reduce_scatter of 1 element on axis 0 did not end within 300 ms"));
}

TEST_CASE("a rank that throws between collectives stops the others at once") {
  stand_in::reset();
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({2, 2},
                               [](nccl_world&, nccl_context& c) {
                                 float x = 0;
                                 for (int i = 0;; ++i) {
                                   c.world.all_reduce(&x, 1, reduction::sum);
                                   if (i == 20 && c.rank == 1) throw std::runtime_error("out of luck");
                                   c.world.wait();
                                 }
                               },
                               {.deadline = 20s});
  CAPTURE(said);
  check_all_reported(said, 4, begin);
  CHECK(contains(said, "rank 1 failed: out of luck\n  then rank "));
  for (const int r : {0, 2, 3})
    CHECK(contains(said, "rank " + std::to_string(r) + " stopped in all_reduce of 1 element"));
  CHECK(seen.aborted == 12);
}

TEST_CASE("a rank that fails without throwing, or asks for a root that is not there, stops itself and the others") {
  for (const bool root : {false, true}) {
    stand_in::reset();
    const auto begin = std::chrono::steady_clock::now();
    bool again = false;
    const std::string said = run({2},
                                 [&](nccl_world&, nccl_context& c) {
                                   float x = 0;
                                   if (c.rank == 1) {
                                     try {
                                       if (root) c.world.broadcast(&x, 1, 2);
                                       c.fail("out of luck");
                                       c.world.barrier();
                                     } catch (const communicator_error&) {}
                                     try {
                                       c.world.barrier();
                                     } catch (const communicator_error& e) {
                                       again = contains(e.what(), "rank 1 failed: ");
                                     }
                                     return;
                                   }
                                   c.world.barrier();
                                 },
                                 {.deadline = 20s});
    CAPTURE(said);
    check_all_reported(said, 2, begin);
    CHECK(again);
    CHECK(contains(said, root ? "rank 1 failed: the root of a broadcast is a rank of the group, less than 2, got: 2"
                              : "rank 1 failed: out of luck"));
  }
}

TEST_CASE("communicators that never end are aborted at the deadline") {
  stand_in::reset();
  fault.end_unending = 0;
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = run({2}, [](nccl_world&, nccl_context& c) { c.world.barrier(); });
  CAPTURE(said);
  CHECK(std::chrono::steady_clock::now() - begin < limit + 5s);
  CHECK(contains(said, "rank 0 failed: the end of NCCL did not end within 300 ms"));
  CHECK(seen.made == seen.aborted + seen.destroyed);
  CHECK(seen.events == 0);
  CHECK(seen.misuses == 0);
}

TEST_CASE("a failure at any moment is reported by all ranks, and the same threads then serve another job") {
  rank_pool pool(std::vector<int>{2, 2});
  pool.set_deadline(20s);
  for (unsigned seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    stand_in::reset();
    const auto begin = std::chrono::steady_clock::now();
    std::string said;
    try {
      pool.run([&](rank_context& rank) {
        nccl_world world(rank, {.deadline = 10s});
        nccl_context gpu(world, rank.rank);
        std::mt19937 own(seed * 16 + static_cast<unsigned>(rank.rank));
        float x[4] = {};
        for (unsigned i = 0;; ++i) {
          if (rank.rank == static_cast<int>(seed % 4) && i == seed) {
            if (own() % 2 == 0) throw std::runtime_error("out of luck");
            fault.broken = rank.rank;
          }
          gpu.axes[i % 2].all_reduce(x, 1, reduction::sum);
          if (i % 3 == 0) gpu.world.all_gather(x, x, 1);
          if (own() % 2 == 0) world.synchronise(nullptr);
        }
      });
    } catch (const rank_failure& e) {
      said = e.what();
    }
    CAPTURE(said);
    check_all_reported(said, 4, begin);
    CHECK(contains(said, "rank " + std::to_string(seed % 4) + " failed: "));
    CHECK(seen.destroyed == 0);
  }
}

}  // namespace ranks_cases
