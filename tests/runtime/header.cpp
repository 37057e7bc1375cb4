// A plan written as a header compiles; with one placement changed it does not, and says which tensor, operator and
// axis.
#include "../catch.hpp"

#include "../from_environment.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/export/plan_header.hpp>
#include <cfp/families/families.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/program/find_saved.hpp>

#include "../random_graph.hpp"
#include "gated_layer.hpp"
#include "small.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

namespace header_tests {

using namespace cfp;

namespace {

const long plans = how_many(2, 2, 1), changes = how_many(5, 3, 2), random_plans = how_many(8, 4, 2);

struct compiler {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("cfp_header_" + std::to_string(std::random_device{}()));
  compiler() { std::filesystem::create_directories(folder); }
  ~compiler() { std::filesystem::remove_all(folder); }

  // What the compiler says; empty if it compiles.
  std::string operator()(const std::string& header, const std::string& program) const {
    std::ofstream(folder / "plan.hpp") << header;
    std::ofstream(folder / "main.cpp") << program << "int main() {}\n";
    const std::string command = std::string(CFP_CXX) +
                                " -std=c++20 -Wall -Wextra -fsyntax-only -I" CFP_SOURCE_DIR "/include -I" CFP_SOURCE_DIR
                                "/tests/runtime " +
                                (folder / "main.cpp").string() + " > " + (folder / "said").string() + " 2>&1";
    const int status = std::system(command.c_str());
    std::stringstream said;
    said << std::ifstream(folder / "said").rdbuf();
    return status == 0 ? "" : said.str().empty() ? "failed" : said.str();
  }
};

struct written {
  std::string text;
  collective_count sent;
};

written write(const graph& g, const mesh_shape& mesh, unsigned seed, const target& on = 4,
              const std::string& space = "plan") {
  const block_structure blocks = parallel_blocks(g);
  const segmentation parts = segments(g, blocks);
  const recomputation again(g, blocks, parts, find_saved(g, on));
  const decision_graph d = decisions(g, blocks, mesh, axis_choice::regathered, {}, &again, keeping::weights_on_host);
  std::mt19937 random(seed);
  std::vector<int> choices;
  for (const decision& n : d.nodes) choices.push_back(static_cast<int>(random() % n.choices()));
  const plan p = realise("random", g, mesh, d, choices, on);
  return {plan_header(space, "a small model", p, g, segment_times(blocks, parts, d)), count_collectives(p.code, g)};
}

mesh_shape mesh_of(std::initializer_list<int> sizes) {
  mesh_shape m;
  for (int s : sizes) m.axes.push({name(m.rank() == 0 ? "data" : "model"), s});
  return m;
}

const std::string uses = "#include \"plan.hpp\"\n";

}  // namespace

TEST_CASE("a plan's header compiles, and does not with one placement changed", "[heavy]") {
  model net;
  net.recorded.loss = small_model<32>(net).id;
  const graph g = differentiate(refine(net.recorded));
  const compiler compile;
  unsigned seed = 1;
  for (const mesh_shape& mesh : {mesh_of({2}), mesh_of({2, 2})}) {
    for (int n = 0; n < plans; ++n) {
      const written w = write(g, mesh, ++seed);
      REQUIRE(compile(w.text, uses) == "");
      std::vector<std::string> lines;
      std::stringstream in(w.text);
      for (std::string line; std::getline(in, line);) lines.push_back(line);
      std::mt19937 random(seed);
      for (int c = 0; c < changes;) {
        const std::size_t at = random() % lines.size();
        const std::string& line = lines[at];
        const auto held = line.find("held_as<\""), dims = line.find("cfp::dims<\""), end = line.find(", mesh");
        if (held == std::string::npos || dims == std::string::npos || end == std::string::npos) continue;
        const std::string tensor = line.substr(held + 9, line.find('"', held + 9) - held - 9);
        std::string changed = line.substr(0, end + 6);  // what was split is replicated; what was not is split
        if (line.find("cfp::split<") == std::string::npos && line.find("cfp::partial<") == std::string::npos) {
          std::size_t from = dims + 11;
          if (line[from] == '(') ++from;
          changed += ", cfp::split<\"" + line.substr(from, line.find('=', from) - from) + "\", \"data\">";
        }
        changed += ">>;";
        std::string text;
        for (std::size_t l = 0; l < lines.size(); ++l) text += (l == at ? changed : lines[l]) + "\n";
        std::string said = compile(text, uses);
        INFO("changed " << line << "\nto " << changed << "\n" << said.substr(0, 2000));
        const auto names = [&](const char* check) { return said.find(check) != std::string::npos; };
        CHECK((names("planned_partition_is_what_the_operator_makes") ||
               names("planned_step_leads_from_one_partition_to_the_other")));
        CHECK(said.find("tensor " + tensor + " is planned as") != std::string::npos);
        CHECK(
            (said.find("over \\'data\\'") != std::string::npos || said.find("over \\'model\\'") != std::string::npos));
        ++c;
      }
    }
  }
}

TEST_CASE("a plan's header says what is sent, as the lowered program sends it") {
  model net;
  net.recorded.loss = small_model<32>(net).id;
  const graph g = differentiate(refine(net.recorded));
  const compiler compile;
  const written w = write(g, mesh_of({2, 2}), 5);
  const std::string total = "static_assert(plan::plan::sent == " + detail::count_text(w.sent) + ");\n";
  CHECK(compile(w.text, uses + total) == "");
}

TEST_CASE("a plan's header knows what the kernels it is lowered for compute at once") {
  const graph g = differentiate(refine(families::decoder(small_tests::tiny_config())));
  const compiler compile;
  const std::string fused = write(g, mesh_of({2, 2}), 3, cuda::catalogue_target(number::bfloat16)).text,
                    apart = write(g, mesh_of({2, 2}), 3, 2).text;
  CHECK(compile(fused, uses) == "");
  const auto computed = [](const std::string& text) {
    const std::string before = "cfp::planned<\"";
    std::set<std::string> out;
    for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1))
      out.insert(text.substr(at + before.size(), text.find('"', at + before.size()) - at - before.size()));
    return out;
  };
  CHECK(computed(fused).size() > 50);
  CHECK(computed(fused) == computed(apart));
}

