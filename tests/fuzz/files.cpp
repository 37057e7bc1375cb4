// Everything that reads a file, under libFuzzer: any input ends in a value or in a sentence, what was read, written and
// read again is equal. CFP_FUZZ names the reader; with CFP_FUZZ_SEEDS=FOLDER nothing is read, and what our own writers
// write is put there, to start from.
#include "fuzz.hpp"

#include "../hlo_writer.hpp"
#include "../onnx_writer.hpp"
#include "../random_costs.hpp"

#include <cfp/backend/checkpoint.hpp>
#include <cfp/backend/state_file.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/families/families.hpp>
#include <cfp/families/token_file.hpp>
#include <cfp/graphs/graph_file.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/pipeline/named_schedules.hpp>
#include <cfp/pipeline/schedule_file.hpp>
#include <cfp/profile/machine/machine_writer.hpp>
#include <cfp/profile/table.hpp>
#include <cfp/solve/cost_file.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

namespace fuzz {

namespace {

// A file in memory that holds what is put in it.
class memory_file {
 public:
  memory_file() : file_(memfd_create("input", 0)) { must(file_ >= 0, "a file in memory"); }
  memory_file(const memory_file&) = delete;
  ~memory_file() { close(file_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }
  std::string of(const std::string& content) const {
    must(ftruncate(file_, 0) == 0, "an empty file");
    must(pwrite(file_, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()), "a whole file");
    return path();
  }

 private:
  int file_;
};

// A folder that goes with the program.
struct own_folder {
  std::filesystem::path path;
  own_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "cfp_fuzz_XXXXXX").string();
    must(mkdtemp(name.data()) != nullptr, "a folder of our own");
    path = name;
  }
  own_folder(const own_folder&) = delete;
  ~own_folder() { std::filesystem::remove_all(path); }
};

template <class Read>
void or_sentence(const std::string& text, const Read& read) {
  try {
    read();
  } catch (const cfp::bad_input& e) {
    check_words(e.what(), text);
  }
}

// As a configuration of every family.
void read_config(const std::string& text) {
  using namespace cfp::families;
  static const memory_file file;
  const config_file f(file.of(text));
  or_sentence(text, [&] {
    const transformer t = read_decoder(f);
    must(t.inner() > 0, "a hidden layer");
    must(t.heads > 0 && t.kv_heads >= 0 && t.head_depth() > 0, "heads");
    must(t.experts.count == 0 || t.experts.choices > 0, "choices");
  });
  or_sentence(text, [&] { must(read_t5(f).buckets >= 4, "buckets"); });
}

// As a model of two layers.
void read_model(const std::string& text) {
  static const memory_file file;
  cfp::families::model_sizes sizes;
  sizes.batch = 4;
  sizes.sequence = 8;
  sizes.layers = 2;
  const cfp::families::built_model m = cfp::families::build_model(cfp::families::config_file(file.of(text)), sizes);
  must(m.forward.loss >= 0, "a model has a loss");
  cfp::checked(m.forward);
  for (const cfp::value& v : m.forward.values)
    for (const long size : v.shape) must(size > 0, "a dimension has elements");
}

void read_machines(const std::string& text) {
  const cfp::machine m = cfp::read_machine(text, "machine.json");
  must(m.devices() >= 1 && m.devices() <= 1 << 20, "a machine has devices");
  cfp::validate(m);
  must(cfp::read_machine(cfp::machine_text(m), "machine.json") == m, "a machine is the same again");
}

// A model of two layers, split over two devices: what plans and states are read for.
struct small {
  cfp::graph g;
  cfp::mesh_shape mesh = cfp::read_mesh("data=2");
  cfp::decision_graph decided;

  small() {
    cfp::model net;
    const cfp::tensor x = net.input("x", {{"batch", 4}, {"width", 4}}, cfp::element::real, {});
    const cfp::tensor up = cfp::linear(x, net.weight("up", {{"width", 4}, {"hidden", 6}}, {0, 0.1}));
    const cfp::tensor y = cfp::linear(cfp::gelu(up), net.weight("down", {{"hidden", 6}, {"width", 4}}, {0, 0.1}));
    net.recorded.loss = cfp::op<"batch width, batch width -> ">{}(y, y).id;
    g = cfp::differentiate(cfp::refine(net.recorded));
    decided = cfp::decisions(g, cfp::parallel_blocks(g), mesh, cfp::axis_choice::regathered);
  }
  std::string plan(const std::vector<int>& choices) const {
    return cfp::to_json(cfp::realise("a plan", g, mesh, decided, choices), g, mesh, decided, "small").dump(1);
  }
  static const small& one() {
    static const small s;
    return s;
  }
};

void read_plans(const std::string& text) {
  const small& s = small::one();
  const auto read = [&](const std::string& from) {
    return cfp::read_plan(from, "plan", "small", s.g, s.mesh, s.decided).choices;
  };
  const std::vector<int> choices = read(text);
  must(read(s.plan(choices)) == choices, "a plan is the same again");
}

bool same(const cfp::profile_table& a, const cfp::profile_table& b) {
  const auto equal = [](const auto& x, const auto& y, const auto& of) {
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [&](const auto& p, const auto& q) {
             return p.first == q.first && of(p.second) == of(q.second);
           });
  };
  return a.origin == b.origin && a.choices == b.choices &&
         equal(a.entries, b.entries,
               [](const cfp::measurement& m) { return std::tuple(m.median, m.spread, m.repeats); }) &&
         equal(a.instructions, b.instructions,
               [](const cfp::instruction_time& i) { return std::tuple(i.ms, i.flops, i.traffic); });
}

