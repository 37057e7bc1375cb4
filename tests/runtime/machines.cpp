// Described machines: what is refused, laws of times, the geometry of groups, closed forms of memory, the simulation of
// two streams. Machines that are measured: that they say so, and plan.
#include "../catch.hpp"

#include "../random_graph.hpp"
#include "small.hpp"

#include <cfp/backend/this_processor.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/profile/machine/machine_writer.hpp>
#include <cfp/profile/machine/time_terms.hpp>
#include <cfp/profile/measure/sweep.hpp>
#include <cfp/solve/other/exhaustive.hpp>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

namespace machines_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}
const std::string folder = CFP_SOURCE_DIR "/examples/machines/";
machine carried(const std::string& file) { return load_machine(folder + file + ".json"); }

std::string refused(const std::string& text) {
  try {
    read_machine(text, "my.json");
  } catch (const invalid_machine& e) {
    return e.what();
  }
  return "nothing";
}
// The 8x A100 with one place of its text replaced.
std::string refused_with(const std::string& from, const std::string& to) {
  std::string text = text_of(folder + "a100-8.json");
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return refused(text.replace(at, from.size(), to));
}

// Every number below a key must be named in `sources`; points of sweeps have the sweep's.
void check_sources(const nlohmann::json& j, const std::string& path, const nlohmann::json& sources) {
  for (const auto& [key, value] : j.items()) {
    const std::string here = path + "." + key;
    if (value.is_object()) check_sources(value, here, sources);
    else if (value.is_number() && key != "joins") {
      INFO(here);
      CHECK(sources.contains(here));
    }
  }
}

}  // namespace

TEST_CASE("machines in the tree read, each figure has a source") {
  int files = 0;
  for (const auto& f : std::filesystem::directory_iterator(folder)) {
    INFO(f.path());
    ++files;
    const nlohmann::json j = nlohmann::json::parse(text_of(f.path()));
    CHECK_NOTHROW(load_machine(f.path()));
    check_sources(j["device"], "device", j["sources"]);
    for (const auto& l : j["levels"]) check_sources(l, "levels." + l["name"].get<std::string>(), j["sources"]);
  }
  CHECK(files >= 6);
}

TEST_CASE("a machine with a mistake is refused by name") {
  CHECK(refused("{") == "my.json: line 1, column 2: this is not JSON");
  CHECK_THROWS_WITH(load_machine("no.json"), "no.json: cannot be read");
  CHECK(refused("{}") == "my.json: the file must have 'name'");
  CHECK(refused_with("\"bandwidth\": 1709000000000.0,", "") == "my.json: device must have 'bandwidth'");
  CHECK(refused_with("\"bandwidth\": 1709000000000.0", "\"bandwidth\": -1") ==
        "my.json: 8x A100 80GB NVLink: device.bandwidth must be a positive number, got: -1");
  CHECK(refused_with("\"bandwidth\": 1709000000000.0", "\"bandwidth\": \"NaN\"") ==
        "my.json: device.bandwidth must be a number, got \"NaN\"");
  CHECK(refused_with("\"bandwidth\": 1709000000000.0", "\"bandwidth\": NaN").find("this is not JSON") !=
        std::string::npos);
  CHECK(refused_with("\"bandwidth\": 1709000000000.0", "\"bandwidth\": 1e999").find("the number 1e999 is too large") !=
        std::string::npos);
  CHECK(refused_with("\"bandwidth\": 1709000000000.0", "\"bandwidth\": 1, \"bandwidth\": 2") ==
        "my.json: the key 'bandwidth' stands twice in one object");
  CHECK(refused_with("\"memory\": 83751862272", "\"memory\": 0.5") ==
        "my.json: device.memory must be a whole number, got 0.5");
  CHECK(refused_with("\"launch\"", "\"lunch\"") == "my.json: device has the key 'lunch', which machines do not know");
  CHECK(refused_with("\"contention\": 1.1", "\"contention\": 1.1, \"hand_over\": -1")
            .find("device.hand_over must be from 0 to 1 second, got: -1") != std::string::npos);
  CHECK(refused_with("\"host_bandwidth\": 12000000000.0", "\"host_bandwidth\": 1")
            .find("device.host_bandwidth must be 0 (nothing may rest there) or from 1e6 bytes per second to "
                  "device.bandwidth, 1709000000000, got: 1") != std::string::npos);
  CHECK(
      refused_with("\"tile\": 128", "\"tile\": 1.5").find("device.tile must be a whole number, 1 or more, got: 1.5") !=
      std::string::npos);
  CHECK(refused_with("\"name\": \"8x A100 80GB NVLink\"", "\"name\": \"\"").find("name must not be empty") !=
        std::string::npos);
  CHECK(
      refused_with("\"bandwidth\": 1709000000000.0", "\"weight_products\": \"float8\", \"bandwidth\": 1709000000000.0")
          .find("device.weight_products must be a type of device.product_rate, got 'float8'") != std::string::npos);
  CHECK(
      refused_with("\"contention\": 1.1", "\"contention\": 0.5").find("device.contention must be from 1 (none) to 2") !=
      std::string::npos);
  CHECK(refused_with("\"kind\": \"nvlink\"", "\"kind\": \"rope\"") ==
        "my.json: levels[0].kind must be one of plain, nvlink, pcie, network, got 'rope'");
  CHECK(refused_with("\"joins\": 8", "\"joins\": 0") == "my.json: levels[0].joins must be from 1 to 1048576, got: 0");
  CHECK(refused_with("\"channels\": 12", "\"channels\": 12, \"switch_reduction\": 1e11")
            .find("contradicts chips: only hopper's and later switches add up") != std::string::npos);
  CHECK(refused_with("\"devices\": 8", "\"devices\": 16") ==
        "my.json: 8x A100 80GB NVLink: sweeps[0].devices must be from 2 to the 8 devices of the machine, got: 16");
  CHECK(refused_with("\"nodes\": 1", "\"nodes\": 2")
            .find("sweeps[0].nodes must be a divisor of its 8 devices that the machine's 1 nodes allow") !=
        std::string::npos);
  CHECK(refused_with("[65536, 4.68e-05]", "[32768, 4.68e-05]") ==
        "my.json: 8x A100 80GB NVLink: sweeps[0].points[1] must have more bytes than the one before");
  CHECK(refused_with("[17179869184, 0.128]", "[17179869184, 0.0128]")
            .find("sweeps[0] contradicts levels: it sends 2348.8 GB/s, twice what any level carries") !=
        std::string::npos);
  CHECK(refused_with("\"nodes\": 1", "\"nodes\": 1, \"at_once\": 2")
            .find("sweeps[0].at_once must be as many such groups as a node has devices for") != std::string::npos);
  CHECK(refused_with("[17179869184, 0.128]", "[17179869184, 1e-320]").find("it sends 1e+291 GB/s") !=
        std::string::npos);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK(refused_with("\"bandwidth\": 1709000000000.0", "\"bandwidth\": " + deep) ==
        "my.json: device.bandwidth must be a number, got an array");
  const std::string plain = R"({"name": "m", "chips": "hopper", "device": {"name": "d", "product_rate": {"float32": 1},
    "bandwidth": 1, "memory": 1, "launch": 0},
    "levels": [{"name": "l", "kind": "plain", "joins": 2, "bandwidth": 1}])";
  CHECK(refused(plain + "}") == "nothing");
  CHECK(refused(plain + R"(, "sources": "a paper"})") == "my.json: sources must be an object, got \"a paper\"");
  CHECK(refused(plain + R"(, "sources": null})") == "my.json: sources must be an object, got null");
  machine m = carried("a100-8");
  m.device.bandwidth = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(validate(m), "8x A100 80GB NVLink: device.bandwidth must be a positive number, got: nan");
  m = carried("h100-8x8-400g");
  std::swap(m.levels[0], m.levels[1]);
  CHECK_THROWS_WITH(validate(m), Catch::Contains("joins what a network joins; levels go from the inside out"));
}

