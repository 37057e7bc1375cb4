// Collectives of ranks that are threads: their laws over generated cases, and that no failure makes them
// hang.
#include "../catch.hpp"

#include <cfp/communicator/threads/run_ranks.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace threads_tests {

namespace {

using cfp::rank_context;
using cfp::reduction;
using namespace std::chrono_literals;

constexpr reduction reductions[] = {reduction::sum, reduction::max, reduction::min};
constexpr std::size_t counts[] = {0, 1, 2, 3, 7, 16, 17, 63, 65, 511, 513, 1000, 4099};

/// Ends the process, with a word, if a test that must not hang does.
class watchdog {
 public:
  explicit watchdog(std::chrono::seconds limit = 30s)
      : thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (condition_.wait_for(lock, limit, [this] { return over_; })) return;
          std::fputs("a test hangs\n", stderr);
          std::abort();
        }) {}
  ~watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    condition_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool over_ = false;
  std::thread thread_;
};

template <class T>
using buffers = std::vector<std::vector<T>>;  // by rank

/// Values whose sum depends on the order in which they are added, for floating types.
template <class T>
buffers<T> random_buffers(int ranks, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  buffers<T> all(static_cast<std::size_t>(ranks), std::vector<T>(count));
  for (auto& one : all)
    for (T& x : one) {
      const int mantissa = static_cast<int>(random() % 200001) - 100000;
      if constexpr (std::is_floating_point_v<T>)
        x = static_cast<T>(mantissa) / T(3) * static_cast<T>(1 << (random() % 12));
      else x = static_cast<T>(mantissa);
    }
  return all;
}

/// Element i of every rank, combined from rank 0 on.
template <class T>
std::vector<T> reference(const buffers<T>& all, reduction op) {
  std::vector<T> result = all[0];
  for (std::size_t r = 1; r < all.size(); ++r)
    for (std::size_t i = 0; i < result.size(); ++i) {
      T& a = result[i];
      const T b = all[r][i];
      if (op == reduction::sum) a = static_cast<T>(a + b);
      if (op == reduction::max && b > a) a = b;
      if (op == reduction::min && b < a) a = b;
    }
  return result;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
void check_all_reduce(cfp::rank_pool& pool, std::size_t count, reduction op) {
  const auto inputs = random_buffers<T>(pool.size(), count, static_cast<unsigned>(count) + 1);
  const auto expected = reference(inputs, op);
  auto outputs = inputs;
  pool.run([&](rank_context& c) { c.world.all_reduce(outputs[static_cast<std::size_t>(c.rank)].data(), count, op); });
  for (const auto& out : outputs) CHECK(same_bits(out, expected));
}

/// The message of the exception that `f` throws: of a rank_failure its what().
template <class F>
std::string failure(F f) {
  try {
    f();
  } catch (const cfp::rank_failure& e) {
    return e.what();
  }
  return "no failure";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// What every rank is told by the collective it calls, and the failure of the whole.
struct verdict {
  std::vector<std::string> told;  // by rank
  std::string whole;
  std::vector<cfp::rank_error> errors;
};

template <class F>
verdict judge(cfp::rank_pool& pool, F f) {
  verdict v;
  v.told.resize(static_cast<std::size_t>(pool.size()));
  try {
    pool.run([&](rank_context& c) {
      try {
        f(c);
      } catch (const cfp::communicator_error& e) {
        v.told[static_cast<std::size_t>(c.rank)] = e.what();
        throw;
      }
    });
  } catch (const cfp::rank_failure& e) {
    v.whole = e.what();
    v.errors = e.errors();
  }
  return v;
}

void check_pool_works(cfp::rank_pool& pool) {
  std::vector<int> sums(static_cast<std::size_t>(pool.size()));
  pool.run([&](rank_context& c) {
    int one = c.rank + 1;
    c.world.all_reduce(&one, 1, reduction::sum);
    sums[static_cast<std::size_t>(c.rank)] = one;
  });
  const int n = pool.size();
  for (const int s : sums) CHECK(s == n * (n + 1) / 2);
}

}  // namespace

TEST_CASE("all_reduce is the sequential reduction, bit for bit, on every rank") {
  const watchdog guard(120s);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    cfp::rank_pool pool(ranks);
    for (const std::size_t count : counts)
      for (const reduction op : reductions) {
        CAPTURE(ranks, count, static_cast<int>(op));
        check_all_reduce<float>(pool, count, op);
        check_all_reduce<double>(pool, count, op);
        check_all_reduce<std::int32_t>(pool, count, op);
        check_all_reduce<std::int64_t>(pool, count, op);
      }
    CAPTURE(ranks);
    check_all_reduce<float>(pool, std::size_t{1} << 20, reduction::sum);
    check_all_reduce<double>(pool, (std::size_t{1} << 20) + 5, reduction::max);
  }
}

