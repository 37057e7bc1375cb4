// Ranks that are processes, without MPI: what a launcher says, that collectives bring about what they do among threads,
// and that whatever ends, leaves or is killed, all others know. Every case forks its ranks.
#include "../catch.hpp"

#include <cfp/communicator/launched/run_launched.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

#include "../random_collectives.hpp"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace launched_tests {

namespace {

using cfp::launched_context;
using cfp::launched_pool;
using cfp::launched_rank;
using cfp::reduction;
using namespace std::chrono_literals;
using cfp::detail::socket_end;

using environment = std::map<std::string, std::string>;

std::optional<launched_rank> find(const environment& e) {
  return cfp::find_launched_rank([&](const char* name) -> const char* {
    const auto found = e.find(name);
    return found == e.end() ? nullptr : found->second.c_str();
  });
}

/// What is thrown.
template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing is thrown";
}

std::string refusal(const environment& e) {
  return message_of([&] { find(e); });
}

int free_port() {
  const socket_end s(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof a;
  REQUIRE(::bind(s.fd(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
  REQUIRE(::getsockname(s.fd(), reinterpret_cast<sockaddr*>(&a), &size) == 0);
  return ntohs(a.sin_port);
}

/// A process that runs a function, and what that returned or threw.
class process {
 public:
  template <class F>
  explicit process(const F& f) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      ::alarm(120);  // it hangs
      std::string said;
      try {
        said = f();
      } catch (const std::exception& e) {
        said = e.what();
      }
      cfp::detail::launched_jobs::of_this_process().end();
      for (std::size_t at = 0; at < said.size();)
        at += static_cast<std::size_t>(std::max<ssize_t>(0, ::write(ends[1], said.data() + at, said.size() - at)));
      ::_exit(0);
    }
    ::close(ends[1]);
    from_ = socket_end(ends[0]);
  }
  process(process&&) = default;

  /// Waits for its end. Of one that was killed: "killed by signal 9".
  std::string said() {
    std::string out(1 << 20, ' ');
    std::size_t at = 0;
    for (ssize_t n = 1; n > 0; at += static_cast<std::size_t>(n))
      n = std::max<ssize_t>(0, ::read(from_.fd(), out.data() + at, out.size() - at));
    out.resize(at);
    int status = 0;
    ::waitpid(child_, &status, 0);
    return WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status)) : out;
  }

 private:
  pid_t child_ = 0;
  socket_end from_;
};

launched_rank at(int port, int rank, int size) { return {rank, size, rank, "127.0.0.1", port}; }

/// f(launched_rank) in a process for each rank, all at once: what each returned or threw, by rank.
template <class F>
std::vector<std::string> in_processes(int ranks, const F& f, int port = free_port()) {
  std::vector<process> all;
  for (int r = 0; r < ranks; ++r) all.emplace_back([&, r] { return std::string(f(at(port, r, ranks))); });
  std::vector<std::string> said;
  for (process& p : all) said.push_back(p.said());
  return said;
}

/// One job on a line of ranks.
template <class F>
std::vector<std::string> in_job(int ranks, const F& f, std::chrono::milliseconds deadline = 10s) {
  return in_processes(ranks, [&](const launched_rank& me) {
    launched_pool pool({ranks}, me);
    pool.set_deadline(deadline);
    pool.run(f);
    return "ended well";
  });
}

void all_reduce(launched_context& c, std::size_t count = 8, reduction by = reduction::sum) {
  float x[8] = {};
  c.axes[0].all_reduce(x, count, by);
}

using texts = std::vector<std::string>;

const std::string stopped = " stopped in all_reduce of 8 elements on axis 0";

/// What random collectives bring about, in short: FNV-1a of all their bytes.
template <class T, class Context>
std::string exchanged(Context& c, unsigned seed) {
  std::vector<std::byte> all;
  exchange<T>(c, seed, all);
  std::uint64_t hash = 14695981039346656037u;
  for (const std::byte b : all) hash = (hash ^ static_cast<std::uint64_t>(b)) * 1099511628211u;
  return std::to_string(all.size()) + " " + std::to_string(hash);
}