TEST_CASE("what is written reads back equal, in every figure and its source") {
  for (const auto& f : std::filesystem::directory_iterator(folder)) {
    INFO(f.path());
    const machine m = load_machine(f.path());
    const std::string text = machine_text(m);
    CHECK(read_machine(text) == m);
    const nlohmann::json before = nlohmann::json::parse(text_of(f.path())), after = nlohmann::json::parse(text);
    CHECK(after["sources"] == before["sources"]);
    CHECK(after["sweeps"] == before["sweeps"]);
    CHECK(after["levels"].size() == before["levels"].size());
    for (const auto& [key, value] : before["device"].items()) CHECK(after["device"][key] == value);
  }
  machine odd = plain_machine(mesh_of({2, 4}), 1.0 / 3, 1e-300, 0, {{0, 1e11}, {1.0 / 7, 123456789.123}});
  odd.name = "\"[ 1,\n 2 ]\", {a\\b}, größer";
  odd.levels[0].channels = 3;
  odd.levels[1].kind = interconnect::network;
  odd.device.hand_over = 1e-9;
  odd.sweeps = {{collective_kind::broadcast, 2, 2, 4, {{0.5, 0.1}, {1e300, 1e299}}, "[3, 4]"}};
  odd.sources = {{"device.launch", "a guess, [5, 6]"}};
  CHECK(read_machine(machine_text(odd)) == odd);
  const std::string path = (std::filesystem::temp_directory_path() / "cfp_machines_written.json").string();
  write_machine(odd, path);
  CHECK(load_machine(path) == odd);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(write_machine(odd, "/nowhere/machine.json"), bad_input);
  machine bad = odd;
  bad.device.launch = -1;
  CHECK_THROWS_WITH(machine_text(bad), Catch::Contains("device.launch must be from 0 to 1 second, got: -1"));
  bad = odd;
  bad.device.product_rate["float16"] = 1;
  CHECK_THROWS_WITH(machine_text(bad), Catch::Contains("has the key 'float16', which machines do not know"));
}