TEST_CASE("the reference can tell one order of addition from another") {
  auto inputs = random_buffers<float>(4, 1000, 1);
  const auto forward = reference(inputs, reduction::sum);
  std::swap(inputs[0], inputs[3]);
  CHECK_FALSE(same_bits(forward, reference(inputs, reduction::sum)));
}

TEST_CASE("reduce_scatter then all_gather is all_reduce") {
  const watchdog guard(60s);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    cfp::rank_pool pool(ranks);
    for (const std::size_t part : counts)
      for (const reduction op : reductions) {
        CAPTURE(ranks, part, static_cast<int>(op));
        const std::size_t whole = part * static_cast<std::size_t>(ranks);
        const auto inputs = random_buffers<double>(ranks, whole, static_cast<unsigned>(part) + 2);
        buffers<double> direct = inputs, in_place = inputs;
        buffers<double> by_parts(inputs.size(), std::vector<double>(whole));
        pool.run([&](rank_context& c) {
          const auto r = static_cast<std::size_t>(c.rank);
          c.world.all_reduce(direct[r].data(), whole, op);
          std::vector<double> mine(part);
          c.world.reduce_scatter(inputs[r].data(), mine.data(), part, op);
          c.world.all_gather(mine.data(), by_parts[r].data(), part);
          double* const place = in_place[r].data() + r * part;
          c.world.reduce_scatter(in_place[r].data(), place, part, op);
          c.world.all_gather(place, in_place[r].data(), part);
        });
        for (std::size_t r = 0; r < inputs.size(); ++r) {
          CHECK(same_bits(direct[r], by_parts[r]));
          CHECK(same_bits(direct[r], in_place[r]));
        }
      }
  }
}

TEST_CASE("all_gather lays the parts one after another") {
  for (const int ranks : {1, 2, 3, 8})
    for (const std::size_t count : counts) {
      CAPTURE(ranks, count);
      const auto inputs = random_buffers<std::uint8_t>(ranks, count, 3);
      std::vector<std::uint8_t> expected;
      for (const auto& in : inputs) expected.insert(expected.end(), in.begin(), in.end());
      buffers<std::uint8_t> outputs(inputs.size(), std::vector<std::uint8_t>(expected.size(), 99));
      cfp::run_ranks(ranks, [&](rank_context& c) {
        const auto r = static_cast<std::size_t>(c.rank);
        c.world.all_gather(inputs[r].data(), outputs[r].data(), count);
      });
      for (const auto& out : outputs) CHECK(same_bits(out, expected));
    }
}

TEST_CASE("all_to_all is a transposition of parts, and its own inverse") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    cfp::rank_pool pool(ranks);
    for (const std::size_t part : counts) {
      CAPTURE(ranks, part);
      const auto n = static_cast<std::size_t>(ranks);
      const auto inputs = random_buffers<float>(ranks, part * n, 4);
      buffers<float> once(n, std::vector<float>(part * n)), twice = once;
      pool.run([&](rank_context& c) {
        const auto r = static_cast<std::size_t>(c.rank);
        c.world.all_to_all(inputs[r].data(), once[r].data(), part);
        c.world.all_to_all(once[r].data(), twice[r].data(), part);
      });
      const bool restored = twice == inputs;  // not in CHECK, which would print them
      CHECK(restored);
      bool transposed = true;
      for (std::size_t to = 0; to < n; ++to)
        for (std::size_t from = 0; from < n; ++from)
          for (std::size_t i = 0; i < part; ++i)
            transposed = transposed && std::equal_to<>{}(once[to][from * part + i], inputs[from][to * part + i]);
      CHECK(transposed);
    }
  }
}

