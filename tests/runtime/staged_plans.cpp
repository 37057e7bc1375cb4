// Plans in stages as files: found for a machine that is described, trained by a session on ranks, and refused
// elsewhere.
#include "../catch.hpp"
#include "common.hpp"
#include "found_stages.hpp"

#include <cfp/file/whole_file.hpp>
#include <cfp/session/session.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace staged_plans_tests {

using namespace cfp;
using namespace found_stages_tests;
using json = nlohmann::ordered_json;

namespace {

session session_of(const stages_plan& p, const std::string& mesh = "") {
  session_options o;
  o.mesh = mesh.empty() ? to_string(p.plan.layout.whole()) : mesh;
  o.micro_batches = p.plan.micro_batches;
  return session(model_of(p.plan.rows), o);
}

families::byte_text text_of(const stages_plan& p) { return {some_text(), p.plan.rows, 64, 5, {}}; }

std::string file_of(const std::string& text) {
  const std::string path = "staged_plan_changed.json";
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("a plan in stages is saved, and trains on ranks as one rank does", "[heavy]") {
  for (const auto& [places, micro_batches] : {std::pair(2, 4), std::pair(4, 8)}) {
    const stages_plan p = found_on({places}, micro_batches);
    CHECK(p.plan.usual.size() == 4);  // data_parallel, zero1, tensor, tensor_sequence
    for (const staged_usual& u : p.plan.usual) {
      CHECK(p.plan.price.ms <= u.price.ms);
      CHECK(u.layout.stages() == p.plan.layout.stages());
    }
    const std::string path = "staged_plan.json", again = "staged_plan_again.json";
    p.save_plan(path);
    session s = session_of(p);
    const found_plan& f = s.use_plan(path);
    REQUIRE(f.stages);
    CHECK(f.stages->places == places);
    CHECK(f.stages->schedule == p.plan.layout.schedule);
    CHECK(f.stages->first == p.plan.layout.first);
    CHECK(f.best.choices == p.plan.choices);
    CHECK(f.peak_bytes >= p.plan.price.peak);
    const families::byte_text text = text_of(p);
    const verification v = s.verify(text, 3);
    INFO(v.json());
    CHECK(v.holds());
    s.compare_with(path);
    const plan_comparison c = s.compare(text, 2);
    CHECK(c.counts_agree());
    REQUIRE(c.plans.size() == 2);
    CHECK(c.plans[1].sent.total_bytes() == c.plans[0].sent.total_bytes());
    CHECK(c.plans[0].sent.calls[static_cast<std::size_t>(collective_kind::send)] > 0);
    s.save_plan(again);
    const auto contents = [](const std::string& of) {
      json j = json::parse(*detail::whole_file(of));
      for (const char* const of_programs : {"partitions", "collectives", "predicted_peak_bytes"}) j.erase(of_programs);
      return j;
    };
    CHECK(contents(again) == contents(path));
    // A stage may be moved by hand.
    json moved = json::parse(*detail::whole_file(path));
    const int first = f.stages->first[0];
    const graph& g = s.training_graph();
    moved["stages"]["each"][1]["begins_with"] = std::string(g[g.at(first + 1).results[0]].label.view());
    session other = session_of(p);
    CHECK(other.use_plan(file_of(moved.dump())).stages->first[0] == first + 1);
    CHECK(other.verify(text, 2).holds());
    // A training goes on without stages, and back.
    s.train(text, 2);
    s.save_state("staged.safetensors");
    session_options o;
    o.mesh = "data=2", o.micro_batches = micro_batches;
    session whole(model_of(p.plan.rows), o);
    whole.load_state("staged.safetensors");
    s.load_state("staged.safetensors");
    const double there = whole.train(text, 1).loss[0], here = s.train(text, 1).loss[0];
    CHECK(std::abs(there - here) <= 1e-5 * here);
    for (const std::string& file : {path, again, std::string("staged.safetensors")}) std::remove(file.c_str());
  }
}

TEST_CASE(
    "a plan in stages says where it is of another mesh, model or number of micro-batches, and what is wrong in it") {
  const stages_plan p = found_on({2}, 4);
  p.save_plan("staged_plan.json");
  const auto refused = [&](session s, const std::string& path) {
    try {
      s.use_plan(path);
    } catch (const bad_input& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const std::string& what) {
    INFO(text);
    CHECK(text.find(what) != std::string::npos);
  };
  has(refused(session_of(p, "x=2"), "staged_plan.json"), "is for mesh stage=2,x=2, this one is x=2");
  has(refused(session_of(p, "stage=4"), "staged_plan.json"), "is for mesh stage=2,x=2, this one is stage=4,x=1");
  CHECK_THROWS_WITH(session_of(p).plan(), Catch::Contains("cfp plan --machine FILE --stages 2"));
  CHECK_THROWS_WITH(session_of(p).compare_with("staged_plan.json"), Catch::Contains("give the saved one"));
  CHECK_THROWS_WITH(session_of(p, "x=2,stage=2"), Catch::Contains("stands before all others"));
  CHECK_THROWS_WITH(session_of(p, "stage=1"), Catch::Contains("a pipeline has 2 places or more"));
  CHECK_THROWS_WITH(session_of(p).analyse(), Catch::Contains("give a mesh without that axis"));
  const json right = json::parse(*detail::whole_file("staged_plan.json"));
  using change = std::function<void(json&)>;
  const std::vector<std::pair<change, std::string>> wrong{
      {[](json& j) { j.erase("stages"); }, "must have 'stages'"},
      {[](json& j) { j["stages"]["schedule"] = "2f2b"; }, "follows schedule '2f2b', and saved plans follow"},
      {[](json& j) { j["stages"]["schedule"] = "chimera"; }, "staged_plan_changed.json: follows schedule 'chimera'"},
      {[](json& j) { j["stages"]["each"][0] = j["stages"]["each"][1]; }, "must be on place 0, is on 1"},
      {[](json& j) { j["stages"]["each"][0]["begins_with"] = j["stages"]["each"][1]["begins_with"]; },
       "which is not the model's first operator"},
      {[](json& j) { j["stages"]["micro_batches"] = 8; }, "is for 8 micro-batches, this training has 4"},
      {[](json& j) { j["stages"]["each"].push_back(j["stages"]["each"][1]); }, "stages on 2 places"},
      {[](json& j) { j["stages"]["each"][1]["begins_with"] = "nothing"; }, "no forward operator of this model makes"},
      {[](json& j) { j["stages"]["each"][1]["begins_with"] = j["stages"]["each"][0]["begins_with"]; }, "not behind"},
      {[](json& j) { j["stages"]["each"][1]["place"] = 0; }, "must be on place 1, is on 0"},
      {[](json& j) { j["stages"]["each"][0]["forward_ms"] = -1; }, "must be a number from 0 to 1e9, is -1"},
      {[](json& j) { j["stages"]["each"][0]["forward"] = 1; }, "has the key 'forward', which plans do not know"},
      {[](json& j) { j["stages"] = 3; }, "must be an object"},
      {[](json& j) { j["stages"]["each"] = json::array(); }, "has 0 stages on 2 places"},
  };
  for (const auto& [apply, why] : wrong) {
    json j = right;
    apply(j);
    has(refused(session_of(p), file_of(j.dump())), why);
  }
  std::remove("staged_plan.json"), std::remove("staged_plan_changed.json");
}

TEST_CASE("a plan in stages as a header compiles, and not where what crosses is received as something else",
          "[heavy]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "cfp_staged_header";
  std::filesystem::create_directories(folder);
  const auto compiled = [&](const std::string& header) {
    std::ofstream(folder / "plan.hpp") << header;
    std::ofstream(folder / "main.cpp") << "#include \"plan.hpp\"\nstatic_assert(staged::plan::crossings::bytes > 0);\n"
                                          "static_assert(staged::plan::places == 2 && staged::plan::passes == 4);\n"
                                          "int main() {}\n";
    const std::string command = std::string(CFP_CXX) +
                                " -std=c++20 -Wall -Wextra -fsyntax-only -I" CFP_SOURCE_DIR "/include " +
                                (folder / "main.cpp").string() + " > " + (folder / "said").string() + " 2>&1";
    return std::system(command.c_str()) == 0 ? "" : *detail::whole_file((folder / "said").string());
  };
  found_on({2}, 4).save_header((folder / "staged.hpp").string());
  const std::string text = *detail::whole_file((folder / "staged.hpp").string());
  CHECK(compiled(text) == "");
  // What one stage makes and another reads, one thing changed at a time.
  const std::string before = "cfp::planned_send<";
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  const std::size_t end = text.find('>', at);
  const std::string first = text.substr(at, end - at);
  const auto with = [&](const std::string& other) { return text.substr(0, at) + other + text.substr(end); };
  const std::size_t comma = first.find(", "), second = first.find(", ", comma + 2);
  const std::string sent = first.substr(before.size(), comma - before.size()), places = first.substr(second);
  const std::string name = sent.substr(0, sent.find("::"));
  const auto has = [](const std::string& said, const std::string& what) {
    INFO(said.substr(0, 3000));
    CHECK(said.find(what) != std::string::npos);
  };
  has(compiled(with(before + sent + ", " + sent + ", 0, 2")), "which must be two of 2");
  has(compiled(with(before + sent + ", " + sent + ", 1, 1")), "which must be two of 2");
  const std::string split =
      "cfp::held_as<\"h\", cfp::sharded<cfp::dims<\"batch=4\">, staged::mesh, cfp::split<\"batch\", ";
  has(compiled(with(before + split + "\"x\">>>, " + split + "\"stage\">>>" + places)),
      "it is sent as \\'batch:x\\' and received as \\'batch:stage\\'");
  has(compiled(with(before + split + "\"stage\">>>, " + split + "\"stage\">>>" + places)),
      "is not whole for \\'stage\\'");
  std::filesystem::remove_all(folder);
}

}  // namespace staged_plans_tests