template <class T>
void check_as_threads(const std::vector<int>& mesh, unsigned seed) {
  const int ranks = cfp::rank_grid(mesh).size();
  const auto said = in_processes(ranks, [&](const launched_rank& me) {
    launched_pool pool(mesh, me);
    std::string out;
    pool.run([&](launched_context& c) { out = exchanged<T>(c, seed); });
    return out + (pool.on_this_machine() == ranks ? "" : " on several machines");
  });
  std::vector<std::string> expected(static_cast<std::size_t>(ranks));
  cfp::run_ranks(mesh,
                 [&](cfp::rank_context& c) { expected[static_cast<std::size_t>(c.rank)] = exchanged<T>(c, seed); });
  CHECK(said == expected);
}

int sum_of_ranks(launched_pool& pool) {
  int sum = 0;
  pool.run([&](launched_context& c) {
    sum = c.rank;
    c.world.all_reduce(&sum, 1, reduction::sum);
  });
  return sum;
}

}  // namespace

TEST_CASE("a launcher says which rank a process is") {
  CHECK_FALSE(find({}).has_value());
  CHECK_FALSE(find({{"RANK", ""}, {"MASTER_PORT", "1"}}).has_value());
  const auto by_hand = find({{"RANK", "1"}, {"WORLD_SIZE", "4"}});
  REQUIRE(by_hand.has_value());
  CHECK((by_hand->rank == 1 && by_hand->size == 4 && by_hand->local_rank == 1));
  CHECK((by_hand->address == "127.0.0.1" && by_hand->port == 29500 && by_hand->job.empty()));
  const auto torchrun = find({{"RANK", "5"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "4"},
                              {"MASTER_ADDR", "node7"},
                              {"MASTER_PORT", "1234"},
                              {"TORCHELASTIC_RUN_ID", "a"},
                              {"OMPI_COMM_WORLD_RANK", "0"},
                              {"OMPI_COMM_WORLD_SIZE", "1"}});
  REQUIRE(torchrun.has_value());
  CHECK((torchrun->rank == 5 && torchrun->size == 8 && torchrun->local_rank == 1));
  CHECK((torchrun->address == "node7" && torchrun->port == 1234 && torchrun->job == "a"));
  const auto agent =
      find({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "1234"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  REQUIRE(agent.has_value());
  CHECK(agent->port == 1235);  // torchrun itself listens at the other
  const auto open_mpi = find({{"OMPI_COMM_WORLD_RANK", "2"},
                              {"OMPI_COMM_WORLD_SIZE", "3"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                              {"PMI_RANK", "0"},
                              {"PMI_SIZE", "1"}});
  REQUIRE(open_mpi.has_value());
  CHECK((open_mpi->rank == 2 && open_mpi->size == 3 && open_mpi->local_rank == 2));
  const auto mpich = find({{"PMI_RANK", "1"},
                           {"PMI_SIZE", "2"},
                           {"MPI_LOCALRANKID", "0"},
                           {"SLURM_PROCID", "7"},
                           {"SLURM_STEP_NUM_TASKS", "8"}});
  REQUIRE(mpich.has_value());
  CHECK((mpich->rank == 1 && mpich->size == 2 && mpich->local_rank == 0));
  const auto slurm = find({{"SLURM_PROCID", "1"},
                           {"SLURM_STEP_NUM_TASKS", "2"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_JOB_ID", "77"},
                           {"SLURM_NNODES", "2"},
                           {"MASTER_ADDR", "n1"}});
  REQUIRE(slurm.has_value());
  CHECK(
      (slurm->rank == 1 && slurm->size == 2 && slurm->local_rank == 0 && slurm->address == "n1" && slurm->job == "77"));
}

TEST_CASE("what a launcher cannot have meant is refused") {
  const std::string mend = "; start the processes with a launcher (torchrun, mpirun, srun), or set it right for each";
  CHECK(refusal({{"RANK", "abc"}, {"WORLD_SIZE", "4"}}) == "RANK is a whole number from 0 to 3, got: abc" + mend);
  CHECK(refusal({{"RANK", "4"}, {"WORLD_SIZE", "4"}}) == "RANK is a whole number from 0 to 3, got: 4" + mend);
  CHECK(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "4"}}) == "RANK is a whole number from 0 to 3, got: -1" + mend);
  CHECK(refusal({{"RANK", "0"}, {"WORLD_SIZE", "0"}}) ==
        "WORLD_SIZE is a whole number from 1 to 1048576, got: 0" + mend);
  CHECK(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}) ==
        "LOCAL_RANK is a whole number from 0 to 1, got: 2" + mend);
  CHECK(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}) ==
        "MASTER_PORT is a whole number from 1 to 65535, got: 70000" + mend);
  CHECK(refusal({{"RANK", "0"}}) == "RANK is set and WORLD_SIZE is not; a launcher sets both, so set both or neither");
  CHECK(refusal({{"SLURM_STEP_NUM_TASKS", "2"}}) ==
        "SLURM_STEP_NUM_TASKS is set and SLURM_PROCID is not; a launcher sets both, so set both or neither");
  for (const environment& several : {environment{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}},
                                     {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NNODES", "2"}}})
    CHECK(refusal(several) ==
          "the 4 processes are on several hosts, and MASTER_ADDR is not set; set it, for all of them, to the name or "
          "address of rank 0's host");
}

TEST_CASE("a pool of launched ranks needs a launcher, and one that started as many as the mesh has") {
  CHECK(message_of([] { launched_pool pool({3}, at(1, 0, 2)); }) ==
        "the mesh has 3 ranks and the launcher started 2 processes; start as many as ranks, with torchrun "
        "--nproc-per-node, mpirun -n, srun -n, or WORLD_SIZE=3 set for each");
  CHECK_THROWS_AS(launched_pool({0}, at(1, 0, 1)), cfp::bad_input);
}

TEST_CASE("collectives of launched ranks are those of threads, to the bit, and so is what is counted") {
  for (unsigned seed = 1; seed <= 2; ++seed)
    for (const std::vector<int>& mesh : {std::vector<int>{2}, {3}, {2, 2}, {1}}) check_as_threads<float>(mesh, seed);
  check_as_threads<double>({3}, 3);
  check_as_threads<cfp::bf16>({3}, 4);
  check_as_threads<cfp::fp16>({3}, 5);
  check_as_threads<std::int32_t>({3}, 6);
  check_as_threads<std::uint8_t>({3}, 7);
}

TEST_CASE("what launched ranks move may be larger than one piece of it") {
  const auto said = in_processes(2, [](const launched_rank& me) {
    launched_pool pool({2}, me);
    bool right = true;
    pool.run([&](launched_context& c) {
      std::vector<double> x((std::size_t{1} << 21) + 4099);  // more than 16 MiB
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) * (c.rank + 1);
      c.world.all_reduce(x.data(), x.size(), reduction::sum);
      for (std::size_t i = 0; i < x.size(); ++i) right = right && std::equal_to<>()(x[i], static_cast<double>(i) * 3);
      if (c.rank == 1) x.assign(x.size(), 0);
      c.world.broadcast(x.data(), x.size(), 0);
      right = right && x.back() > 1;
      const auto counted = c.world.counted();
      right = right && counted.calls == decltype(counted.calls){1, 0, 0, 0, 1};
    });
    return right ? "right" : "wrong";
  });
  CHECK(said == texts{"right", "right"});
}

