// What is written comes back, for every model carried and for random graphs; what is of another model, mesh, version or
// machine is refused with the difference; what cannot be written leaves what was there.
#include "../catch.hpp"
#include "../from_environment.hpp"
#include "../random_graph.hpp"
#include "small.hpp"

#include <cfp/export/plan_file.hpp>
#include <cfp/profile/machine/roofline.hpp>
#include <cfp/profile/table.hpp>
#include <cfp/solve/cost_file.hpp>

#include <array>
#include <bit>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include <sys/resource.h>
#include <sys/stat.h>

namespace files_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("cfp_files_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class F>
std::string refused(const F& f) {
  try {
    f();
  } catch (const bad_input& e) {
    return e.what();
  }
  return "nothing is refused";
}

constexpr long every = sanitized ? 6 : 1;  // so many-th configuration

// Every configuration carried, with one layer (two where experts are in every second one), and random graphs.
template <class Each>
void each_model(int random_graphs, const Each& each) {
  long number = 0;
  for (const auto& file : std::filesystem::directory_iterator(CFP_SOURCE_DIR "/examples/models")) {
    if (number++ % every != 0) continue;
    model_sizes sizes;
    sizes.batch = 4;
    sizes.sequence = 64;
    sizes.layers = 2;
    sizes.least_groups = 2;
    sizes.pad_to = 128;
    each(file.path().stem().string(),
         differentiate(refine(build_model(config_file(file.path().string()), sizes).forward)));
  }
  std::mt19937 random(11);
  for (int n = 0; n < random_graphs; ++n)
    each("random graph " + std::to_string(n),
         differentiate(refine(random_graph(random, n % 2 == 1 ? random_sizes::grouped : random_sizes::planned))));
}

// Tensors of one name, made of different ones: which is traced first is up to the caller.
graph twins(bool other_way_round, long hidden = 32, bool third = false) {
  model net;
  const dimension batch{"batch", 16}, width{"width", 64}, wide{"hidden", hidden};
  const tensor x = net.input("x", {batch, width}, element::real, {});
  const auto branch = [&](const char* label) {
    net.scope(label);
    const tensor w = net.weight("w", {width, wide}, {}), back = net.weight("back", {wide, width}, {});
    net.scope("");
    const tensor h = gelu(linear(x, w));  // "gelu", as the other one
    const tensor y = linear(h, back);
    return add(y, linear(gelu(h), net.weight(std::string(label) + ".more", {wide, width}, {})));
  };
  static constexpr op<"batch width, batch width -> "> squares;
  const tensor first = branch(other_way_round ? "b" : "a"), second = branch(other_way_round ? "a" : "b");
  const tensor last = third ? gelu(second) : second;
  const tensor one = squares(first, first), two = squares(last, last);
  net.recorded.loss = (other_way_round ? add(two, one) : add(one, two)).id;
  return differentiate(refine(net.recorded));
}

struct decided {
  graph g;
  mesh_shape mesh;
  decision_graph d;
  explicit decided(graph of, std::initializer_list<int> sizes = {2, 2})
      : g(std::move(of)), mesh(mesh_of(sizes)), d(decisions(g, parallel_blocks(g), mesh, axis_choice::regathered)) {}
  nlohmann::ordered_json json(const plan& p) const { return to_json(p, g, mesh, d, "a model"); }
  saved_plan read(const nlohmann::ordered_json& j) const {
    return read_plan(j.dump(), "plan.json", "a model", g, mesh, d);
  }
};

// As maps: in which order things stand does not matter.
nlohmann::json unordered(const nlohmann::ordered_json& j) {
  auto out = nlohmann::json::parse(j.dump());
  std::sort(out["collectives"].begin(), out["collectives"].end());
  for (auto& forms : out["partitions"]) std::sort(forms.begin(), forms.end());
  return out;
}

}  // namespace

TEST_CASE("a plan reads back as it was, for every model carried and for random graphs", "[heavy]") {
  std::mt19937 random(3);
  int decisions_read = 0, alike = 0;
  each_model(15, [&](const std::string& name, const graph& g) {
    for (const std::initializer_list<int> sizes : {std::initializer_list<int>{2}, {2, 2}}) {
      INFO(name << " on " << to_string(mesh_of(sizes)));
      const decided m(g, sizes);
      const plan p = random_plan(m.g, m.mesh, m.d, random, 4);
      const saved_plan read = m.read(m.json(p));
      REQUIRE(read.choices == p.choices);
      decisions_read += static_cast<int>(read.choices.size());
      for (const decision& n : m.d.nodes)
        alike += std::set<std::string>(n.names.begin(), n.names.end()).size() < n.choices();
      // Every choice has one name, every decision too.
      const plan_names names(m.g, m.d);
      CHECK(std::set<std::string>(names.decisions().begin(), names.decisions().end()).size() == m.d.nodes.size());
    }
  });
  CHECK(decisions_read > 1000);
  CHECK(alike > 0);  // choices of one name that mean different things
}