TEST_CASE("groups of devices sit where ranks do, and share what leaves a node") {
  const machine m = carried("v100-2x8-25g");
  const auto group = [&](const mesh_shape& mesh, int axis) { return group_of(m, mesh, axis); };
  CHECK(group(mesh_of({16}), 0).within == std::vector<int>{1, 8});
  CHECK(group(mesh_of({2, 8}), 0).within == std::vector<int>{1, 1});
  CHECK(group(mesh_of({2, 8}), 0).share == std::vector<double>{1, 0.125});
  CHECK(group(mesh_of({2, 8}), 1).within == std::vector<int>{1, 8});
  CHECK(group(mesh_of({4, 4}), 0).within == std::vector<int>{1, 2});
  CHECK(group(mesh_of({4, 4}), 0).share == std::vector<double>{1, 0.25});
  CHECK(group(mesh_of({4, 4}), 1).within == std::vector<int>{1, 4});
  CHECK_THROWS_WITH(group(mesh_of({4, 3}), 0), Catch::Contains("straddles the groups of 8 devices"));
  CHECK_THROWS_WITH(described_times(m, mesh_of({4, 8})), Catch::Contains("a mesh of 32 devices does not fit"));
  // Eight groups of two through one adapter, or one group of sixteen: large messages take as long as the bytes through
  // it.
  const double bytes = 1 << 30;
  const double eight = described_seconds(m, group(mesh_of({2, 8}), 0), collective_kind::all_gather, bytes);
  const double adapter = m.levels[1].bandwidth;
  CHECK(eight == Approx(8 * bytes / 2 / adapter).epsilon(0.01));
  CHECK(described_seconds(m, group(mesh_of({16}), 0), collective_kind::all_gather, bytes) ==
        Approx(bytes * 15 / 16 / adapter).epsilon(0.01));
  // Of an all-to-all over both nodes half leaves each.
  CHECK(described_seconds(m, group(mesh_of({16}), 0), collective_kind::all_to_all, bytes) ==
        Approx(8 * bytes / 2 / adapter).epsilon(0.01));
}

TEST_CASE("laws of collectives") {
  for (const char* file : {"a100-pcie-4", "v100-8", "a100-8", "h200-8", "v100-2x8-25g", "h100-8x8-400g"})
    for (const mesh_shape& mesh : meshes_of(carried(file)))
      for (int a = 0; a < mesh.rank(); ++a) {
        const machine m = carried(file);
        const device_group g = group_of(m, mesh, a);
        double before[4] = {};
        for (double bytes = 1024; bytes < 1e10; bytes *= 4) {
          for (const collective_kind k : {collective_kind::all_reduce, collective_kind::all_gather,
                                          collective_kind::reduce_scatter, collective_kind::all_to_all}) {
            const double s = described_seconds(m, g, k, bytes);
            CHECK(s > 0);
            CHECK(s >= 0.7 * before[static_cast<int>(k)]);  // NCCL's trees are not monotonous
            before[static_cast<int>(k)] = s;
          }
          CHECK(described_seconds(m, g, collective_kind::all_gather, bytes) ==
                described_seconds(m, g, collective_kind::reduce_scatter, bytes));
        }
      }
  // Rings: an all-reduce sends 2 (n-1)/n of its bytes, as a reduce-scatter and an all-gather do together.
  for (const int n : {2, 3, 8, 64}) {
    const long bytes = 1l << 36;
    CHECK(bytes_sent(collective_kind::all_reduce, bytes, n) == 2 * (n - 1) * bytes / n);
    CHECK(std::abs(bytes_sent(collective_kind::all_reduce, bytes, n) -
                   bytes_sent(collective_kind::all_gather, bytes, n) -
                   bytes_sent(collective_kind::reduce_scatter, bytes, n)) <= 2);
    const mesh_shape mesh = mesh_of({n});
    const machine plain = plain_machine(mesh, 1e13, 1e12, 0, {{0, 1e11}});
    const device_group g = group_of(plain, mesh, 0);
    const auto seconds = [&](collective_kind k) { return collective_seconds(plain, g, k, static_cast<double>(bytes)); };
    CHECK(seconds(collective_kind::all_reduce) == Approx(2.0 * (n - 1) / n * static_cast<double>(bytes) / 1e11));
    CHECK(seconds(collective_kind::all_reduce) ==
          Approx(seconds(collective_kind::all_gather) + seconds(collective_kind::reduce_scatter)));
    CHECK(seconds(collective_kind::all_to_all) ==
          Approx(static_cast<double>(bytes_sent(collective_kind::all_to_all, bytes, n)) / 1e11));
  }
}

TEST_CASE("measured points are met, others are corrected by them") {
  for (const auto& f : std::filesystem::directory_iterator(folder)) {
    const machine m = carried(f.path().stem());
    for (const collective_sweep& s : m.sweeps) {
      if (s.devices != m.devices()) continue;
      for (const auto& [bytes, seconds] : s.points) {
        INFO(f.path().stem() << " " << bytes);
        CHECK(collective_seconds(m, group_of(m, s), s.kind, bytes) == Approx(seconds));
      }
    }
  }
}

TEST_CASE("groups that were measured at the same time are priced so") {
  machine m = carried("v100-2x8-25g");
  m.sweeps = {{collective_kind::all_gather, 2, 2, 8, {{1e6, 0.01}}, "a test"}};
  validate(m);
  const device_group eight = group_of(m, mesh_of({2, 8}), 0), one = group_of(m, mesh_of({2}), 0);
  CHECK(collective_seconds(m, eight, collective_kind::all_gather, 1e6) == Approx(0.01));
  // Of a group alone, the adapter its own, what is described is so many times as fast.
  CHECK(eight.share[1] == 0.125);
  CHECK(group_of(m, m.sweeps[0]).share[1] == 0.125);
  CHECK(one.share[1] == 1);
}