TEST_CASE("broadcast gives every rank what the root has") {
  struct element {  // anything trivially copyable can be moved
    std::int16_t a;
    std::int8_t b[3];
  };
  for (const int ranks : {1, 2, 3, 8}) {
    cfp::rank_pool pool(ranks);
    for (int root = 0; root < ranks; ++root)
      for (const std::size_t count : counts) {
        CAPTURE(ranks, root, count);
        auto data = random_buffers<std::int32_t>(ranks, count, 5);
        const auto expected = data[static_cast<std::size_t>(root)];
        std::vector<element> elements(static_cast<std::size_t>(ranks));
        pool.run([&](rank_context& c) {
          const auto r = static_cast<std::size_t>(c.rank);
          c.world.broadcast(data[r].data(), count, root);
          elements[r] = {static_cast<std::int16_t>(c.rank), {1, 2, static_cast<std::int8_t>(c.rank)}};
          c.world.broadcast(&elements[r], 1, root);
        });
        for (const auto& d : data) CHECK(same_bits(d, expected));
        for (const auto& e : elements) CHECK((e.a == root && e.b[2] == root));
      }
  }
}

TEST_CASE("a NaN of any rank wins in max and min") {
  for (int place = 0; place < 3; ++place)
    for (const reduction op : {reduction::max, reduction::min}) {
      std::vector<float> results(3);
      cfp::run_ranks(3, [&](rank_context& c) {
        float x = c.rank == place ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(c.rank);
        c.world.all_reduce(&x, 1, op);
        results[static_cast<std::size_t>(c.rank)] = x;
      });
      for (const float x : results) CHECK_FALSE(x <= std::numeric_limits<float>::infinity());
    }
}

TEST_CASE("nobody passes a barrier before all have come") {
  const watchdog guard;
  std::atomic<int> come{0};
  std::atomic<bool> early{false};
  cfp::run_ranks(4, [&](rank_context& c) {
    for (int round = 1; round <= 200; ++round) {
      ++come;
      c.world.barrier();
      if (come < 4 * round) early = true;
      c.world.barrier();
    }
  });
  CHECK_FALSE(early);
}

TEST_CASE("a mesh has a group per axis, in row-major order") {
  for (const std::vector<int>& mesh : {std::vector<int>{2, 2}, {2, 3}, {3, 1, 2}, {4}, {}}) {
    int ranks = 1;
    for (const int n : mesh) ranks *= n;
    CAPTURE(mesh);
    std::vector<std::vector<int>> place(static_cast<std::size_t>(ranks));  // by rank, axis
    std::vector<std::vector<std::vector<int>>> seen(place.size());
    std::vector<int> world_ranks(place.size());
    cfp::run_ranks(mesh, [&](rank_context& c) {
      const auto r = static_cast<std::size_t>(c.rank);
      world_ranks[r] = c.world.rank() + 100 * c.world.size() + 10000 * c.size;
      for (const auto& axis : c.axes) {
        std::vector<int> members(static_cast<std::size_t>(axis.size()));
        axis.all_gather(&c.rank, members.data(), 1);
        seen[r].push_back(members);
        place[r].push_back(axis.rank());
      }
      if (place[r] != c.coordinates) throw std::logic_error("a rank's place on an axis is its coordinate");
    });
    for (int r = 0; r < ranks; ++r) {
      CHECK(world_ranks[static_cast<std::size_t>(r)] == r + 100 * ranks + 10000 * ranks);
      REQUIRE(seen[static_cast<std::size_t>(r)].size() == mesh.size());
      int rest = r, stride = 1;
      for (std::size_t axis = mesh.size(); axis-- > 0;) {
        const int coordinate = rest % mesh[axis];
        rest /= mesh[axis];
        std::vector<int> members;
        for (int i = 0; i < mesh[axis]; ++i) members.push_back(r + (i - coordinate) * stride);
        stride *= mesh[axis];
        CHECK(seen[static_cast<std::size_t>(r)][axis] == members);
        CHECK(place[static_cast<std::size_t>(r)][axis] == coordinate);
      }
    }
  }
}

TEST_CASE("a mesh axis has at least one rank") {
  CHECK_THROWS_AS(cfp::rank_pool(0), cfp::bad_input);
  CHECK_THROWS_AS(cfp::rank_pool({2, -1}), cfp::bad_input);
}