TEST_CASE("a plan names what it decides by where it stands, not by a label that repeats or an order of tracing") {
  const decided one(twins(false)), other(twins(true));
  std::mt19937 random(5);
  int repeated = 0, moved = 0;
  for (int n = 0; n < 30; ++n) {
    const plan p = random_plan(one.g, one.mesh, one.d, random, 4);
    const nlohmann::ordered_json j = one.json(p);
    for (const auto& item : j["decisions"].items()) repeated += item.key().find(" #") != std::string::npos;
    const saved_plan read = other.read(j);
    moved += read.choices != p.choices;
    const plan there = realise("read", other.g, other.mesh, other.d, read.choices, 4);
    CHECK(unordered(other.json(there))["decisions"] == unordered(j)["decisions"]);
    CHECK(unordered(other.json(there))["partitions"] == unordered(j)["partitions"]);
    CHECK(count_collectives(there.code, other.g).total_bytes() == count_collectives(p.code, one.g).total_bytes());
  }
  CHECK(repeated > 0);
  CHECK(moved > 0);  // decisions are numbered otherwise there
}

TEST_CASE("a plan of another model, mesh or version is refused with the difference") {
  const decided m(twins(false));
  std::mt19937 random(5);
  const plan p = random_plan(m.g, m.mesh, m.d, random, 4);
  const nlohmann::ordered_json j = m.json(p);
  const auto why = [&](const decided& by, const nlohmann::ordered_json& of) { return refused([&] { by.read(of); }); };
  CHECK(why(m, j) == "nothing is refused");
  CHECK(why(decided(twins(false, 48)), j) ==
        "plan.json: is of a model whose tensor 'a.back' is [hidden=32 width=64], this one's is [hidden=48 width=64]");
  CHECK(why(decided(twins(false, 32, true)), j) ==
        "plan.json: is of a model of " + std::to_string(m.g.size()) + " operators, this one has " +
            std::to_string(twins(false, 32, true).size()) + ", with those of its training");
  CHECK(why(decided(twins(false), {4}), j) == "plan.json: is for mesh data=2,model=2, this one is data=4");
  auto changed = j;
  changed["version"] = 2;
  CHECK(why(m, changed) == "plan.json: is of version 2, this reads 1");
  changed.erase("version");
  CHECK(why(m, changed) == "plan.json: the plan must have 'version'");
  changed = j;
  changed["graph"] = "0123456789abcdef";
  CHECK(why(m, changed) == "plan.json: is of a model of as many operators, others or joined otherwise than this one's");
  changed = j;
  changed["tensors"].erase("b.more");
  CHECK(why(m, changed) == "plan.json: is of a model without tensor 'b.more', this one has it");
  changed["tensors"]["b.more"] = j["tensors"]["b.more"];
  changed["tensors"]["c"] = "[width=64]";
  CHECK(why(m, changed) == "plan.json: is of a model with tensor 'c', which this one has not");
  // How it is trained is not what is planned: another rate, but not another norm of gradients.
  training slower, clipped;
  slower.rate = 1e-5;
  clipped.clip = 1;
  std::mt19937 again(8), same(8), third(8);
  const std::uint64_t usual = structural_paths(differentiate(refine(random_graph(again)))).all();
  CHECK(structural_paths(differentiate(refine(random_graph(same)), slower)).all() == usual);
  CHECK(structural_paths(differentiate(refine(random_graph(third)), clipped)).all() != usual);
}