TEST_CASE("a plan's header knows clipping, micro-batches and numbers of two bytes") {
  model net;
  net.recorded.loss = small_model<32>(net).id;
  training how;
  how.clip = 1;
  how.micro_batches = 2;
  const graph g = differentiate(refine(net.recorded), how);
  const compiler compile;
  for (const long bytes : {4, 2}) {
    const std::string text = write(g, mesh_of({2, 2}), 9, bytes).text;
    CHECK(compile(text, uses + "static_assert(plan::plan::passes == 2);\n") == "");
    CHECK((text.find(", cfp::element_of<2>>;\n") != std::string::npos) == (bytes == 2));
  }
}

TEST_CASE("a plan's header compiles for every model carried, and for random graphs with factors of size 1", "[heavy]") {
  // Models that differ in sizes alone have the same header but for them: of each kind one is compiled, CFP_TEST_HEADERS
  // has all of them compiled. Many headers are one program.
  const bool all = std::getenv("CFP_TEST_HEADERS") != nullptr;
  const compiler compile;
  std::map<std::string, std::string> kinds;
  std::string texts, asked;
  int ones = 0, compiled = 0;
  const auto add = [&](const std::string& label, const graph& g, const mesh_shape& mesh, unsigned seed) {
    std::string space = label;
    for (char& c : space) c = is_name_character(c) ? c : '_';
    const written w = write(g, mesh, seed, 4, space);
    std::string kind;  // operators, without sizes
    for (const operation& o : g.operations) {
      kind += std::string(o.op->label) + ' ';
      for (const long n : o.sizes) kind += n == 1 ? "1" : "n";
    }
    ones += w.text.find("=1\"") != std::string::npos || w.text.find("=1 ") != std::string::npos;
    if (!kinds.try_emplace(kind, label).second && !all) return;
    texts += w.text;
    asked += "static_assert(" + space + "::plan::sent == " + detail::count_text(w.sent) + ");\n";
    ++compiled;
  };
  for (const auto& file : std::filesystem::directory_iterator(CFP_SOURCE_DIR "/examples/models")) {
    families::model_sizes sizes;
    sizes.batch = 4;
    sizes.sequence = 64;
    sizes.layers = file.path().stem().string().starts_with("alpa-moe") ? 2 : 1;
    sizes.least_groups = 2;
    const families::config_file config(file.path().string());
    add("of_" + file.path().stem().string(), differentiate(refine(build_model(config, sizes).forward)), mesh_of({2, 2}),
        3);
  }
  families::transformer t = families::read_decoder(small_tests::tiny("llama"));  // its rotated sequence is cut
  t.layers = 1, t.sequence = 8, t.pieces = 2;
  const graph in_pieces = differentiate(refine(families::decoder(t)));
  unsigned seed = 1;
  const auto shifts = [&] {
    return write(in_pieces, mesh_of({2, 2}), seed).sent.calls[static_cast<std::size_t>(collective_kind::shift)];
  };
  while (seed < 50 && shifts() == 0) ++seed;
  REQUIRE(shifts() > 0);
  add("in_pieces", in_pieces, mesh_of({2, 2}), seed);
  std::mt19937 random(6);
  for (int n = 0; n < (all ? 100 : random_plans); ++n)
    add("random_" + std::to_string(n), differentiate(refine(random_graph(random, random_sizes::grouped))),
        n % 2 ? mesh_of({2}) : mesh_of({2, 2}), static_cast<unsigned>(n));
  CHECK(kinds.size() >= 6);
  CHECK(ones > 3);
  INFO(compiled << " headers");
  CHECK(compile(texts, uses + asked) == "");
}

