// The readers, each with what must hold of what it reads.
#pragma once

#include "../random_costs.hpp"

#include <cfp/backend/state_file.hpp>
#include <cfp/core/sharded.hpp>
#include <cfp/core/spell.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/families/families.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/profile/table.hpp>
#include <cfp/solve/cost_file.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

namespace fuzz {

/// Ends the program where what must hold does not: libFuzzer keeps the input.
inline void must(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "must hold: " << what << std::endl;
  std::abort();
}

/// One line, of words, that bears nothing of the JSON library.
inline void check_words(const std::string& what, const std::string& input) {
  must(what.find(' ') != std::string::npos, "a refusal is a sentence: '" + what + "'");
  for (const char c : what) must(static_cast<unsigned char>(c) >= ' ', "a refusal is one line: '" + what + "'");
  must(what.find("[json.") == std::string::npos || input.find("[json.") != std::string::npos,
       "ours, not '" + what + "'");
}

/// A file in memory that holds what is put in it.
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

/// A folder that goes with the program.
struct folder {
  std::filesystem::path path;
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "cfp_fuzz_XXXXXX").string();
    must(mkdtemp(name.data()) != nullptr, "a folder of our own");
    path = name;
  }
  folder(const folder&) = delete;
  ~folder() { std::filesystem::remove_all(path); }
};

inline std::vector<std::string> split_at(const std::string& text, char at) {
  std::vector<std::string> out;
  std::stringstream in(text);
  for (std::string one; std::getline(in, one, at);) out.push_back(one);
  return out;
}

inline bool refused(const cfp::text_error& e, std::size_t length) {
  if (!e) return false;
  must(std::strlen(e.what) > 0 && e.column >= 1 && e.column <= static_cast<int>(length) + 1, "a column of the text");
  return true;
}

/// Unbound, and bound to operands of as many dimensions as its last characters say.
inline void read_rule_text(const std::string& text) {
  int ranks[cfp::max_operands]{};
  for (std::size_t i = 0; i < std::size(ranks) && i < text.size(); ++i) ranks[i] = text[text.size() - 1 - i] & 7;
  refused(cfp::outline(text).problem, text.size());
  for (const cfp::parsed_rule& r : {cfp::read_rule(text), cfp::read_rule(text, ranks)}) {
    if (refused(r.problem, text.size())) continue;
    const cfp::rule_text once = cfp::spell(r.value);
    const cfp::parsed_rule again = cfp::read_rule(once.view());
    must(!again.problem, "what a rule is spelled as can be read: " + std::string(once.view()));
    must(cfp::spell(again.value) == once.view(), "a rule is the same again: " + std::string(once.view()));
  }
}

/// One text per line.
inline cfp::dimensions dims_of(const std::vector<std::string>& lines) {
  cfp::list<std::string_view, cfp::max_dims> texts;
  for (const std::string& line : lines) texts.push(line);
  const cfp::dimensions out = cfp::detail::read_dimensions(texts);
  int column = 0;
  const cfp::sentence why = cfp::detail::dimensions_problem(texts, column);
  must(out.readable == why.empty(), "what cannot be read is said: " + std::string(why.view()));
  return out;
}
inline void read_dims(const std::string& text) {
  const std::vector<std::string> lines = split_at(text, '\n');
  const cfp::dimensions d = dims_of(lines);
  if (!d.readable) return;
  std::vector<std::string> again;
  for (int dim = 0; dim < d.written(); ++dim) {
    cfp::text<cfp::detail::dimension_text::capacity> out;
    cfp::detail::write_dimension(d, dim, out);
    again.emplace_back(out.view());
    must(cfp::detail::stands_canonically(again.back()), "what is written is canonical: " + again.back());
  }
  must(dims_of(again) == d, "dimensions are the same again");
}

/// A mesh, dimensions and a placement, a line each.
inline void read_placements(const std::string& text) {
  const std::vector<std::string> lines = split_at(text, '\n');
  if (lines.size() < 3) return;
  const cfp::mesh_shape mesh = cfp::read_mesh(lines[0]);
  const std::vector<std::string> texts = split_at(lines[1], ',');
  const cfp::dimensions d = dims_of(texts);
  if (!d.readable) return;
  const cfp::partition p = cfp::detail::read_placement(lines[2], d, mesh);
  for (int a = 0; a < mesh.rank(); ++a) {
    int uses = p.partial[a].owed;
    for (int dim = 0; dim < p.rank(); ++dim)
      for (const signed char axis : p.dims[dim]) uses += axis == a;
    must(uses <= 1, "an axis does one thing");
  }
  const auto written = cfp::describe<199>(p, d.parts, mesh);
  must(cfp::detail::read_placement(written.view(), d, mesh) == p, "a partition is the same again");
}

