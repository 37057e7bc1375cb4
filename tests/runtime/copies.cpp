// A copy of the model in each of several pools, with shares of micro-batches by their speed: Rethinking Dynamic
// Networks and Heterogeneous Computing (arXiv 2506.02787), against all shares there are.
#include "../catch.hpp"

#include "small.hpp"

#include <cfp/session/plan_in_copies.hpp>
#include <cfp/solve/shares.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>

namespace copies_tests {

using namespace cfp;
using namespace small_tests;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

graph model(long some) {
  families::transformer c = tiny_config();
  c.batch = some, c.sequence = 64;
  return families::decoder(c);
}

// Devices that are so many times as fast as others, in arithmetic, memory and links.
machine of_speed(double times, int devices, long memory = 1l << 40) {
  machine m = plain_machine(mesh_of({devices}), 1e9 * times, 1e9 * times, 1e-8 / times, {{1e-6 / times, 2e9 * times}});
  m.name = "times " + std::to_string(static_cast<int>(times));
  m.device.memory = memory;
  return m;
}
interconnect links(double bandwidth = 2e9) {
  return plain_machine(mesh_of({2}), 1, 1, 0, {{1e-6, bandwidth}}).levels[0];
}

machine_plan_options in(int micro_batches) {
  machine_plan_options o;
  o.type = number::float32;
  o.unfused = true;
  o.micro_batches = micro_batches;
  return o;
}

double alone_ms(long rows, int micro_batches, const machine& m) {
  const machine_plan p = plan_for(model(rows), m, in(micro_batches));
  return p.fits() ? p.meshes.front().fastest()->ms : never;
}

// All ways to share pieces, each worker one or more.
void each_share(int pieces, std::size_t workers, std::vector<int>& so_far,
                const std::function<void(const std::vector<int>&)>& see) {
  if (so_far.size() + 1 == workers) {
    so_far.push_back(pieces);
    see(so_far);
    so_far.pop_back();
    return;
  }
  for (int n = 1; n + static_cast<int>(workers - so_far.size()) - 1 <= pieces; ++n) {
    so_far.push_back(n);
    each_share(pieces - n, workers, so_far, see);
    so_far.pop_back();
  }
}

std::string refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const bad_input& e) {
    return e.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("shares of work are the best of all there are") {
  std::mt19937 random(5);
  long asked = 0, all = 0, none = 0, cut = 0;
  for (int n = 0; n < 300; ++n) {
    const int workers = 1 + static_cast<int>(random() % 4), pieces = workers + static_cast<int>(random() % 12);
    std::vector<std::vector<double>> times(static_cast<std::size_t>(workers));
    for (std::vector<double>& of : times) {
      double time = static_cast<double>(random() % 20);
      const double speed = static_cast<double>(1 + random() % 8);
      const std::size_t most = random() % 4 == 0 ? random() % 6 : 99;  // beyond which it has no memory
      for (std::size_t k = 0; k <= static_cast<std::size_t>(pieces); ++k)
        of.push_back(k > most ? never : time += static_cast<double>(random() % 3) * speed);
    }
    const auto time = [&](int w, int k) { return times[static_cast<std::size_t>(w)][static_cast<std::size_t>(k)]; };
    double least = never;
    std::vector<int> so_far;
    each_share(pieces, static_cast<std::size_t>(workers), so_far, [&](const std::vector<int>& s) {
      double last = 0;
      for (int w = 0; w < workers; ++w) last = std::max(last, time(w, s[static_cast<std::size_t>(w)]));
      least = std::min(least, last);
    });
    const work_shares found = best_shares(pieces, workers, time);
    CAPTURE(n, workers, pieces);
    CHECK(found.time == least);
    CHECK(found.feasible() == (least < never));
    const auto finer = [&](int w, int eighths) {
      const double at = eighths / 8.0, low = std::floor(at);
      const double here = time(w, static_cast<int>(low));
      return at > low && here < never ? here + (at - low) * (time(w, static_cast<int>(low) + 1) - here) : here;
    };
    CHECK(found.fractional <= best_shares(8 * pieces, workers, finer).time * (1 + 1e-9));
    cut += found.feasible() && found.fractional > 0;
    if (!found.feasible()) ++none;
    else CHECK(std::accumulate(found.of_each.begin(), found.of_each.end(), 0) == pieces);
    asked += found.asked, all += workers * pieces;
  }
  CHECK(none > 10);
  CHECK(cut > 50);
  CHECK(asked < all / 2);
  CHECK_THROWS_AS(best_shares(2, 3, [](int, int) { return 1.0; }), bad_input);
}

TEST_CASE("Rethinking: pools that are twice as fast get twice the micro-batches") {
  const std::optional<copies_plan> p = plan_in_copies(model, 12, {{of_speed(1, 2), of_speed(2, 2)}, links()}, in(12));
  REQUIRE(p);
  CHECK(p->copies[0].micro_batches == 4);
  CHECK(p->copies[1].micro_batches == 8);
  CHECK(p->rows == 1);
  CHECK(p->ms == Approx(std::max(p->copy_ms(0), p->copy_ms(1)) + p->gradients_ms));
}

TEST_CASE("Rethinking: equal pools get equal shares, and what one takes for that is the step") {
  const machine half = of_speed(1, 2);
  const std::optional<copies_plan> p = plan_in_copies(model, 8, {{half, half}, links()}, in(4));
  REQUIRE(p);
  CHECK(p->copies[0].micro_batches == 2);
  CHECK(p->copies[1].micro_batches == 2);
  // Each gets what the other has: a plain link carries all gradients once each way.
  double numbers = 0;
  for (const value& v : model(1).values)
    if (v.role == value_role::weight) numbers += static_cast<double>(elements(v.shape));
  const double bytes = 4 * numbers;
  CHECK(p->bytes_between == bytes);
  CHECK(p->gradients_ms == Approx(1e3 * (half.device.launch + 1e-6 + bytes / 2e9)));
  CHECK(p->ms == Approx(alone_ms(2, 2, half) + p->gradients_ms));
}

TEST_CASE("Rethinking: copies in pools are the best of all micro-batches and shares", "[heavy]") {
  std::mt19937 random(11);
  const auto drawn = [&](double least, double most) { return std::uniform_real_distribution<>(least, most)(random); };
  for (int n = 0; n < 3; ++n) {
    const machine_pools pools({of_speed(drawn(1, 4), 1 + static_cast<int>(random() % 2)), of_speed(drawn(1, 4), 2)},
                              links(drawn(1e8, 2e9)));
    double least = never;
    int most = 0;
    for (const int all : {2, 4, 8})
      for (int share = 1; share < all; ++share) {
        const double ms =
            std::max(alone_ms(8 / all, share, pools.pools[0]), alone_ms(8 / all, all - share, pools.pools[1]));
        if (ms < least) least = ms, most = all;
      }
    const std::optional<copies_plan> p = plan_in_copies(model, 8, pools, in(0));
    REQUIRE(p);
    CHECK(p->ms - p->gradients_ms == Approx(least));
    CHECK(p->micro_batches == most);
    machine_plan_options faster = in(0);
    faster.within = p->ms;
    CHECK_FALSE(plan_in_copies(model, 8, pools, faster));
  }
}

TEST_CASE("copies in pools fit the memory of each, and are written and printed pool by pool") {
  const machine first = of_speed(1, 2), second = of_speed(3, 2);
  const std::optional<copies_plan> p = plan_in_copies(model, 8, {{first, second}, links()}, in(8));
  REQUIRE(p);
  const long peak = p->copies[1].meshes.front().fastest()->peak_bytes;
  const std::optional<copies_plan> tight =
      plan_in_copies(model, 8, {{first, of_speed(3, 2, peak - 1)}, links()}, in(8));
  REQUIRE(tight);
  CHECK(tight->copies[1].meshes.front().fastest()->peak_bytes < peak);
  CHECK_FALSE(plan_in_copies(model, 8, {{first, of_speed(3, 2, 1000)}, links()}, in(8)));

  std::ostringstream text;
  text << *p;
  for (const char* const says : {"copies of the model on 2 of times 1 + 2 of times 3", "8 micro-batches of 1 row",
                                 "gradients between the pools"})
    CHECK(text.str().find(says) != std::string::npos);
  CHECK(nlohmann::json::parse(p->json())["copies"].size() == 2);
  const std::filesystem::path at = std::filesystem::temp_directory_path() / "cfp_copies";
  std::filesystem::create_directories(at);
  p->save_plan((at / "plan.json").string());
  p->save_header((at / "plan.hpp").string());
  for (const char* const name : {"plan-1.json", "plan-2.json", "plan-1.hpp", "plan-2.hpp"})
    CHECK(std::filesystem::exists(at / name));
  std::filesystem::remove_all(at);
}

TEST_CASE("what copies in pools cannot be is said") {
  const machine_pools two({of_speed(1, 2), of_speed(2, 2)}, links());
  machine_plan_options o = in(0);
  CHECK(refused([&] { plan_in_copies(model, 8, of_speed(1, 2), o); }).find("two pools") != std::string::npos);
  o.mesh = "x=2";
  CHECK(refused([&] { plan_in_copies(model, 8, two, o); }).find("leave it out") != std::string::npos);
  o = in(0);
  o.optimizers = {optimizer_form::adamw_float32, optimizer_form::adafactor};
  CHECK(refused([&] { plan_in_copies(model, 8, two, o); }).find("one optimizer") != std::string::npos);
  CHECK(refused([&] { plan_in_copies(model, 8, two, in(3)); }).find("3") != std::string::npos);
  o = in(0);
  o.table = "times.json";
  CHECK(refused([&] { plan_in_copies(model, 8, two, o); }).find("one kind of device") != std::string::npos);
}

}  // namespace copies_tests
