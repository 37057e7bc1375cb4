// Which machine to take and how much of it: Astra's questions (arXiv 2502.13480), each against all plans there are.
#include "../catch.hpp"

#include "small.hpp"

#include <cfp/plan/least_step.hpp>
#include <cfp/profile/machine/fleet_file.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/fleet_plan.hpp>
#include <cfp/session/print_fleet.hpp>
#include <cfp/session/search_options.hpp>

#include <random>

namespace fleets_tests {

using namespace cfp;
using namespace small_tests;

namespace {

graph model(long some) {
  families::transformer c = tiny_config();
  c.batch = some;
  return families::decoder(c);
}
constexpr long rows = 8;

machine_plan_options float32() {
  machine_plan_options o;
  o.type = number::float32;
  return o;
}

// In as many micro-batches as take least.
machine_plan_options any_passes() {
  machine_plan_options o = float32();
  o.micro_batches = 0;
  return o;
}

// Machines of some speeds, links and prices; `memory`: of their devices.
fleet random_fleet(std::mt19937& random, long memory = 1l << 40) {
  const auto between = [&](double least, double most) { return std::uniform_real_distribution<>(least, most)(random); };
  fleet f{"drawn", "USD"};
  for (const char* const label : {"first", "second", "third"}) {
    const bool wide = random() % 2 > 0;
    machine m = plain_machine(wide ? mesh_of({2, 4}) : mesh_of({4}), between(1e10, 4e11), between(1e10, 1e11), 1e-7,
                              {{1e-7, between(1e9, 2e10)}});
    m.device.memory = memory;
    f.pools.push_back({label, m, between(0.5, 5)});
  }
  return f;
}

using point = std::pair<double, double>;  // time and money
std::vector<point> points(const std::vector<const fleet_offer*>& offers) {
  std::vector<point> out;
  for (const fleet_offer* x : offers) out.push_back({x->ms, x->price()});
  return out;
}

std::string refused(const std::string& text) {
  try {
    read_fleet(text, "my.json", [](const std::string& name) {
      machine m = plain_machine(mesh_of({2, 4}));
      m.name = name;
      return m;
    });
  } catch (const invalid_machine& e) {
    return e.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("no plan takes less than one device does of all, shared by all devices", "[heavy]") {
  std::mt19937 random(3);
  double nearest = 0;
  for (const bool tiles : {false, true})
    for (const fleet::pool& p : random_fleet(random).pools)
      for (const int devices : counts_of(p.on)) {
        machine m = innermost(p.on, devices);
        REQUIRE(m.devices() == devices);
        if (tiles) m.device.processors = 3, m.device.tile = 16, m.device.tile_depth = 24;
        machine_plan_options o = float32();
        o.unfused = random() % 2 > 0, o.micro_batches = random() % 2 > 0 ? 1 : 4;
        const graph g = differentiate(refine(model(rows)));
        const double least =
            least_step_ms(on_one_device(g, cfp::detail::search_options(o).lowered_for), g, m.device, devices);
        CHECK(least > 0);
        for (const machine_plan::on_mesh& on : plan_for(model, rows, m, o).meshes)
          for (const machine_plan::priced& plan : on.plans) {
            CHECK(plan.ms >= least);
            nearest = std::max(nearest, least / plan.ms);
          }
      }
  CHECK(nearest > 0.9);
}

TEST_CASE("parts of a product take no less together than its tiles") {
  std::mt19937 random(9);
  device_type d = plain_machine(mesh_of({2})).device;
  d.processors = 5, d.tile = 16, d.tile_depth = 24;
  for (int n = 0; n < 2000; ++n) {
    const auto some = [&](int most) { return static_cast<double>(1 + random() % static_cast<unsigned>(most)); };
    const product_shape part{some(4), some(100), some(100), some(100)};
    product_shape whole = part;
    const double parts = 2 + static_cast<double>(random() % 4);
    double product_shape::*const split[] = {&product_shape::batch, &product_shape::rows, &product_shape::columns,
                                            &product_shape::inner};
    whole.*split[random() % 4] *= parts;
    CHECK(parts * product_seconds_at(1e9, d, part) >= least_product_seconds(1e9, d, whole) * (1 - 1e-12));
    CHECK(product_seconds_at(1e9, d, whole) >= least_product_seconds(1e9, d, whole) * (1 - 1e-12));
  }
}

TEST_CASE("Astra: the front of time and money is that of all parts of all machines, pruned or not", "[heavy]") {
  std::mt19937 random(4);
  int beaten = 0;
  for (int n = 0; n < 3; ++n) {
    const bool tight = n == 2;
    const fleet f = random_fleet(random, tight ? 2300l << 10 : 1l << 40);
    fleet_question all;
    all.prune = false;
    const fleet_plan every = plan_for(model, rows, f, any_passes(), all), some = plan_for(model, rows, f, any_passes());
    beaten += some.count(fleet_offer::beaten);
    CHECK((tight || every.count(fleet_offer::planned) == static_cast<int>(every.offers.size())));
    for (std::size_t i = 0; i < some.offers.size(); ++i)
      if (some.offers[i].state == fleet_offer::beaten) CHECK(every.offers[i].ms >= some.offers[i].least_ms);
    REQUIRE(points(some.front()) == points(every.front()));
    // By hand: none beats another, and every plan is beaten by one of them or is one.
    const std::vector<const fleet_offer*> front = some.front();
    for (const fleet_offer* a : front)
      for (const fleet_offer* b : front) CHECK((a == b || a->ms < b->ms || a->price() < b->price()));
    double fastest = std::numeric_limits<double>::infinity(), cheapest = fastest;
    for (const fleet_offer& x : every.offers) {
      fastest = std::min(fastest, x.ms), cheapest = std::min(cheapest, x.price());
      const auto p = std::find_if(f.pools.begin(), f.pools.end(), [&](const auto& of) { return of.name == x.machine; });
      if (x.state == fleet_offer::planned)
        CHECK(x.ms == plan_for(model, rows, innermost(p->on, x.devices), any_passes()).meshes.front().fastest()->ms);
      CHECK(x.hourly == Approx(p->price * x.devices));
      CHECK(std::any_of(front.begin(), front.end(),
                        [&](const fleet_offer* y) { return y->ms <= x.ms && y->price() <= x.price(); }));
    }
    CHECK(some.fastest()->ms == fastest);
    CHECK(some.cheapest()->price() == cheapest);
  }
  CHECK(beaten > 3);
}

TEST_CASE("Astra: with more to spend in an hour no plan is slower, and none costs more than that", "[heavy]") {
  std::mt19937 random(5);
  const fleet f = random_fleet(random);
  double before = std::numeric_limits<double>::infinity();
  for (const double budget : {0.1, 2.0, 4.0, 8.0, 16.0, 1e9}) {
    fleet_question q;
    q.budget = budget;
    const fleet_plan found = plan_for(model, rows, f, any_passes(), q);
    q.prune = false;
    CHECK(points(found.front()) == points(plan_for(model, rows, f, any_passes(), q).front()));
    const fleet_offer* best = found.fastest();
    for (const fleet_offer* x : found.front()) CHECK(x->hourly <= budget);
    if (best == nullptr) {
      CHECK(found.count(fleet_offer::above_budget) == static_cast<int>(found.offers.size()));
      continue;
    }
    CHECK(best->ms <= before);
    before = best->ms;
  }
  CHECK(before < std::numeric_limits<double>::infinity());
}

TEST_CASE("Astra: equal machines give the answer of one of them; of twice the price none is taken") {
  std::mt19937 random(6);
  fleet f = random_fleet(random);
  f.pools[1].on = f.pools[2].on = f.pools[0].on;
  f.pools[1].price = f.pools[0].price, f.pools[2].price = 2 * f.pools[0].price;
  fleet one = f;
  one.pools.resize(1);
  const fleet_plan all = plan_for(model, rows, f, any_passes());
  CHECK(points(all.front()) == points(plan_for(model, rows, one, any_passes()).front()));
  for (const fleet_offer* x : all.front()) CHECK(x->machine != "third");
  machine_plan_options measured = float32();
  measured.table = "times.json";  // of which of them?
  CHECK_THROWS_AS(plan_for(model, rows, f, measured), bad_input);
}

TEST_CASE("Astra: pools that are joined are on the front where nothing beats them, pruned or not", "[heavy]") {
  const auto layers_of = [](long some) {
    families::transformer c = tiny_config();
    c.layers = 3, c.batch = some, c.sequence = 64;
    return families::decoder(c);
  };
  std::mt19937 random(8);
  int joined = 0;
  for (int n = 0; n < 3; ++n) {
    fleet f;
    f.name = "drawn", f.currency = "EUR";
    for (const char* const label : {"first", "second"}) {
      const double speed = 1 + static_cast<double>(random() % 4);
      machine m = plain_machine(mesh_of({2}), 1e9 * speed, 1e9 * speed, 1e-8, {{1e-6, 2e8}});
      m.name = label, m.device.memory = 1l << 40;
      f.pools.push_back({label, m, speed * (1 + static_cast<double>(random() % 3))});
    }
    f.between = f.pools[0].on.levels[0];
    fleet_question all;
    all.stages = true, all.prune = false;
    machine_plan_options o = float32();
    o.unfused = true;
    const fleet_plan every = plan_for(layers_of, 8, f, o, all);
    CHECK(every.offers.size() == 8);  // 1 and 2 of each, and these with one another
    all.prune = true;
    const fleet_plan some = plan_for(layers_of, 8, f, o, all);
    CHECK(points(some.front()) == points(every.front()));
    for (const fleet_offer* x : some.front()) joined += x->parts.size() > 1;
    for (const fleet_offer& x : every.offers)
      if (x.state == fleet_offer::planned) {
        CHECK(x.ms >= x.least_ms);
        CHECK((x.in_stages || x.in_copies) >= (x.parts.size() > 1));
        CHECK_FALSE((x.in_copies && (x.in_stages || x.parts.size() < 2)));
      }
    const std::string text = fleet_text(every, 512);
    const std::vector<const fleet_offer*> best = every.front();
    for (const fleet_offer& x : every.offers) {
      const bool is_best = std::count(best.begin(), best.end(), &x) > 0;
      if (x.parts.size() > 1) CHECK((text.find(x.machine) != std::string::npos) == is_best);
    }
    f.between.reset();
    CHECK(plan_for(layers_of, 8, f, o, all).offers.size() == 4);
  }
  CHECK(joined > 0);
}

TEST_CASE("the fewest devices that fit are those of all parts", "[heavy]") {
  std::mt19937 random(7);
  machine_plan_options keeps_all = float32();
  keeps_all.recompute = recomputing::none;
  int not_asked = 0, unfit = 0;
  for (const long memory : {400l << 10, 700l << 10, 1500l << 10, 16l << 20}) {
    fleet f = random_fleet(random, memory);
    fleet_question q;
    q.wanted = fleet_question::least_devices;
    const fleet_plan some = plan_for(model, rows, f, keeps_all, q);
    q.prune = false;
    const fleet_plan every = plan_for(model, rows, f, keeps_all, q);
    not_asked += some.count(fleet_offer::not_asked), unfit += some.count(fleet_offer::unfit);
    REQUIRE((some.smallest() == nullptr) == (every.smallest() == nullptr));
    if (every.smallest() == nullptr) continue;
    int fewest = 1 << 20;
    for (const fleet_offer& x : every.offers)
      if (x.state == fleet_offer::planned) fewest = std::min(fewest, x.devices);
    CHECK(some.smallest()->devices == fewest);
    CHECK(some.smallest()->ms == every.smallest()->ms);
  }
  CHECK(not_asked > 0);
  CHECK(unfit > 0);
}

TEST_CASE("a fleet's file says what is wrong with it, and what it is") {
  const std::string good =
      R"({"name": "mine", "currency": "EUR", "pools": [{"machine": "a", "price": 2.5, "devices": 4}]})";
  CHECK(refused(good) == "taken");
  const auto with = [&](const std::string& was, const std::string& is) {
    std::string text = good;
    return refused(text.replace(text.find(was), was.size(), is));
  };
  CHECK(with("2.5", "-1") ==
        "my.json: pools[0].price must be what a device costs in an hour, above 0 and at most 1e6, got -1");
  CHECK(with("4", "3") == "my.json: pools[0].devices 3: 'a' has whole parts of 1, 2, 4, 8 devices; take one of them");
  CHECK(with("\"devices\"", "\"nodes\"") ==
        "my.json: pools[0] has the key 'nodes', which pools of a fleet do not know");
  CHECK(with("\"currency\": \"EUR\", ", "") == "my.json: the file must have 'currency'");
  CHECK(with("[{\"machine\": \"a\", \"price\": 2.5, \"devices\": 4}]", "[]") ==
        "my.json: pools must name a machine or more");
  CHECK(with("4}]", "4}, {\"machine\": \"a\", \"price\": 1}]") ==
        "my.json: pools name the machine 'a' twice; name it once, with all its devices");
  CHECK(with("}]}", "}]").find("my.json: line 1") == 0);
  CHECK(with("4}]", R"(4}], "between": {"bandwidth": 1e9, "latency": 1e-5})") == "taken");
  CHECK(with("4}]", R"(4}], "between": {"bandwidth": -1, "latency": 1e-5})") ==
        "my.json: between.bandwidth must be bytes per second from 1.0 to 1e+15, got -1");
  CHECK(with("4}]", R"(4}], "between": {"bandwidth": 1e9})") == "my.json: between must have 'latency'");
}

}  // namespace fleets_tests