TEST_CASE("launched ranks run jobs one after another, in pools one after another and beside each other") {
  const auto said = in_processes(2, [](const launched_rank& me) {
    std::string out;
    {
      launched_pool pool({2}, me);
      for (int i = 0; i < 20; ++i)
        pool.run([&](launched_context& c) {
          if (i % 3 == 0) c.world.barrier();
        });
      out += std::to_string(sum_of_ranks(pool));
    }
    launched_pool one({2}, me), other({2, 1}, me);
    out += std::to_string(sum_of_ranks(one)) + std::to_string(sum_of_ranks(other)) + std::to_string(sum_of_ranks(one));
    try {
      other.run([](launched_context& c) {
        if (c.rank == 1) throw std::runtime_error("out of luck");
        c.axes[0].barrier();
      });
    } catch (const cfp::rank_failure&) {
      out += " failed ";
    }
    out += std::to_string(sum_of_ranks(one));  // another pool does not know
    bool ran = false;
    try {
      other.run([&](launched_context&) { ran = true; });
    } catch (const cfp::rank_failure& e) {
      out += e.errors().size() == 2 && ran ? " still " : " otherwise ";
    }
    launched_pool another({2}, me);
    return out + std::to_string(sum_of_ranks(another));
  });
  CHECK(said == texts(2, "1111 failed 1 still 1"));
}