TEST_CASE("calls and bytes are counted as a ring sends them") {
  for (const int ranks : {1, 2, 3, 8})
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
      CAPTURE(ranks, count);
      const auto n = static_cast<std::size_t>(ranks);
      std::vector<cfp::traffic> counted(n), axis(n), reset(n);
      cfp::rank_pool pool({1, ranks});
      for (int job = 0; job < 2; ++job)  // each job counts from nothing
        pool.run([&](rank_context& c) {
          const auto r = static_cast<std::size_t>(c.rank);
          std::vector<double> in(n * count), out(n * count);
          c.world.all_reduce(in.data(), count, reduction::sum);
          c.world.all_reduce(in.data(), count, reduction::max);
          c.world.all_gather(in.data(), out.data(), count);
          c.world.reduce_scatter(in.data(), out.data(), count, reduction::sum);
          c.world.all_to_all(in.data(), out.data(), count);
          c.world.broadcast(in.data(), count, 0);
          c.world.barrier();
          c.axes[1].broadcast(reinterpret_cast<float*>(out.data()), count, 0);
          const cfp::thread_communicator copy = c.world;
          counted[r] = copy.counted();
          axis[r] = c.axes[1].counted();
          c.world.reset_counted();
          reset[r] = c.world.counted();
        });
      const auto b = static_cast<std::int64_t>(8 * count), k = static_cast<std::int64_t>(n);
      for (std::size_t r = 0; r < n; ++r) {
        CHECK(counted[r].calls == decltype(counted[r].calls){2, 1, 1, 1, 1});
        CHECK(counted[r].bytes == decltype(counted[r].calls){2 * (2 * (k - 1) * b / k), (k - 1) * b, (k - 1) * b,
                                                             (k - 1) * b, (k - 1) * b / k});
        CHECK(axis[r].calls == decltype(counted[r].calls){0, 0, 0, 0, 1});
        CHECK(axis[r].bytes == decltype(counted[r].calls){0, 0, 0, 0, (k - 1) * (b / 2) / k});
        CHECK(reset[r].calls == decltype(counted[r].calls){});
        CHECK(reset[r].bytes == decltype(counted[r].calls){});
      }
    }
}

TEST_CASE("a link makes collectives of its axis take as long as it would, and changes nothing else") {
  const watchdog guard(60s);
  cfp::rank_pool pool(std::vector<int>{2, 2});
  struct seen {
    std::vector<std::vector<float>> results;
    std::vector<double> seconds;
    cfp::traffic sent;
  };
  const auto run = [&] {
    std::vector<seen> out(4);
    pool.run([&](rank_context& c) {
      seen& mine = out[static_cast<std::size_t>(c.rank)];
      const auto time = [&](const auto& f) {
        std::vector<float> from(2000, static_cast<float>(c.rank + 1)), to(4000);
        const auto begin = std::chrono::steady_clock::now();
        f(from.data(), to.data());
        mine.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        mine.results.push_back(from);
        mine.results.push_back(to);
      };
      const auto& axis = c.axes[0];
      time([&](float* from, float*) { axis.all_reduce(from, 2000, reduction::sum); });
      time([&](float* from, float* to) { axis.all_gather(from, to, 2000); });
      time([&](float* from, float* to) { axis.reduce_scatter(from, to, 1000, reduction::sum); });
      time([&](float* from, float* to) { axis.all_to_all(from, to, 1000); });
      time([&](float* from, float*) { axis.broadcast(from, 2000, 1); });
      mine.sent = axis.counted();
    });
    return out;
  };
  const std::vector<seen> without = run();
  pool.set_link(0, {0.004, 1e6});
  const std::vector<seen> with = run();
  constexpr cfp::collective_kind kinds[] = {cfp::collective_kind::all_reduce, cfp::collective_kind::all_gather,
                                            cfp::collective_kind::reduce_scatter, cfp::collective_kind::all_to_all,
                                            cfp::collective_kind::broadcast};
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(with[r].results == without[r].results);
    CHECK(with[r].sent.bytes == without[r].sent.bytes);
    for (std::size_t i = 0; i < 5; ++i)
      CHECK(with[r].seconds[i] >=
            0.004 + static_cast<double>(with[r].sent.bytes[static_cast<std::size_t>(kinds[i])]) / 1e6);
  }
  pool.set_link(0, {});
  CHECK(run()[0].results == without[0].results);
  CHECK_THROWS_WITH(pool.set_link(2, {}), "a mesh of 2 axes has no axis 2");
  CHECK_THROWS_AS(pool.set_link(0, {-1, 1e6}), cfp::bad_input);
  CHECK_THROWS_AS(pool.set_link(0, {0, 0}), cfp::bad_input);
}