TEST_CASE("a cost graph reads back as it was, for every model carried and for random graphs") {
  int nodes = 0;
  each_model(5, [&](const std::string& name, const graph& g) {
    INFO(name);
    const decided m(g, {2});
    const cost_graph costs = roofline(m.g, m.mesh, m.d, plain_machine(m.mesh)).build();
    const cost_graph read = read_costs(to_json(costs).dump());
    REQUIRE(read.nodes.size() == costs.nodes.size());
    REQUIRE(read.edges.size() == costs.edges.size());
    for (std::size_t n = 0; n < costs.nodes.size(); ++n, ++nodes)
      CHECK((read.nodes[n].name == costs.nodes[n].name && read.nodes[n].time == costs.nodes[n].time &&
             read.nodes[n].memory == costs.nodes[n].memory && read.nodes[n].transient == costs.nodes[n].transient));
    for (std::size_t e = 0; e < costs.edges.size(); ++e)
      CHECK((read.edges[e].from == costs.edges[e].from && read.edges[e].to == costs.edges[e].to &&
             read.edges[e].time == costs.edges[e].time));
  });
  CHECK(nodes > 500 / every);
  const auto why = [](const char* text) {
    try {
      read_costs(text, "costs.json");
    } catch (const invalid_cost_graph& e) {
      return std::string(e.what());
    }
    return std::string("nothing is refused");
  };
  CHECK(why("{\"version\": 2, \"nodes\": []}") == "costs.json: is of version 2, this reads 1");
  CHECK(why("{\"version\": \"1\", \"nodes\": []}") == "costs.json: is of version \"1\", this reads 1");
}

TEST_CASE("a table of times reads back as it was, and one of another machine, model, mesh or version is refused") {
  const folder files;
  const std::string path = files / "table.json";
  profile_table t;
  t.origin = {"a processor, 2 threads", "a \"model\" \\ of mine, bfloat16", "data=2"};
  std::mt19937_64 random(2);
  const auto number = [&] { return std::ldexp(static_cast<double>(random()), -70); };  // all digits count
  each_model(3, [&](const std::string& name, const graph& g) {
    const decided m(g, {2});
    const plan_names names(m.g, m.d);
    for (std::size_t n = 0; n < m.d.nodes.size(); ++n)
      for (const std::string& c : names.choices(n)) {
        t.entries[name + " " + names.decisions()[n] + " [" + c + "]"] = {number(), number(),
                                                                         static_cast<int>(random() % 99)};
        t.instructions[name + " " + m.d.nodes[n].label] = {number(), number() * 1e9, number() * 1e9};
        t.choices[name + " " + m.d.nodes[n].label] = static_cast<long>(random() >> 1);
      }
  });
  t.save(path);
  const auto same = [](const profile_table& a, const profile_table& b) {
    const auto times = [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.median == y.second.median && x.second.spread == y.second.spread &&
             x.second.repeats == y.second.repeats;
    };
    const auto works = [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.ms == y.second.ms && x.second.flops == y.second.flops &&
             x.second.traffic == y.second.traffic;
    };
    return a.origin == b.origin && a.choices == b.choices &&
           std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), times) &&
           std::equal(a.instructions.begin(), a.instructions.end(), b.instructions.begin(), b.instructions.end(),
                      works);
  };
  CHECK(t.entries.size() > 5000 / every);
  profile_table read, of_mine;
  CHECK(read.load(path).empty());
  CHECK(same(read, t));
  of_mine.origin = t.origin;
  CHECK(of_mine.load(path).empty());
  CHECK(same(of_mine, t));
  const auto with = [&](profile_origin origin) {
    profile_table other;
    other.origin = std::move(origin);
    return other.load(path);
  };
  CHECK(with({"another", "", ""}) == "its machine is 'a processor, 2 threads', this is 'another'");
  CHECK(with({"", "another, float32", ""}) ==
        "its model is 'a \"model\" \\ of mine, bfloat16', this is 'another, float32'");
  CHECK(with({"", "", "data=4"}) == "its mesh is 'data=2', this is 'data=4'");
  const auto holding = [&](const std::string& text) {
    std::ofstream(path) << text;
    return with({});
  };
  const std::string head =
      "{\"version\": 1, \"machine\": \"m\", \"model\": \"n\", \"mesh\": \"x=2\", \"milliseconds\": ";
  CHECK(holding(head + "{}}").empty());
  CHECK(holding("{\"version\": 7}") == "is of version 7, this reads 1");
  CHECK(holding("{\"machine\": \"m\"}") == "it must have 'version'");
  CHECK(holding("[]") == "it must be an object, got array");
  CHECK(holding("no table") == "line 1, column 2: this is not JSON");
  CHECK(holding(head + "{\"a\": {\"median\": 1}}}") == "'a' must have 'spread'");
  CHECK(holding(head + "{\"a\": {\"median\": -1, \"spread\": 0, \"repeats\": 1}}}") ==
        "'a' has a median that is -1, it must be from 0 to 1e24");
  CHECK(holding(head + "{\"a\": {}, \"a\": {}}}") == "the key 'a' stands twice in one object");
  CHECK(holding(head + "{}, \"second\": 1}") == "it has the key 'second', which tables do not know");
  std::filesystem::remove(path);
  CHECK(with({}) == "it cannot be read");
}