TEST_CASE("two threads of a launched rank call collectives of different groups at the same time") {
  const auto said = in_processes(2, [](const launched_rank& me) {
    launched_pool pool({2}, me);
    int sums[2] = {};
    pool.run([&](launched_context& c) {
      const auto add = [&](const cfp::launched_communicator& group, int& sum) {
        for (int i = 0; i < 300; ++i) {
          int x = i;
          group.all_reduce(&x, 1, reduction::sum);
          sum += x;
        }
      };
      std::thread beside([&] { add(c.axes[0], sums[0]); });
      add(c.world, sums[1]);
      beside.join();
    });
    return std::to_string(sums[0]) + " " + std::to_string(sums[1]);
  });
  CHECK(said == texts(2, "89700 89700"));
}

TEST_CASE("a launched rank that throws stops the others, and all throw the same") {
  const auto said = in_job(3, [](launched_context& c) {
    if (c.rank == 1) throw std::runtime_error("out of luck");
    all_reduce(c);
  });
  CHECK(said == texts(3, "rank 1 failed: out of luck\n  then rank 0" + stopped + "\n  then rank 2" + stopped));
  const auto both = in_job(3, [](launched_context& c) {
    if (c.rank < 2) throw std::runtime_error("out of luck");
    all_reduce(c);
  });
  CHECK(both == texts(3, "rank 0 failed: out of luck\n  then rank 1 failed: out of luck\n  then rank 2" + stopped));
  const auto wordy = in_job(2, [](launched_context& c) {
    if (c.rank == 1) throw std::runtime_error(std::string(100000, '!'));
    all_reduce(c);
  });
  CHECK(wordy == texts(2, "rank 1 failed: " + std::string(100000, '!') + "\n  then rank 0" + stopped));
}

TEST_CASE("a launched rank that waits for something else, or beside, learns of a failure") {
  const auto said = in_job(3, [](launched_context& c) {
    if (c.rank == 1) throw std::runtime_error("out of luck");
    while (!c.stopped()) std::this_thread::yield();
    c.fail("stopped in a wait of its own", true);
  });
  for (const std::string& s : said)
    CHECK(s ==
          "rank 1 failed: out of luck\n  then rank 0 stopped in a wait of its own\n  then rank 2 stopped in a wait of "
          "its own");
  const auto stream = in_job(2, [](launched_context& c) {
    if (c.rank == 1) return all_reduce(c);
    std::thread beside([&] { CHECK_THROWS_AS(c.world.barrier(), cfp::communicator_error); });
    std::this_thread::sleep_for(50ms);
    c.fail("out of luck");
    beside.join();
  });
  CHECK(stream == texts(2, "rank 0 failed: out of luck\n  then rank 1" + stopped));
}

TEST_CASE("a launched rank that leaves, calls something else or comes late is named") {
  const auto leaves = in_job(2, [](launched_context& c) {
    if (c.rank == 0) all_reduce(c);
  });
  CHECK(leaves == texts(2, "rank 1 left while rank 0 waits in all_reduce of 8 elements on axis 0"));
  const auto different = in_job(2, [](launched_context& c) { all_reduce(c, c.rank == 1 ? 7 : 8); });
  CHECK(different == texts(2,
                           "rank 0 calls all_reduce of 8 elements while rank 1 calls all_reduce of 7 elements on axis "
                           "0\n  then rank 1 stopped in all_reduce of 7 elements on axis 0"));
  const auto other_sum =
      in_job(2, [](launched_context& c) { all_reduce(c, 8, c.rank == 1 ? reduction::max : reduction::sum); });
  CHECK(other_sum == texts(2,
                           "rank 0 calls all_reduce of 8 elements (float32, sum) while rank 1 calls all_reduce of 8 "
                           "elements (float32, max) on axis 0\n  then rank 1" +
                               stopped));
  const auto late = in_job(
      2,
      [](launched_context& c) {
        if (c.rank == 1) std::this_thread::sleep_for(600ms);
        all_reduce(c);
      },
      400ms);
  CHECK(late ==
        texts(2, "rank 0 waited 400 ms in all_reduce of 8 elements on axis 0 for rank 1\n  then rank 1" + stopped));
  const auto apart = in_job(
      2, [](launched_context& c) { std::this_thread::sleep_for(c.rank == 1 ? 500ms : 0ms); }, 200ms);
  CHECK(apart == texts(2, "ended well"));
  const auto root = in_job(2, [](launched_context& c) {
    float x = 0;
    c.world.broadcast(&x, 1, c.rank * 2);
  });
  CHECK(root == texts(2,
                      "rank 1 failed: the root of a broadcast is a rank of the group, less than 2, got: 2\n  then rank "
                      "0 stopped in broadcast of 1 element"));
}