TEST_CASE("a rank that throws stops those who wait in any group, and those who come later") {
  const watchdog guard;
  cfp::rank_pool pool({2, 2});
  for (int repeat = 0; repeat < 20; ++repeat) {
    const verdict v = judge(pool, [&](rank_context& c) {
      float x = 0;
      if (c.rank == 3) throw std::runtime_error("boom");
      if (c.rank == 0) c.axes[0].all_reduce(&x, 1, reduction::sum);  // with rank 2, which never comes
      if (c.rank == 1) c.world.broadcast(&x, 1, 2);
      if (c.rank == 2) {
        std::this_thread::sleep_for(5ms);
        c.axes[1].barrier();
      }
    });
    const std::string cause = "rank 3 failed: boom";
    CHECK(v.told[0] == "rank 0 stopped in all_reduce of 1 element on axis 0: " + cause);
    CHECK(v.told[1] == "rank 1 stopped in broadcast of 1 element: " + cause);
    CHECK(v.told[2] == "rank 2 stopped in barrier on axis 1: " + cause);
    REQUIRE(v.errors.size() == 4);
    CHECK(v.errors[0].rank == 3);
    CHECK_FALSE(v.errors[0].consequence);
    CHECK(v.errors[1].consequence);
    CHECK(v.whole.rfind(cause + "\n  then rank ", 0) == 0);
    CHECK(contains(v.whole, "\n  then rank 2 stopped in barrier on axis 1"));
    CHECK(v.whole.find("boom") == v.whole.rfind("boom"));  // consequences are brief
  }
  check_pool_works(pool);
}

TEST_CASE("a rank that waits for something else can ask whether another has failed, and add where that met it") {
  const watchdog guard;
  cfp::rank_pool pool(2);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const verdict v = judge(pool, [&](rank_context& c) {
      if (c.stopped() && c.rank == 1) throw std::logic_error("nobody has failed yet");
      if (c.rank == 1) throw std::runtime_error("boom");
      while (!c.stopped()) std::this_thread::yield();
      c.fail("stopped in a wait of its own", true);
    });
    REQUIRE(v.errors.size() == 2);
    CHECK(v.errors[1].consequence);
    CHECK(v.whole == "rank 1 failed: boom\n  then rank 0 stopped in a wait of its own");
  }
  check_pool_works(pool);
}

TEST_CASE("a failure of a group of one is a failure of the world") {
  const watchdog guard;
  cfp::rank_pool pool({2, 1});
  const verdict v = judge(pool, [&](rank_context& c) {
    if (c.rank == 1) throw 7;
    for (;;) c.axes[1].barrier();
  });
  CHECK(v.told[0] == "rank 0 stopped in barrier on axis 1: rank 1 failed: an exception that is no std::exception");
}

TEST_CASE("a rank that leaves stops those who wait for it") {
  const watchdog guard;
  cfp::rank_pool pool(2);
  check_pool_works(pool);  // a job that all leave says nothing about the next
  for (const bool late : {false, true}) {
    const verdict v = judge(pool, [&](rank_context& c) {
      std::int32_t x = 0;
      c.world.broadcast(&x, 1, 0);
      if (c.rank == 1) {
        if (late) std::this_thread::sleep_for(5ms);
        return;
      }
      if (!late) std::this_thread::sleep_for(5ms);
      c.world.all_reduce(&x, 1, reduction::sum);
    });
    CHECK(v.told[0] == "rank 1 left while rank 0 waits in all_reduce of 1 element");
    CHECK(v.whole == v.told[0]);
    REQUIRE(v.errors.size() == 1);
    CHECK_FALSE(v.errors[0].consequence);
  }
  check_pool_works(pool);
}

TEST_CASE("a rank that leaves does not stop a group without it") {
  const watchdog guard;
  std::atomic<int> ended{0};
  cfp::run_ranks({2, 2}, [&](rank_context& c) {
    if (c.coordinates[0] == 1) return;  // ranks 2 and 3
    std::this_thread::sleep_for(2ms);
    for (int i = 0; i < 50; ++i) c.axes[1].barrier();
    ++ended;
  });
  CHECK(ended == 2);
}