void read_table(const std::string& text) {
  static const memory_file file;
  static const own_folder files;
  cfp::profile_table table, again;
  if (const std::string why = table.load(file.of(text)); !why.empty()) return check_words(why, text);
  for (const auto& [key, m] : table.entries) must(m.median >= 0 && m.repeats >= 0, "a time: " + key);
  const std::string path = files.path / "table.json";
  table.save(path);
  must(again.load(path).empty() && same(table, again), "a table is the same again");
}

void read_cost_graph(const std::string& text) {
  const cfp::cost_graph g = cfp::read_costs(text, "costs.json");
  cfp::validate(g);
  const std::string written = cfp::to_json(g).dump();
  must(cfp::to_json(cfp::read_costs(written)).dump() == written, "a cost graph is the same again");
}

void read_schedules(const std::string& text) {
  const cfp::pipeline_schedule s = cfp::read_schedule(text, "schedule.json");
  must(cfp::read_schedule(cfp::write_schedule(s)).ranks == s.ranks, "a schedule is the same again");
  must(simulate(s, std::vector<cfp::stage_cost>(static_cast<std::size_t>(s.stages))).ms > 0, "a schedule takes time");
}

// Each row by itself, as checkpoints have experts.
cfp::stored_weight in_rows(const std::string& label, const std::vector<long>& shape) {
  cfp::stored_weight out = cfp::stored_weight::plain(label, {shape[1]});
  out.tensors.clear();
  for (long row = 0; row < shape[0]; ++row) out.tensors.push_back(label + "." + std::to_string(row));
  return out;
}

void read_state(const std::string& bytes) {
  using state = cfp::state_file<float>;
  static const memory_file file;
  static const own_folder files;
  const cfp::graph& g = small::one().g;
  const state read = state::open(file.of(bytes), g);
  const std::string path = files.path / "state.safetensors";
  state written = state::create(path, g, read.step());
  std::set<const float*> taken;
  const auto count = [&](int v) { return static_cast<std::size_t>(cfp::elements(g[v].shape)); };
  const std::map<int, cfp::given_tensor> tensors = read.start().tensors;
  for (const auto& [v, whole] : tensors) {
    for (std::size_t i = 0; i < count(v); ++i) must(taken.insert(read.data(v) + i).second, "a number is of one tensor");
    std::memcpy(written.data(v), read.data(v), count(v) * sizeof(float));
  }
  written.commit();
  const state again = state::open(path, g);
  must(again.step() == read.step(), "a state is after as many steps again");
  for (const auto& [v, whole] : tensors)
    must(std::memcmp(again.data(v), read.data(v), count(v) * sizeof(float)) == 0, "a state is the same again");
}

// Numbers that are not finite are noted when they are read, and kept.
bool same(const cfp::checkpoint& a, const cfp::checkpoint& b) {
  for (const auto& [v, x] : a.weights())
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const double y = b.weights().at(v)[i]; x[i] != y && !(std::isnan(x[i]) && std::isnan(y))) return false;
  return true;
}

// As the weights that `layout` has of the small model.
void read_weights(const std::string& path, const cfp::weight_layout& layout) {
  static const own_folder files;
  const cfp::graph& g = small::one().g;
  const cfp::checkpoint read(path, g, layout);
  const std::string back = files.path / "weights.safetensors";
  cfp::new_checkpoint written(back, g, layout, &read);
  for (const auto& [v, to] : written.weights())
    for (std::size_t i = 0; i < to.size(); ++i) to.set(i, read.weights().at(v)[i]);
  written.commit();
  must(same(read, cfp::checkpoint(back, g, layout)), "weights are the same again");
}

void read_checkpoint(const std::string& bytes) {
  static const memory_file file;
  file.of(bytes);
  or_sentence(bytes, [&] { read_weights(file.path(), {}); });
  or_sentence(bytes, [&] { read_weights(file.path(), in_rows); });
}

void read_index(const std::string& text) {
  static const own_folder files;
  const std::string one = files.path / "model.safetensors", index = files.path / "model.safetensors.index.json";
  if (!std::filesystem::exists(one)) cfp::new_checkpoint(one, small::one().g, {}, nullptr).commit();
  std::ofstream(index, std::ios::binary) << text;
  read_weights(index, {});
}