TEST_CASE("a state reads back to the bit, for every family") {
  const folder files;
  const std::string path = files / "state.safetensors";
  for (const char* family : {"gpt", "llama", "mixtral", "gshard", "t5"}) {
    INFO(family);
    model_sizes sizes;
    sizes.batch = 4;
    sizes.sequence = 16;
    sizes.layers = 2;
    sizes.least_groups = 2;
    const graph g = differentiate(refine(build_model(tiny(family), sizes).forward));
    std::mt19937 random(7);
    std::map<int, std::vector<float>> wanted;
    {
      state_file<float> file = state_file<float>::create(path, g, 12);
      for (const auto& [v, all] : file.start().tensors) {
        std::vector<float>& w = wanted[v];
        w.resize(static_cast<std::size_t>(elements(g[v].shape)));
        for (float& x : w) x = static_cast<float>(random()) - 2e9f;
        std::copy(w.begin(), w.end(), file.data(v));
      }
      struct stat on_disk {};
      REQUIRE(stat((path + ".new").c_str(), &on_disk) == 0);
      CHECK(on_disk.st_blocks * 512 >= on_disk.st_size);  // all its room is taken before anything is written to it
      file.commit();
    }
    const state_file<float> read = state_file<float>::open(path, g);
    CHECK(read.step() == 12);
    CHECK(read.start().tensors.size() == wanted.size());
    CHECK(wanted.size() > 10);
    for (const auto& [v, w] : wanted) CHECK(std::equal(w.begin(), w.end(), read.data(v)));
  }
  {  // one name, two tensors
    model net;
    const dimension a{"a", 8}, b{"b", 8}, rows{"rows", 4};
    const tensor y = linear(linear(net.input("x", {rows, a}, element::real, {}), net.weight("w", {a, b}, {})),
                            net.weight("w.exp_avg", {b, a}, {}));
    net.recorded.loss = op<"rows a, rows a -> ">{}(y, y).id;
    const graph g = differentiate(refine(net.recorded));
    CHECK(refused([&] { state_file<float>::create(path, g, 1); }) ==
          path +
              ": two tensors are called 'w.exp_avg', a weight and optimizer state of another one: call that weight "
              "otherwise");
  }
  const graph g = differentiate(refine(decoder(tiny_config())));
  state_file<float>::create(path, g, 3).commit();
  const std::string whole = text_of(path);
  const auto with = [&](const std::string& other) {
    std::string text = whole;
    const std::string said = "\"version\":\"1\"";
    REQUIRE(text.find(said) != std::string::npos);
    text.replace(text.find(said), said.size(), other);
    std::ofstream(path, std::ios::binary) << text;
    return refused([&] { state_file<float>::open(path, g); });
  };
  CHECK(with("\"version\":\"1\"") == "nothing is refused");
  CHECK(with("\"version\":\"2\"") == path + ": header: is of version \"2\", this reads 1");
  CHECK(with("\"version\":123") == path + ": header: is of version 123, this reads 1");
  CHECK(with("\"wersion\":\"1\"") == path + ": header: '__metadata__' must have 'version'");
}

namespace {

graph two_weights() {
  model net;
  const tensor a = net.weight("a", {{"width", 3}}, {}), b = net.weight("b", {{"width", 3}}, {});
  net.recorded.loss = op<"width, width -> ">{}(a, b).id;
  return net.recorded;
}

}  // namespace

TEST_CASE("no byte of a state changes without a word") {
  const folder files;
  const std::string path = files / "state.safetensors";
  const graph g = two_weights();
  {
    state_file<float> file = state_file<float>::create(path, g, 12);
    for (const auto& [v, all] : file.start().tensors) std::fill_n(file.data(v), 3, 0.5f);
    file.commit();
  }
  const std::string whole = text_of(path);
  const auto with = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return refused([&] { state_file<float>::open(path, g); });
  };
  const auto at = [&](const char* what) {
    REQUIRE(whole.find(what) != std::string::npos);
    return whole.find(what);
  };
  CHECK(with(whole) == "nothing is refused");
  const std::size_t format = at("format"), name = at("pt");  // read by others
  long silent = 0, sentences = 0;
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    if ((byte >= format && byte < format + 6) || byte == name || byte == name + 1) continue;
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = whole;
      other[byte] = static_cast<char>(other[byte] ^ (1 << bit));
      const std::string said = with(other);
      INFO("byte " << byte << ", bit " << bit << ": " << said);
      CHECK(said.find(path) == 0);
      silent += said == "nothing is refused";
      ++sentences;
    }
  }
  CHECK(silent == 0);
  CHECK(sentences > 1000);
  // The second tensor is named, with what to do.
  std::string other = whole;
  other[whole.size() - 5] ^= 4;
  const std::string why = with(other);
  CHECK(why.find(path + ": tensor 'b' is not what was written: its checksum is ") == 0);
  CHECK(why.find("; the file was damaged since: take another copy of it, or an earlier state") != std::string::npos);
  other = whole;
  other.replace(at("\"step\":\"12\""), 11, "\"step\":\"72\"");
  CHECK(with(other).find(path + ": header: its step, \"72\", is not what was written: its checksum is ") == 0);
  other = whole;
  other.replace(at("crc32 b"), 7, "crc23 b");
  CHECK(with(other) == path + ": header: '__metadata__' has checksums, and none of tensor 'b'");
}