TEST_CASE("different calls of a group throw on all its ranks and name two of them") {
  const watchdog guard;
  struct mistake {
    void (*one)(const cfp::thread_communicator&);
    void (*other)(const cfp::thread_communicator&);
    const char* says;
  };
  static float f[64];
  static double d[64];
  static std::int32_t i[64];
  using group = const cfp::thread_communicator&;
  const mistake mistakes[] = {
      {[](group g) { g.all_reduce(f, 16, reduction::sum); }, [](group g) { g.all_gather(f, f + 8, 8); },
       "rank 0 calls all_reduce of 16 elements while rank 1 calls all_gather of 8 elements"},
      {[](group g) { g.broadcast(f, 16, 0); }, [](group g) { g.broadcast(f, 15, 0); },
       "rank 0 calls broadcast of 16 elements while rank 1 calls broadcast of 15 elements"},
      {[](group g) { g.barrier(); }, [](group g) { g.reduce_scatter(f, f + 8, 1, reduction::sum); },
       "rank 0 calls barrier while rank 1 calls reduce_scatter of 1 element"},
      {[](group g) { g.all_reduce(f, 4, reduction::sum); }, [](group g) { g.all_reduce(d, 4, reduction::sum); },
       "rank 0 calls all_reduce of 4 elements (float32, sum) while rank 1 calls all_reduce of 4 elements "
       "(float64, "
       "sum)"},
      {[](group g) { g.all_reduce(f, 4, reduction::sum); }, [](group g) { g.all_reduce(i, 4, reduction::sum); },
       "(float32, sum) while rank 1 calls all_reduce of 4 elements (int32, sum)"},
      {[](group g) { g.all_reduce(f, 4, reduction::max); }, [](group g) { g.all_reduce(f, 4, reduction::min); },
       "rank 0 calls all_reduce of 4 elements (float32, max) while rank 1 calls all_reduce of 4 elements "
       "(float32, "
       "min)"},
      {[](group g) { g.broadcast(f, 4, 0); }, [](group g) { g.broadcast(f, 4, 1); },
       "rank 0 calls broadcast of 4 elements (float32, root 0) while rank 1 calls broadcast of 4 elements "
       "(float32, "
       "root 1)"},
  };
  for (const int ranks : {2, 4}) {
    cfp::rank_pool pool(ranks);
    for (const mistake& m : mistakes) {
      const verdict v = judge(pool, [&](rank_context& c) { (c.rank == 1 ? m.other : m.one)(c.world); });
      for (const std::string& told : v.told) {
        CHECK(contains(told, m.says));
        CHECK(told == v.told[0]);
      }
      REQUIRE(v.errors.size() == static_cast<std::size_t>(ranks));
      CHECK(v.errors[0].message == v.told[0]);
      for (std::size_t k = 1; k < v.errors.size(); ++k) {
        CHECK(v.errors[k].consequence);
        CHECK(v.errors[k].message.size() < v.told[0].size());
      }
    }
    check_pool_works(pool);
  }
}

TEST_CASE("different calls on an axis are named by their ranks in the world") {
  const watchdog guard;
  cfp::rank_pool pool({2, 2});
  const verdict v = judge(pool, [&](rank_context& c) {
    float x = 0;
    if (c.rank == 3) c.axes[0].barrier();
    if (c.rank == 1) c.axes[0].broadcast(&x, 1, 1);
  });
  CHECK(v.told[1] == "rank 1 calls broadcast of 1 element while rank 3 calls barrier on axis 0");
  CHECK(v.told[3] == v.told[1]);
}

TEST_CASE("a root outside the group fails on the rank that names it") {
  const watchdog guard;
  cfp::rank_pool pool(2);
  const verdict v = judge(pool, [&](rank_context& c) {
    float x = 0;
    c.world.broadcast(&x, 1, c.rank == 0 ? 0 : 2);
  });
  CHECK(v.told[1] == "the root of a broadcast is a rank of the group, less than 2, got: 2");
  CHECK(v.told[0] == "rank 0 stopped in broadcast of 1 element: rank 1 failed: " + v.told[1]);
}

TEST_CASE("a deadline names who is missing, and where") {
  const watchdog guard;
  cfp::rank_pool pool({2, 2});
  pool.set_deadline(20ms);
  SECTION("a rank that computes for too long") {
    std::atomic<bool> enough{false};
    const verdict v = judge(pool, [&](rank_context& c) {
      if (c.rank == 2) {
        while (!enough) std::this_thread::yield();
        return;
      }
      double x[16] = {};
      try {
        c.world.all_reduce(x, 16, reduction::sum);
      } catch (...) {
        enough = true;
        throw;
      }
    });
    REQUIRE(v.errors.size() == 3);
    CHECK(contains(v.errors[0].message, " waited 20 ms in all_reduce of 16 elements for "));
    CHECK(contains(v.errors[0].message, "rank 2"));
  }
  SECTION("ranks that wait for each other in different groups") {
    const verdict v = judge(pool, [&](rank_context& c) {
      if (c.rank == 0) c.world.barrier();
      else c.axes[static_cast<std::size_t>(c.rank % 2)].barrier();
    });
    REQUIRE(v.errors.size() == 4);
    CHECK(contains(v.errors[0].message, " waited 20 ms in barrier"));
  }
  pool.set_deadline(10min);
  check_pool_works(pool);
}