void read_tokens(const std::string& bytes) {
  static const memory_file file;
  const cfp::families::token_file tokens(file.of(bytes), 70000);
  for (std::size_t i = 0; i < tokens.size(); ++i) must(tokens[i] >= 0 && tokens[i] < 70000, "a token is a word");
}

// What is read is a model: it has a loss, sizes, and a training graph.
void check_graph(const cfp::graphs::read_graph& read) {
  must(read.forward.loss >= 0, "a graph has a loss");
  for (const cfp::value& v : read.forward.values)
    for (const long size : v.shape) must(size > 0, "a dimension has elements");
  for (const cfp::operation& o : read.forward.operations)
    for (int f = 0; f < o.sizes.size(); ++f) must(o.sizes[f] > 0, "a factor has elements");
  must(cfp::differentiate(cfp::refine(read.forward)).size() > read.forward.size(), "a graph has gradients");
}
cfp::graphs::graph_options some_sizes() {
  cfp::graphs::graph_options o;
  o.batch = 2, o.sequence = 3;
  return o;
}
void read_onnx(const std::string& bytes) { check_graph(cfp::graphs::onnx_graph(bytes, "model.onnx", some_sizes())); }
void read_hlo(const std::string& bytes) { check_graph(cfp::graphs::hlo_graph(bytes, "model.hlo", some_sizes())); }

}  // namespace

const std::vector<reader> readers = {
    {"config", &read_config}, {"model", &read_model},        {"machine", &read_machines},
    {"plan", &read_plans},    {"table", &read_table},        {"costs", &read_cost_graph},
    {"state", &read_state},   {"schedule", &read_schedules}, {"checkpoint", &read_checkpoint},
    {"index", &read_index},   {"tokens", &read_tokens},      {"onnx", &read_onnx},
    {"hlo", &read_hlo}};

bool ours(const std::exception& e) {
  return dynamic_cast<const cfp::bad_input*>(&e) || dynamic_cast<const cfp::invalid_machine*>(&e) ||
         dynamic_cast<const cfp::invalid_cost_graph*>(&e) || dynamic_cast<const cfp::limit_reached*>(&e) ||
         dynamic_cast<const cfp::error*>(&e);
}

void write_seeds(const std::string& folder) {
  const std::filesystem::path to = folder;
  const auto put = [&](const std::string& reader, int number, const std::string& content) {
    std::filesystem::create_directories(to / reader);
    std::ofstream(to / reader / std::to_string(number), std::ios::binary) << content;
  };
  const small& s = small::one();
  std::mt19937 random(1);
  for (int n = 0; n < 8; ++n) {
    std::vector<int> choices;
    for (const cfp::decision& d : s.decided.nodes)
      choices.push_back(static_cast<int>(random() % static_cast<unsigned>(d.choices())));
    put("plan", n, s.plan(choices));
    put("costs", n, cfp::to_json(random_costs(random)).dump());
  }
  int number = 0;
  for (const cfp::named_schedule& named : cfp::named_schedules)
    put("schedule", number++, cfp::write_schedule(named.of({2, 2, 2, {}})));
  cfp::profile_table table;
  table.origin = {"here", "small", "data=2"};
  table.entries["up"] = {1.5, 0.25, 7};
  table.instructions["product: 4x4x6"] = {0.5, 192, 256};
  table.choices["product: 4x4x6"] = 3;
  std::filesystem::create_directories(to / "table");
  table.save(to / "table" / "0");
  std::filesystem::create_directories(to / "state");
  cfp::state_file<float>::create(to / "state" / "0", s.g, 12).commit();
  std::filesystem::create_directories(to / "checkpoint");
  cfp::new_checkpoint(to / "checkpoint" / "0", s.g, {}, nullptr).commit();
  cfp::new_checkpoint(to / "checkpoint" / "1", s.g, in_rows, nullptr).commit();
  put("index", 0, R"({"metadata": {}, "weight_map": {"up": "model.safetensors", "down": "model.safetensors"}})");
  put("tokens", 0, std::string("\1\0\0\0\2\0\0\0", 8));
  std::string header(1024, '\0');
  const std::int32_t numbers[] = {20240520, 1, 3};
  std::memcpy(header.data(), numbers, sizeof numbers);
  put("tokens", 1, header + "012345");
  onnx_tests::block_sizes tiny{1, 2, 3, 4, 2, 4, 5};
  put("onnx", 0, onnx_tests::transformer_block(tiny));
  put("onnx", 1, onnx_tests::transformer_block(tiny, true, true));
  number = 2;
  for (const std::string& one : onnx_tests::one_of_each()) put("onnx", number++, one);
  number = 0;
  for (const std::string& one : hlo_tests::some_modules()) put("hlo", number++, one);
}

}  // namespace fuzz