namespace {

// Sizes that take no time.
sweep_options small_sweep() {
  sweep_options o;
  o.seconds = 0.01;
  o.most = 1 << 14;
  o.product = 256;
  o.stream = 1 << 18;
  o.memory = 1l << 30;
  return o;
}

// Collectives on the axes of the mesh that was measured take what they took.
void check_points(const machine& m, const mesh_shape& mesh, int axis, std::size_t first) {
  const device_group g = group_of(m, mesh, axis);
  for (std::size_t s = first; s < first + 4; ++s) {
    const collective_sweep& w = m.sweeps[s];
    INFO(collective_names[static_cast<std::size_t>(w.kind)] << " on axis " << axis);
    CHECK(w.devices == mesh.size(axis));
    REQUIRE(!w.points.empty());
    for (const auto& [bytes, seconds] : w.points) {
      const double whole = bytes * (w.kind == collective_kind::all_to_all ? w.devices : 1);
      CHECK(collective_seconds(m, g, w.kind, whole) == Approx(seconds));
    }
  }
}

}  // namespace

TEST_CASE("a sweep measures the ranks there are, and its machine plans") {
  sweep_options o = small_sweep();
  int calls = 0, last = -1;
  bool in_order = true;
  o.tell = [&](int done, int all, const std::string&) {
    in_order = in_order && done > last && done < all;
    last = done;
    ++calls;
  };
  const mesh_shape mesh = mesh_of({2});
  machine m = sweep(*threads(mesh), o);
  CHECK(calls >= 1 + 1 + 1 + 4);
  CHECK(in_order);
  REQUIRE(m.sweeps.size() == 4);
  check_points(m, mesh, 0, 0);
  CHECK(m.sweeps[0].points.front().first == 1024);
  CHECK(m.device.memory == 1l << 30);
  CHECK(m.device.product_rate.size() == 1);
  o.tell = {};
  sweep_products(m, *threads(mesh, number::bfloat16), o);
  CHECK(m.device.product_rate.count("bfloat16") == 1);
  const machine read = read_machine(machine_text(m));
  CHECK(read == m);
  const nlohmann::json j = nlohmann::json::parse(machine_text(m));
  check_sources(j["device"], "device", j["sources"]);
  for (const auto& l : j["levels"]) check_sources(l, "levels." + l["name"].get<std::string>(), j["sources"]);
  CHECK(m.sweeps[0].source.starts_with("measured by cfp sweep on " + this_processor() + ", 20"));
  const graph g = differentiate(refine(decoder(tiny_config())));
  machine_options options;
  options.lowered_for = 4;
  const std::vector<mesh_plans> found = search_meshes(g, read, options, {mesh});
  REQUIRE(found.front().plans.found() != nullptr);
  CHECK(found.front().ms() > 0);
}

TEST_CASE("a sweep along two axes knows what shares the links between machines; one device has none") {
  const mesh_shape mesh = mesh_of({2, 2});
  sweep_options o = small_sweep();
  o.seconds = 0.002;
  o.most = 4096;
  o.product = 64;
  const machine m = sweep(*threads(mesh), o);
  REQUIRE(m.sweeps.size() == 8);
  REQUIRE(m.levels.size() == 2);
  CHECK(m.levels[0].name == "model");  // from the inside out
  CHECK(m.levels[1].kind == interconnect::network);
  CHECK(m.sweeps[0].nodes == 1);
  CHECK(m.sweeps[0].at_once == 1);
  CHECK(m.sweeps[4].nodes == 2);
  CHECK(m.sweeps[4].at_once == 2);
  check_points(m, mesh, 1, 0);
  check_points(m, mesh, 0, 4);
  for (const mesh_shape& one : {mesh_of({1}), mesh_of({1, 1})}) {
    o.memory = 0;
    const machine alone = sweep(*threads(one), o);
    CHECK(alone.devices() == 1);
    CHECK(alone.sweeps.empty());
    CHECK(alone.device.memory > 1l << 20);
    CHECK(read_machine(machine_text(alone)) == alone);
  }
  CHECK(sweep(*threads(mesh_of({1, 2})), o).levels.size() == 1);
  CHECK(sweep(*threads(mesh_of({2, 1})), o).levels[0].kind == interconnect::network);
  CHECK_THROWS_WITH(sweep(*threads(mesh_of({1, 2, 1})), o), Catch::Contains("a sweep takes one axis, or two"));
}

TEST_CASE("products with weights and of their gradients may be made in fewer bits than others") {
  machine m = plain_machine(mesh_of({2}), 1e9, 1e15, 0, {{1e-6, 1e9}});
  m.device.product_rate = {{"bfloat16", 1e9}, {"float8", 4e9}};
  machine other = m;
  other.device.weight_products = "float8";
  CHECK(read_machine(machine_text(other)) == other);
  families::transformer c = tiny_config();
  const graph g = differentiate(refine(families::decoder(c)));
  const program p = lower(g, mesh_of({2}), sharding::replicated(g), all_operations(g), 2);
  std::array<int, 2> seen{};  // products of activations, and with weights
  for (const instruction& i : p.code) {
    if (i.kind != instruction::compute || i.nothing || g.at(i.op).op->body != op_body::product) continue;
    const double usual = operator_seconds(m.device, i, p, g), now = operator_seconds(other.device, i, p, g);
    const bool of_weight = usual > 2 * now;
    CHECK(now == Approx(of_weight ? usual / 4 : usual));
    ++seen[of_weight];
  }
  CHECK(seen[0] == 6 * c.layers);            // scores and their sum, and two gradients of each
  CHECK(seen[1] == 3 * (4 * c.layers + 1));  // four layers' weights and the embedding, and two gradients of each
}