TEST_CASE("a plan's header of another version is refused") {
  model net;
  net.recorded.loss = small_model<32>(net).id;
  std::string text = write(differentiate(refine(net.recorded)), mesh_of({2}), 7).text;
  const std::string said = "static_assert(cfp::planned_in_version<1>);";
  REQUIRE(text.find(said) != std::string::npos);
  text.replace(text.find(said), said.size(), "static_assert(cfp::planned_in_version<2>);");
  const std::string why = compiler()(text, uses);
  CHECK(why.find("a plan's header was written by another version") != std::string::npos);
  CHECK(why.find("header is of version 2, this reads 1") != std::string::npos);
}

TEST_CASE("a plan's header knows the model and the mesh it was made for", "[heavy]") {
  model net;
  net.recorded.loss = small_model<32>(net).id;
  const graph g = differentiate(refine(net.recorded));
  const compiler compile;
  const std::string text = write(g, mesh_of({2}), 7).text;
  const std::string both = uses + "#include <cfp/model/planned_model.hpp>\n#include \"gated_layer.hpp\"\n";
  const auto asks = [&](const std::string& hidden, const std::string& size) {
    return both + "static_assert(cfp::planned_for_model<plan::plan, small_model<" + hidden +
           ">>);\nstatic_assert(cfp::planned_for_mesh<plan::plan, cfp::mesh<cfp::axis<\"data\", " + size + ">>>);\n";
  };
  CHECK(compile(text, asks("32", "2")) == "");
  const std::string other_model = compile(text, asks("64", "2")), other_mesh = compile(text, asks("32", "4"));
  CHECK(other_model.find("a plan was made for another model") != std::string::npos);
  CHECK(
      other_model.find(
          "tensor up.weight has other dimensions in the plan: width=16 hidden=32; in the model: width=16 hidden=64") !=
      std::string::npos);
  CHECK(other_mesh.find("a plan was made for a mesh with other axes") != std::string::npos);
}

}  // namespace header_tests