TEST_CASE("launched ranks that do not end after a failure are not waited for longer than the deadline") {
  const auto said = in_job(
      2,
      [](launched_context& c) {
        if (c.rank == 0) throw std::runtime_error("out of luck");
        std::this_thread::sleep_for(700ms);
      },
      200ms);
  CHECK(said ==
        texts(2, "rank 0 failed: out of luck\n  then rank 1 has not ended yet, which the others do not wait for"));
}

TEST_CASE("launched ranks whose meshes differ are told") {
  const auto said = in_processes(4, [](const launched_rank& me) {
    launched_pool pool(me.rank == 2 ? std::vector<int>{4} : std::vector<int>{2, 2}, me);
    pool.run([](launched_context& c) { c.world.barrier(); });
    return "ended well";
  });
  for (const std::string& s : said) {
    CHECK(s.rfind("rank ", 0) == 0);
    CHECK(s.find(" has a mesh of ") != std::string::npos);
    CHECK(s == said[0]);
  }
}

TEST_CASE("a launched rank that is killed is known to the others at once") {
  const std::string without = "rank 1 ended without a word: its process was killed, or its machine cannot be reached";
  const auto began = std::chrono::steady_clock::now();
  const auto said = in_job(3, [](launched_context& c) {
    if (c.rank == 1) std::raise(SIGKILL);
    all_reduce(c);
  });
  CHECK(std::chrono::steady_clock::now() - began < 2s);
  const std::string all = without + "\n  then rank 0" + stopped + "\n  then rank 2" + stopped;
  CHECK(said == texts{all, "killed by signal 9", all});
  const auto outside = in_processes(2, [](const launched_rank& me) {
    launched_pool pool({2}, me);
    const std::string before = std::to_string(sum_of_ranks(pool));
    if (me.rank == 1) std::raise(SIGKILL);
    return before + message_of([&] { sum_of_ranks(pool); }).substr(0, 27) + message_of([&] {
                                                                              launched_pool another({2}, me),
                                                                                  third({2}, me);
                                                                              sum_of_ranks(third);
                                                                            }).substr(0, 27);
  });
  CHECK(outside == texts{"1rank 1 ended without a wordrank 1 ended without a word", "killed by signal 9"});
}

TEST_CASE("when rank 0 is killed, where launched ranks meet, all others know") {
  const auto said = in_job(3, [](launched_context& c) {
    if (c.rank == 0) {
      std::this_thread::sleep_for(50ms);
      std::raise(SIGKILL);
    }
    all_reduce(c);
  });
  const std::string cause =
      "rank 0, where ranks meet, ended without a word: its process was killed, or its machine cannot be reached\n  "
      "then "
      "rank ";
  CHECK(said == texts{"killed by signal 9", cause + "1" + stopped, cause + "2" + stopped});
}

TEST_CASE("a launched rank that ends its process early, with a word, is not taken for killed") {
  const auto said = in_processes(2, [](const launched_rank& me) {
    launched_pool pool({2}, me);
    sum_of_ranks(pool);
    if (me.rank == 0) return std::string("gone");  // others may take longer
    std::this_thread::sleep_for(200ms);
    return message_of([&] { pool.run([](launched_context&) {}); });
  });
  CHECK(said == texts{"gone", "rank 0 takes no part in a job that others run"});
  const auto amid = in_job(2, [](launched_context& c) {
    if (c.rank == 1) {
      cfp::detail::launched_jobs::of_this_process().end();
      ::_exit(0);
    }
    all_reduce(c);
  });
  CHECK(amid == texts{"rank 1 ended its process before the job was over\n  then rank 0" + stopped, ""});
}