TEST_CASE("small shards of products are slower than proportional, never slower than the whole") {
  const device_type d = carried("h100-8").device;
  std::mt19937 random(1);
  const auto any = [&](int most) { return static_cast<double>(8 << (random() % static_cast<unsigned>(most))); };
  for (int n = 0; n < 2000; ++n) {
    const product_shape whole{static_cast<double>(1 << random() % 4), any(11), any(11), any(11)};
    product_shape part = whole;
    double& side = n % 3 == 0 ? part.rows : n % 3 == 1 ? part.columns : part.inner;
    side /= 4;
    CHECK(product_seconds(d, 2, part) <= product_seconds(d, 2, whole));
    CHECK(4 * product_seconds(d, 2, part) >= product_seconds(d, 2, whole) * (1 - 1e-9));
    CHECK(product_seconds(d, 2, whole) >=
          2 * whole.batch * whole.rows * whole.columns * whole.inner / product_rate(d, 2) * (1 - 1e-9));
  }
}

namespace {

// Bytes per parameter that ZeRO counts: what rests; the copies that forward leaves for backward; gradients of weights
// when all are there.
double bytes_per_parameter(const evaluated& e, const graph& g) {
  const program& p = e.p.code;
  double parameters = 0;
  for (const value& v : g.values)
    if (v.role == value_role::weight && v.producer < 0) parameters += static_cast<double>(elements(v.shape));
  int forward_ends = -1, backward_ends = -1;
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    if (p.code[i].kind != instruction::compute) continue;
    if (g.at(p.code[i].op).when == phase::forward) forward_ends = static_cast<int>(i);
    if (g.at(p.code[i].op).when == phase::backward) backward_ends = static_cast<int>(i);
  }
  const std::vector<lifetime> life = lifetimes(p);
  double bytes = static_cast<double>(p.persistent_bytes());
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const buffer& x = p.buffers[b];
    if (x.root != static_cast<int>(b) || life[b].from < 0) continue;
    const value& v = g[x.value];
    if (x.persistent && v.role == value_role::input) bytes -= static_cast<double>(x.bytes);
    if (x.persistent) continue;
    const auto alive_after = [&](int at) { return life[b].from <= at && life[b].to > at; };
    if (v.role == value_role::weight && alive_after(forward_ends)) bytes += static_cast<double>(x.bytes);
    if (v.role == value_role::gradient && g[v.of].role == value_role::weight && alive_after(backward_ends))
      bytes += static_cast<double>(x.bytes);
  }
  return bytes / parameters;
}

}  // namespace

TEST_CASE("memory of data parallelism and ZeRO is what its authors say") {
  transformer c = gpt2();
  c.layers = 2;
  c.heads = 16;
  c.width = 4096;
  c.vocabulary = 64;  // the tied table is whole where forward and backward end
  c.positions = c.sequence = 64;
  c.batch = 64;
  training how;
  how.clip = 1;  // updates wait for all gradients
  const graph g = differentiate(refine(decoder(c)), how);
  const mesh_shape mesh = mesh_of({64});
  const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
  machine_options options;
  options.overlap = false;
  machine_search search(g, mesh, d, plain_machine(mesh), options);
  const std::map<std::string, double> says{
      {"data_parallel", 120}, {"zero1", 31.4}, {"zero2", 16.6}, {"zero3", 1.9}};  // GB of 7.5e9 parameters
  int seen = 0;
  for (const named_plan& p : usual_plans(mesh, false)) {
    const auto at = says.find(p.name);
    if (at == says.end()) continue;
    const auto e = search.usual(p);
    REQUIRE(e);
    INFO(p.name);
    CHECK(7.5 * bytes_per_parameter(*e, g) == Approx(at->second).epsilon(0.03));
    ++seen;
  }
  CHECK(seen == 4);
  // Over pieces of the batch and of the sequence together as over so many of the batch.
  const mesh_shape both = mesh_of({8, 8});
  const decision_graph of_both = decisions(g, parallel_blocks(g), both, axis_choice::regathered);
  machine_search search_both(g, both, of_both, plain_machine(both), options);
  for (const named_plan& p : usual_plans(both, false)) {
    const auto [outer, last] = kinds_of(p);
    if ((last != "context" && last != "ulysses") || outer != "zero1") continue;
    const auto e = search_both.usual(p);
    REQUIRE(e);
    INFO(p.name);
    CHECK(7.5 * bytes_per_parameter(*e, g) == Approx(says.at(outer)).epsilon(0.03));
    ++seen;
  }
  CHECK(seen == 6);
}

TEST_CASE("column and row: 8 b s h (t-1)/t elements per layer, with and without the sequence split between") {
  const long layers = 2, b = 2, s = 64, h = 1024, t = 4;
  transformer c = gpt2();
  c.layers = layers;
  c.heads = 16;
  c.width = h;
  c.vocabulary = 2048;
  c.positions = c.sequence = s;
  c.batch = b;
  const graph g = differentiate(refine(decoder(c)));
  const mesh_shape mesh = mesh_of({t});
  const decision_graph d = decisions(g, parallel_blocks(g), mesh);
  machine_options options;
  options.lowered_for = 4;
  const machine m = plain_machine(mesh);
  machine_search search(g, mesh, d, m, options);
  for (const named_plan& p : usual_plans(mesh, false)) {
    if (!p.name.starts_with("tensor")) continue;
    const auto e = search.usual(p);
    REQUIRE(e);
    long sent = 0;  // of activations in the layers
    for (std::size_t i = 0; i < e->p.code.code.size(); ++i) {
      const instruction& x = e->p.code.code[i];
      if (x.kind != instruction::reshard) continue;
      const value& v = g[e->p.code[x.in[0]].value];
      const bool in_layer = v.label.view().starts_with("h.") && v.rank() == 3 && v.role != value_role::weight;
      collective_count n;
      if (in_layer) count_collective(e->p.code, g, i, n);
      sent += n.total_bytes();
    }
    INFO(p.name);
    CHECK(sent == layers * 8 * b * s * h * (t - 1) / t * 4);
  }
}