TEST_CASE("any two ranks of an axis are a pair, alone") {
  const watchdog guard;
  std::atomic<int> wrong{0};
  for (const std::vector<int>& mesh : {std::vector{2}, std::vector{3}, std::vector{4}, std::vector{2, 3}})
    cfp::run_ranks(mesh, [&](rank_context& c) {
      for (std::size_t axis = 0; axis < mesh.size(); ++axis)
        for (int sum = 0; sum < mesh[axis]; ++sum) {
          const int mine = c.coordinates[axis], other = (sum - mine + mesh[axis]) % mesh[axis];
          if (other == mine) continue;
          const auto &there = c.pair(static_cast<int>(axis), other, true),
                     &back = c.pair(static_cast<int>(axis), other, false);
          const int step = axis + 1 < mesh.size() ? mesh[axis + 1] : 1;
          std::array<int, 3> x = {c.rank, sum, 7}, got{};
          const auto send = [&] { there.send(x.data(), x.size()); };
          if (mine < other) send();
          back.receive(got.data(), got.size());
          if (mine > other) send();
          const auto kind = static_cast<std::size_t>(cfp::collective_kind::send);
          wrong += got != std::array<int, 3>{c.rank + (other - mine) * step, sum, 7};
          wrong += there.counted().calls[kind] != 1 || there.counted().bytes[kind] != sizeof x;
          wrong += back.counted().calls[kind] != 1 || back.counted().bytes[kind] != 0;
        }
    });
  CHECK(wrong == 0);
}

TEST_CASE("a send that its receive does not fit, or that none comes for, says so") {
  const watchdog guard;
  cfp::rank_pool pool({2, 2});
  pool.set_deadline(20ms);
  double x[4] = {};
  const auto told = [&](int by_0, int by_2) {  // so many elements sent; below 0 received; 0: nothing
    const verdict v = judge(pool, [&](rank_context& c) {
      const int n = c.rank == 0 ? by_0 : c.rank == 2 ? by_2 : 0;
      double mine[4] = {};
      const auto& way = c.pair(0, c.rank == 0 ? 1 : 0, c.rank == 0);
      if (n > 0) way.send(x, static_cast<std::size_t>(n));
      if (n < 0) way.receive(mine, static_cast<std::size_t>(-n));
    });
    return v.errors.empty() ? std::string() : v.errors[0].message;
  };
  CHECK(told(3, -3).empty());
  CHECK(told(3, -4) == "rank 0 calls send of 3 elements while rank 2 calls send of 4 elements in pairs on axis 0");
  CHECK(told(3, 3) ==
        "rank 0 calls send of 3 elements (float64, by member 0) while rank 2 calls send of 3 elements "
        "(float64, by member 1) in pairs on axis 0");
  CHECK(told(0, -1) == "rank 0 left while rank 2 waits in send of 1 element in pairs on axis 0");
}

TEST_CASE("a deadline does not hit ranks that come in time") {
  const watchdog guard;
  cfp::run_ranks(
      4,
      [](rank_context& c) {
        for (int i = 0; i < 20; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(c.rank));
          c.world.barrier();
        }
      },
      20s);
  SUCCEED();
}

TEST_CASE("a deadline that passes just as the last rank comes decides the same for all") {
  const watchdog guard;
  cfp::rank_pool pool(2);
  pool.set_deadline(20us);
  int failed = 0;
  bool agreed = true;
  for (int repeat = 0; repeat < 300; ++repeat) {
    bool passed[2] = {false, false};
    const verdict v = judge(pool, [&](rank_context& c) {
      std::vector<float> mine(1000, 1.0f);  // gone when the rank fails
      if (c.rank == 1) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(repeat % 150);
        while (std::chrono::steady_clock::now() < until) {}
      }
      c.world.all_reduce(mine.data(), mine.size(), reduction::sum);
      passed[c.rank] = true;
    });
    agreed = agreed && passed[0] == passed[1] && passed[0] == v.errors.empty();
    failed += v.errors.empty() ? 0 : 1;
  }
  CAPTURE(failed);
  CHECK(agreed);
}

TEST_CASE("an error that a rank swallows still fails the job, and every later collective") {
  const watchdog guard;
  cfp::rank_pool pool(2);
  std::atomic<int> thrown{0};
  const std::string message = failure([&] {
    pool.run([&](rank_context& c) {
      for (int i = 0; i < 10; ++i) {
        float x[8] = {};
        try {
          if (c.rank == 0 && i == 0) c.world.all_gather(x, x + 4, 1);
          else c.world.all_to_all(x, x + 4, 1);
        } catch (const cfp::communicator_error&) {
          ++thrown;
        }
      }
    });
  });
  CHECK(thrown == 20);
  CHECK(contains(message, "rank 0 calls all_gather of 1 element while rank 1 calls all_to_all of 1 element"));
}