inline void read_mesh_text(const std::string& text) {
  const cfp::mesh_shape mesh = cfp::read_mesh(text);
  must(mesh.devices() >= 1, "a mesh has devices");
  must(cfp::read_mesh(cfp::to_string(mesh), mesh.devices()) == mesh, "a mesh is the same again");
}

template <class Read>
void or_sentence(const std::string& text, const Read& read) {
  try {
    read();
  } catch (const cfp::bad_input& e) {
    check_words(e.what(), text);
  }
}

/// As a configuration of every family.
inline void read_config(const std::string& text) {
  using namespace cfp::families;
  static const memory_file file;
  const config_file f(file.of(text));
  or_sentence(text, [&] { must(read_gpt(f).inner() > 0, "a hidden layer"); });
  or_sentence(text, [&] { must(read_llama(f).kv_heads > 0, "heads"); });
  or_sentence(text, [&] { must(read_t5(f).buckets >= 4, "buckets"); });
  or_sentence(text, [&] { must(read_experts(f).choices > 0, "choices"); });
}

/// As a model of two layers.
inline void read_model(const std::string& text) {
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

inline void read_machines(const std::string& text) {
  const cfp::machine m = cfp::read_machine(text, "machine.json");
  must(m.devices() >= 1 && m.devices() <= 1 << 20, "a machine has devices");
  cfp::validate(m);
}

/// A model of two layers, split over two devices: what plans and states are read for.
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

inline void read_plans(const std::string& text) {
  const small& s = small::one();
  const auto read = [&](const std::string& from) {
    return cfp::read_plan(from, "plan", "small", s.mesh, s.decided).choices;
  };
  const std::vector<int> choices = read(text);
  must(read(s.plan(choices)) == choices, "a plan is the same again");
}

inline bool same(const cfp::profile_table& a, const cfp::profile_table& b) {
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

inline void read_table(const std::string& text) {
  static const memory_file file;
  static const folder files;
  cfp::profile_table table, again;
  if (const std::string why = table.load(file.of(text)); !why.empty()) return check_words(why, text);
  for (const auto& [key, m] : table.entries) must(m.median >= 0 && m.repeats >= 0, "a time: " + key);
  const std::string path = files.path / "table.json";
  table.save(path);
  must(again.load(path).empty() && same(table, again), "a table is the same again");
}

inline void read_cost_graph(const std::string& text) {
  const cfp::cost_graph g = cfp::read_costs(text, "costs.json");
  cfp::validate(g);
  const std::string written = cfp::to_json(g).dump();
  must(cfp::to_json(cfp::read_costs(written)).dump() == written, "a cost graph is the same again");
}

inline void read_state(const std::string& bytes) {
  using state = cfp::state_file<float>;
  static const memory_file file;
  static const folder files;
  const cfp::graph& g = small::one().g;
  const state read = state::open(file.of(bytes), g);
  const std::string path = files.path / "state.safetensors";
  state written = state::create(path, g, read.step());
  std::set<const float*> taken;
  const auto count = [&](int v) { return static_cast<std::size_t>(cfp::elements(g[v].shape)); };
  for (const auto& [v, from] : read.tensors()) {
    for (std::size_t i = 0; i < count(v); ++i) must(taken.insert(from + i).second, "a number is of one tensor");
    std::memcpy(written.data(v), from, count(v) * sizeof(float));
  }
  written.commit();
  const state again = state::open(path, g);
  must(again.step() == read.step(), "a state is after as many steps again");
  for (const auto& [v, from] : read.tensors())
    must(std::memcmp(again.data(v), from, count(v) * sizeof(float)) == 0, "a state is the same again");
}

/// What our own writers write: FOLDER/READER/NUMBER.
inline void write_seeds(const std::filesystem::path& to) {
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
  cfp::profile_table table;
  table.origin = {"here", "small", "data=2"};
  table.entries["up"] = {1.5, 0.25, 7};
  table.instructions["product: 4x4x6"] = {0.5, 192, 256};
  table.choices["product: 4x4x6"] = 3;
  std::filesystem::create_directories(to / "table");
  table.save(to / "table" / "0");
  std::filesystem::create_directories(to / "state");
  cfp::state_file<float>::create(to / "state" / "0", s.g, 12).commit();
}

}  // namespace fuzz