TEST_CASE("two streams: between the longer of them and their sum") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  std::mt19937 random(5);
  for (const auto& mesh : {mesh_of({2}), mesh_of({4}), mesh_of({2, 2})}) {
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    const machine m = plain_machine(mesh, 1e9, 1e9, 1e-6, {{1e-6, 1e8}});
    machine_options alone, beside;
    alone.overlap = false;
    machine_search in_line(g, mesh, d, m, alone), overlapped(g, mesh, d, m, beside);
    for (int n = 0; n < 20; ++n) {
      std::vector<int> choices;
      for (const decision& node : d.nodes) choices.push_back(static_cast<int>(random() % node.choices()));
      const evaluated a = in_line.evaluate("any", choices), b = overlapped.evaluate("any", choices);
      CHECK(a.when.ms == Approx(a.when.operators + a.when.collectives));
      CHECK(b.when.operators == Approx(a.when.operators));
      CHECK(b.when.collectives == Approx(a.when.collectives));
      CHECK(b.when.ms <= a.when.ms * (1 + 1e-9));
      CHECK(b.when.ms >= std::max(b.when.operators, b.when.collectives) * (1 - 1e-9));
      CHECK(b.when.ms == Approx(b.when.operators + b.when.exposed));
      described_times times(m, mesh);
      std::vector<double> ms;
      for (const instruction& i : b.p.code.code) ms.push_back(times(i, b.p.code, g));
      CHECK(simulate(b.p.code, ms, 2).ms ==
            Approx(a.when.ms));  // one stands still while the other runs: nothing is gained
      CHECK(simulate(b.p.code, ms, 1.3).ms >= b.when.ms * (1 - 1e-9));
      const auto beside_operators =
          std::count_if(b.p.code.code.begin(), b.p.code.code.end(), [](const instruction& i) { return i.beside; });
      const timeline slow =
          simulate(b.p.code, ms, 1, 0.01);  // a stream waits for the other at most twice per collective
      CHECK(slow.ms >= b.when.ms * (1 - 1e-9));
      CHECK(slow.ms <= (b.when.ms + 0.02 * b.p.code.passes * static_cast<double>(beside_operators)) * (1 + 1e-9));
      CHECK(slow.ms == Approx(slow.operators + slow.exposed));
    }
  }
}

TEST_CASE(
    "Automatically Planning: the terms of a step's time sum up to it, and are what its instructions take where nothing "
    "overlaps") {
  training how;
  how.micro_batches = 2;
  const graph g = differentiate(refine(decoder(tiny_config())), how);
  std::mt19937 random(6);
  int beside = 0, contended = 0;
  for (const auto& mesh : {mesh_of({2}), mesh_of({2, 2})}) {
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    const machine m = plain_machine(mesh, 1e9, 1e9, 1e-6, {{1e-6, 1e8}});
    for (const bool overlap : {false, true}) {
      machine_options options;
      options.overlap = overlap;
      machine_search search(g, mesh, d, m, options);
      for (int n = 0; n < 10; ++n) {
        const program p = search.evaluate("any", random_choices(d, random)).p.code;
        described_times times(m, mesh);
        std::vector<double> ms;
        for (const instruction& i : p.code) ms.push_back(times(i, p, g));
        for (const auto& [contention, hand_over] : {std::pair(1.0, 0.0), {1.3, 0.0}, {1.2, 0.01}}) {
          stream_events seen;
          const timeline all = simulate(p, ms, contention, hand_over, &seen);
          const std::vector<time_term> terms = time_terms(p, g, seen, ms, all.ms);
          std::map<std::string, time_term> named;
          double together = 0;
          for (const time_term& t : terms) named[t.name] = t, together += t.ms;
          CHECK(together == Approx(all.ms).epsilon(1e-9));
          std::map<std::string, double> alone;
          for (std::size_t i = 0; i < p.code.size(); ++i) {
            const auto at = static_cast<int>(i);
            const bool of_all = at >= p.begin && at < p.end;
            const instruction& x = p.code[i];
            static constexpr const char* phases[] = {"forward", "backward", "update"};
            const std::string name = x.communicates()
                                         ? std::string(collective_names[static_cast<std::size_t>(x.step.collective())])
                                     : x.op < 0 ? "update"
                                                : phases[static_cast<std::size_t>(g.at(x.op).when)];
            alone[name] += ms[i] * (of_all ? p.passes : 1);
          }
          for (const auto& [name, takes] : alone) {
            const time_term& t = named[name];
            if (std::find(collective_names.begin(), collective_names.end(), name) == collective_names.end())
              CHECK(t.ms == Approx(takes).margin(1e-9));  // what they take longer is contention
            else if (contention > 1) CHECK(t.ms + t.beside >= takes * (1 - 1e-9));
            else CHECK(t.ms + t.beside == Approx(takes).margin(1e-9));
            beside += t.beside > 0;
            if (!overlap) CHECK(t.beside == 0);
          }
          contended += named["contention"].ms > 0;
          if (!overlap) CHECK(named["contention"].ms == Approx(0).margin(1e-9));
          if (hand_over == 0) CHECK(named["idle"].ms == Approx(0).margin(1e-9));
        }
      }
    }
  }
  CHECK(beside > 20);
  CHECK(contended > 10);
}