TEST_CASE("launched ranks that have not all come by the deadline of the start say who is missing") {
  const int port = free_port();
  const std::string where = "127.0.0.1:" + std::to_string(port);
  const auto said = in_processes(
      4,
      [](const launched_rank& me) {
        if (me.rank >= 2) return "not here";
        launched_pool pool({4}, me, 300ms);
        return "started";
      },
      port);
  const std::string missing = "rank 0 waited 300 ms for rank 2, rank 3 to connect to " + where +
                              "; start all 4 ranks, with the same MASTER_ADDR and MASTER_PORT";
  CHECK(said == texts{missing, missing, "not here", "not here"});
  CHECK(message_of([&] { launched_pool pool({2}, at(port, 1, 2), 100ms); }) ==
        "rank 1 waited 100 ms for rank 0 at " + where +
            ": Connection refused; start rank 0 too, and set MASTER_ADDR and MASTER_PORT to where it is");
}

TEST_CASE("launched ranks may start in any order, and again after a start that failed") {
  const auto said = in_processes(2, [](const launched_rank& me) {
    if (me.rank == 0) {
      std::this_thread::sleep_for(150ms);
      if (message_of([&] {
            launched_pool alone({2}, {0, 2, 0, me.address, free_port()}, 20ms);
          }).rfind("rank 0 waited", 0) != 0)
        return std::string("no failure");
    }
    launched_pool pool({2}, me);
    return std::to_string(sum_of_ranks(pool));
  });
  CHECK(said == texts{"1", "1"});
}

TEST_CASE("a launched rank that finds one who hangs up waits for rank 0") {
  const int port = free_port();
  const auto works = [&](int rank) {
    return process([=] {
      launched_pool pool({2}, at(port, rank, 2));
      return std::to_string(sum_of_ranks(pool));
    });
  };
  process one = works(1);
  socket_end listener = cfp::detail::listen_at("127.0.0.1", port);  // as of a job that ends
  for (int i = 0; i < 2; ++i) CHECK(socket_end(::accept(listener.fd(), nullptr, nullptr)));
  { const socket_end ends = std::move(listener); }
  process zero = works(0);
  CHECK(zero.said() == "1");
  CHECK(one.said() == "1");
}

TEST_CASE("who is none of the job is refused where launched ranks meet, which goes on") {
  const int port = free_port();
  const auto works = [&](int rank) {
    return process([=] {
      launched_pool pool({2}, at(port, rank, 2));
      std::string out = std::to_string(sum_of_ranks(pool));
      std::this_thread::sleep_for(400ms);
      return out + std::to_string(sum_of_ranks(pool));
    });
  };
  process zero = works(0);
  const auto stranger = [&](launched_rank me, int size) {
    return process([=] { return message_of([&] { launched_pool pool({size}, me, 2s); }); }).said();
  };
  launched_rank other_job = at(port, 1, 2);
  other_job.job = "b";
  CHECK(stranger(at(port, 2, 3), 3) ==
        "rank 2 is one of 3 ranks and rank 0 one of 2: they are not of one job; give each job a port of its own "
        "(MASTER_PORT)");
  CHECK(stranger(other_job, 2) ==
        "rank 1 is of job \"b\" and rank 0 of job \"\"; give each job a port of its own (MASTER_PORT)");
  const auto garbage = [&](const std::string& text) {
    std::string why;
    const socket_end s = cfp::detail::connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + 2s, why);
    char answer = 0;
    return s.send(text.data(), text.size(), nullptr, 0) && s.receive(&answer, 1);
  };
  CHECK_FALSE(garbage("GET / HTTP/1.1\r\n\r\n"));
  CHECK_FALSE(garbage(std::string(100000, 'x')));
  process one = works(1);
  std::this_thread::sleep_for(150ms);
  CHECK(stranger(at(port, 1, 2), 2) ==
        "rank 1 is there twice; start each rank once, and give each job a port of its own (MASTER_PORT)");
  CHECK_FALSE(garbage("x"));
  CHECK(message_of([&] { launched_pool pool({2}, at(port, 0, 2), 1s); }) ==
        "rank 0 cannot listen at 127.0.0.1:" + std::to_string(port) +
            ": Address already in use; set MASTER_PORT, for all ranks, to a port that is free");
  CHECK(zero.said() == "11");
  CHECK(one.said() == "11");
}

}  // namespace launched_tests