TEST_CASE("a state in which not every number is finite is neither written nor read") {
  const folder files;
  const std::string path = files / "state.safetensors";
  const graph g = two_weights();
  const auto numbers = [](float last) { return std::array<float, 6>{1, 2, 3, 4, last, 6}; };
  // As others write it: without checksums.
  const auto read = [&](float last) {
    std::string header = R"({"__metadata__":{"version":"1","step":"3"},"a":{"dtype":"F32","shape":[3],"data_offsets":)"
                         R"([0,12]},"b":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const auto bytes = std::bit_cast<std::array<char, 24>>(numbers(last));
    std::ofstream(path, std::ios::binary) << static_cast<char>(header.size()) << std::string(7, '\0') << header
                                          << std::string_view(bytes.data(), bytes.size());
    return refused([&] { state_file<float>::open(path, g); });
  };
  const auto write = [&](float last) {
    return refused([&] {
      state_file<float> file = state_file<float>::create(path, g, 3);
      const auto all = numbers(last);
      std::size_t n = 0;
      for (const auto& [v, was] : file.start().tensors) std::copy_n(all.data() + 3 * n++, 3, file.data(v));
      file.commit();
    });
  };
  const float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(read(5) == "nothing is refused");
  const std::string
      before = text_of(path),
      rest = " at place 1, which is no finite number, and no training goes on from it: take an earlier state";
  CHECK(read(nan) == path + ": tensor 'b' holds nan" + rest);
  CHECK(read(-infinite) == path + ": tensor 'b' holds -inf" + rest);
  read(5);
  CHECK(write(nan) == path + ": not written: tensor 'b' holds nan" + rest);
  CHECK(write(infinite) == path + ": not written: tensor 'b' holds inf" + rest);
  CHECK(text_of(path) == before);
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
  CHECK(write(5) == "nothing is refused");
}

TEST_CASE("where the disk is full or a folder cannot be written to, what was there stays") {
  const folder files;
  const graph g = differentiate(refine(decoder(tiny_config())));
  profile_table table;
  for (int n = 0; n < 1000; ++n) table.entries["entry " + std::to_string(n)] = {1, 2, 3};
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> writers = {
      {"text", [](const std::string& path) { write_file(path, std::string(100000, 'x')); }},
      {"table", [&](const std::string& path) { table.save(path); }},
      {"state", [&](const std::string& path) { state_file<float>::create(path, g, 1).commit(); }}};
  struct limit_of_files {  // as a full disk: no file grows beyond it
    rlimit before{};
    limit_of_files() {
      std::signal(SIGXFSZ, SIG_IGN);
      getrlimit(RLIMIT_FSIZE, &before);
      const rlimit small{4096, before.rlim_max};
      setrlimit(RLIMIT_FSIZE, &small);
    }
    ~limit_of_files() {
      setrlimit(RLIMIT_FSIZE, &before);
      std::signal(SIGXFSZ, SIG_DFL);
    }
  };
  for (const auto& writer : writers) {
    const auto& what = writer.first;
    const auto& write = writer.second;
    INFO(what);
    const std::string path = files / what;
    std::ofstream(path) << "old";
    std::string why;
    {
      const limit_of_files full;
      why = refused([&] { write(path); });
    }
    CHECK(why.find(path + ": cannot be ") == 0);
    CHECK(why.find("File too large") != std::string::npos);
    CHECK(text_of(path) == "old");
    CHECK_FALSE(std::filesystem::exists(path + ".new"));
    CHECK(refused([&] { write(files / what + "/below"); }) ==
          files / what + "/below: cannot be written: Not a directory");
    write(path);
    CHECK(text_of(path).size() > 3);
    CHECK_FALSE(std::filesystem::exists(path + ".new"));
  }
}

}  // namespace files_tests