TEST_CASE("an axis that is held: the best of the plans that do there what they are told") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  const block_structure blocks = parallel_blocks(g);
  const mesh_shape mesh = mesh_of({2, 2});
  const machine m = plain_machine(mesh, 1e9, 1e9, 1e-6, {{1e-6, 1e8}});
  const decision_graph all = decisions(g, blocks, mesh);
  machine_search search(g, mesh, all, m);
  const solution best = solve(search.costs());
  REQUIRE(best.feasible);
  for (const int axis : {0, 1}) {
    const held_axis held = cfp::detail::held_of(all, best.choices, axis, axis);
    const decision_graph some = decisions(g, blocks, mesh, axis_choice::scattered, held);
    std::vector<int> same;  // the best plan is among them
    for (std::size_t n = 0; n < some.nodes.size(); ++n) {
      const auto& names = some.nodes[n].names;
      const auto at =
          std::find(names.begin(), names.end(), all.nodes[n].names[static_cast<std::size_t>(best.choices[n])]);
      REQUIRE(at != names.end());
      same.push_back(static_cast<int>(at - names.begin()));
      for (const strategy& s : some.nodes[n].strategies)
        CHECK(s[axis] == held.of_part[static_cast<std::size_t>(some.nodes[n].index)]);
    }
    machine_search within(g, mesh, some, m);
    CHECK(cfp::evaluate(within.costs(), same).time == Approx(best.time));
    CHECK(solve(within.costs()).time == Approx(best.time));
  }
}

TEST_CASE("every mesh of a machine is searched, the fastest comes first", "[heavy]") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  const mesh_shape eight = mesh_of({8});
  machine m = plain_machine(eight, 1e9, 1e9, 1e-6, {{1e-6, 1e8}});
  const std::vector<mesh_plans> found = search_meshes(g, m, {}, meshes_of(m, 3));
  std::vector<std::string> sizes;
  double before = 0;
  for (const mesh_plans& on : found) {
    sizes.push_back(sizes_text(on.mesh));
    CHECK(on.ms() >= before);
    before = on.ms();
    const evaluated* best = on.plans.found();
    REQUIRE(best != nullptr);
    machine_search again(g, on.mesh, on.decisions, m);  // mesh, decisions and plan belong together
    CHECK(again.evaluate("again", best->p.choices, best->order).when.ms == best->when.ms);
    for (const std::vector<evaluated>* some : {&on.plans.candidates, &on.plans.usual, &on.plans.alpa})
      for (const evaluated& e : *some) CHECK((!e.fits || e.when.ms >= best->when.ms));
  }
  std::sort(sizes.begin(), sizes.end());
  CHECK(sizes == std::vector<std::string>{"2x2x2", "2x4", "4x2", "8"});
  machine_options little;
  little.memory = 1000;
  for (const mesh_plans& on : search_meshes(g, m, little, meshes_of(m, 1))) {
    CHECK(on.plans.found() == nullptr);
    CHECK(on.plans.least > 1000);
  }
}

TEST_CASE("Alpa prices a collective along several axes as one axis after the other") {
  const mesh_shape mesh = mesh_of({2, 4});
  const auto step = [](conversion_step::kind_t kind, int axis, unsigned axes = 0) {
    conversion_step s;
    s.kind = kind;
    s.axis = static_cast<decltype(s.axis)>(axis);
    s.axes = static_cast<decltype(s.axes)>(axes);
    return s;
  };
  partition owed = partition::replicated(1), split = partition::replicated(1), inner = partition::replicated(1);
  owed.partial[0].owed = owed.partial[1].owed = true;
  split.split(0, 0);
  split.split(0, 1);
  inner.split(0, 1);
  using kind = conversion_step;
  CHECK(alpa_cost(step(kind::all_reduce, 0, 3), owed, 800, mesh) ==
        Approx(alpa_cost(step(kind::reduce_scatter, 1), owed, 800, mesh) +
               alpa_cost(step(kind::all_reduce, 0), owed, 200, mesh) +
               alpa_cost(step(kind::all_gather, 1), inner, 200, mesh)));
  partition outer = partition::replicated(1);
  outer.split(0, 0);
  CHECK(alpa_cost(step(kind::all_gather, 0, 3), split, 100, mesh) ==
        Approx(alpa_cost(step(kind::all_gather, 0), outer, 100, mesh) +
               alpa_cost(step(kind::all_gather, 1), inner, 200, mesh)));
}