TEST_CASE("a rank throws at any point, while the others loop in collectives on buffers that it frees") {
  const watchdog guard(120s);
  std::mt19937 random(7);
  for (const std::vector<int>& mesh : {std::vector<int>{2}, {2, 2}, {3, 2}}) {
    cfp::rank_pool pool(mesh);
    const auto ranks = static_cast<unsigned>(pool.size());
    for (int repeat = 0; repeat < 150; ++repeat) {
      const auto culprit = static_cast<int>(random() % ranks);
      const auto fatal = random() % 12;
      const auto count = std::size_t{1} << (random() % 14);
      const verdict v = judge(pool, [&](rank_context& c) {
        const auto n = static_cast<std::size_t>(c.size);
        std::vector<float> in(n * count, 1.0f), out(n * count);  // gone when the rank fails
        for (unsigned step = 0;; ++step) {
          if (c.rank == culprit && step == fatal) throw std::runtime_error("boom");
          const cfp::thread_communicator& g = step % 3 == 0 ? c.world : c.axes[step % c.axes.size()];
          switch (step % 4) {
            case 0: g.all_reduce(in.data(), count, reduction::max); break;
            case 1: g.all_to_all(in.data(), out.data(), count); break;
            case 2: g.all_gather(in.data(), out.data(), count); break;
            default: g.reduce_scatter(in.data(), out.data(), count, reduction::sum);
          }
        }
      });
      CAPTURE(mesh, culprit, fatal, count);
      REQUIRE(v.errors.size() == ranks);
      CHECK(v.errors[0].rank == culprit);
      CHECK(v.errors[0].message == "rank " + std::to_string(culprit) + " failed: boom");
      for (std::size_t k = 1; k < v.errors.size(); ++k) CHECK(v.errors[k].consequence);
    }
    check_pool_works(pool);
  }
}

TEST_CASE("a failure elsewhere finds a round entered by all of its ranks or by none") {
  const watchdog guard(60s);
  cfp::rank_pool pool({2, 2});
  bool agreed = true;
  for (int repeat = 0; repeat < 2000; ++repeat) {
    int passed[4] = {};
    const verdict v = judge(pool, [&](rank_context& c) {
      if (c.rank == 3) {
        for (int i = 0; i < repeat % 16; ++i) std::this_thread::yield();
        throw std::runtime_error("boom");
      }
      for (; c.rank < 2; ++passed[c.rank]) c.axes[1].barrier();  // without rank 3
    });
    agreed = agreed && v.errors.size() == 3 && passed[0] == passed[1];
  }
  CHECK(agreed);
}

TEST_CASE("ranks that fail at the same time are all reported") {
  const watchdog guard;
  cfp::rank_pool pool(4);
  const std::string message =
      failure([&] { pool.run([](rank_context& c) { throw std::runtime_error("cause " + std::to_string(c.rank)); }); });
  for (int r = 0; r < 4; ++r)
    CHECK(contains(message, "rank " + std::to_string(r) + " failed: cause " + std::to_string(r)));
  check_pool_works(pool);
}

TEST_CASE("a pool runs many short jobs, each on every rank, one at a time") {
  const watchdog guard;
  cfp::rank_pool pool(3);
  std::vector<int> calls(3, 0);
  for (int job = 0; job < 1000; ++job) pool.run([&](rank_context& c) { ++calls[static_cast<std::size_t>(c.rank)]; });
  CHECK(calls == std::vector<int>{1000, 1000, 1000});
  const std::string nested = failure([&] {
    pool.run([&](rank_context& c) {
      if (c.rank == 0) pool.run([](rank_context&) {});
    });
  });
  CHECK(nested == "rank 0 failed: a rank pool runs one job at a time");
  check_pool_works(pool);
}

TEST_CASE("ranks can run ranks") {
  const watchdog guard;
  std::atomic<int> sum{0};
  cfp::run_ranks(2, [&](rank_context& outer) {
    cfp::run_ranks(2, [&](rank_context& inner) {
      int x = 10 * outer.rank + inner.rank;
      inner.world.all_reduce(&x, 1, reduction::sum);
      sum += x;
    });
  });
  CHECK(sum == 2 * (0 + 1) + 2 * (10 + 11));
}

}  // namespace threads_tests