TEST_CASE("three axes: the best of all strategies, or what is known of how far it is", "[heavy]") {
  std::mt19937 random(37);
  const mesh_shape mesh = mesh_of({2, 2, 2});
  int looked = 0, apart = 0, cut_short = 0;
  while (looked < 40) {
    const graph g = differentiate(refine(random_repeated_layers(random, 2, random_sizes::scarce).forward));
    const machine m = plain_machine(mesh, 1e8, 1e8, 1e-7, {{1e-7, 1e7}, {1e-7, 1e8}, {1e-7, 1e9}});
    const decision_graph all = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    double plans = 1;
    for (const decision& n : all.nodes) plans *= static_cast<double>(n.choices());
    if (plans < 100 || plans > 2e5) continue;
    ++looked;
    machine_options options;
    options.gap = 0;
    options.memory = 1L << 50;
    const double least = exhaustive(machine_search(g, mesh, all, m, options).costs()).time;
    const auto found = [&] { return search_meshes(g, m, options, {mesh}).front().plans; };
    const priced_plans together = found();
    CHECK(together.candidates.front().gap == 0);
    CHECK(together.candidates.front().p.additive_ms == Approx(least));
    CHECK(together.bound == Approx(least));
    options.solve_seconds = 1e-7;  // too little
    for (const double limit : {1e9, 0.0}) {
      options.together = limit;
      const priced_plans other = found();
      const evaluated& e = other.candidates.front();
      CHECK(e.p.additive_ms >= least * (1 - 1e-9));
      CHECK(e.p.additive_ms * (1 - e.gap) <= least * (1 + 1e-9));
      CHECK(other.bound <= least * (1 + 1e-9));
      cut_short += limit > 0 && e.gap > 0;
      apart += e.p.additive_ms > least * (1 + 1e-9);
      if (limit == 0) CHECK(e.gap == std::numeric_limits<double>::infinity());
    }
  }
  CHECK(cut_short > 5);
  CHECK(apart > 0);
}

TEST_CASE("a plan of two axes is one of three, two of which do what one did") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  const mesh_shape mesh = mesh_of({2, 2, 2});
  const machine m = plain_machine(mesh, 1e12, 1e11, 1e-6, {{1e-6, 1e9}, {1e-6, 1e10}, {1e-6, 1e11}});
  const cfp::detail::planned_graph planned(g);
  for (const int a : {0, 1}) {
    const mesh_plans two = cfp::detail::of_mesh(planned, m, cfp::detail::joined(mesh, a), {});
    const std::vector<int> choices = two.plans.found()->p.choices;
    const held_axis held = cfp::detail::held_of(two.decisions, choices, 1 - a, 2 - 2 * a);
    const decision_graph three = cfp::detail::decided(planned, mesh, {}, held);
    const std::vector<int> both = cfp::detail::on_both(two.decisions, choices, three, a);
    for (std::size_t n = 0; n < both.size(); ++n) {
      if (three.nodes[n].kind != decision::strategy_of_part) {
        CHECK(both[n] < 0);
        continue;
      }
      INFO(three.nodes[n].label);
      REQUIRE(both[n] >= 0);
      const strategy& s = three.nodes[n].strategies[static_cast<std::size_t>(both[n])];
      const strategy& of_two = two.decisions.nodes[n].strategies[static_cast<std::size_t>(choices[n])];
      CHECK(s[a] == s[a + 1]);
      CHECK(s[a] == of_two[a]);
      CHECK(s[2 - 2 * a] == of_two[1 - a]);
    }
  }
}

TEST_CASE("when time is up the best known plan of the first mesh is the answer") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  const machine m = plain_machine(mesh_of({8}), 1e9, 1e9, 1e-6, {{1e-6, 1e8}});
  machine_options options;
  options.until = std::chrono::steady_clock::now();
  const std::vector<mesh_plans> found = search_meshes(g, m, options, meshes_of(m, 3));
  REQUIRE(found.size() == 4);
  REQUIRE(found[0].plans.found() != nullptr);
  CHECK(found[0].searched);
  CHECK(found[0].plans.usual.empty());
  CHECK(found[0].plans.candidates.size() == 1);
  machine_search again(g, found[0].mesh, found[0].decisions, m);
  const evaluated& best = *found[0].plans.found();
  CHECK(again.evaluate("again", best.p.choices, best.order).when.ms == best.when.ms);
  CHECK(best.gap >= 0);
  for (std::size_t i = 1; i < found.size(); ++i) {
    CHECK(!found[i].searched);
    CHECK(found[i].plans.found() == nullptr);
    CHECK(found[i].mesh.devices() == 8);
  }
  std::vector<mesh_shape> too_many = meshes_of(m);
  too_many.push_back(mesh_of({16}));
  CHECK_THROWS_WITH(search_meshes(g, m, options, too_many), Catch::Contains("16 devices does not fit"));
}

TEST_CASE("what is found does not depend on how many threads search, and all stages are counted", "[heavy]") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  const machine m = plain_machine(mesh_of({8}), 1e9, 1e9, 1e-6, {{1e-6, 1e8}});
  std::vector<mesh_plans> by_one;
  for (const unsigned threads : {1U, 3U}) {
    stage_clock clock;
    machine_options options;
    options.threads = threads;
    options.clock = &clock;
    int heard = 0;
    const std::vector<mesh_plans> found =
        search_meshes(g, m, options, meshes_of(m), [&](const mesh_shape&) { ++heard; });
    CHECK(heard == 3);
    for (std::size_t s = 1; s < stage_names.size(); ++s) CHECK(clock.seconds()[s] > 0);  // the graph was there before
    if (threads == 1) by_one = found;
    REQUIRE(found.size() == by_one.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].mesh == by_one[i].mesh);
      CHECK(found[i].plans.found()->p.choices == by_one[i].plans.found()->p.choices);
      CHECK(found[i].ms() == by_one[i].ms());
      CHECK(found[i].plans.least == by_one[i].plans.least);
    }
    std::vector<mesh_shape> too_many = meshes_of(m);
    too_many.push_back(mesh_of({16}));
    CHECK_THROWS_WITH(search_meshes(g, m, options, too_many), Catch::Contains("16 devices does not fit"));
    CHECK_THROWS_AS(
        search_meshes(g, m, options, meshes_of(m), [](const mesh_shape&) { throw std::runtime_error("enough"); }),
        std::runtime_error);
  }
}

}  // namespace machines_tests
