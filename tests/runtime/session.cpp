// A user's own model from its function to a trained plan, through one object: what is returned, printed and saved, and
// what is refused.
#include "../catch.hpp"
#include "common.hpp"

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/model/random_words.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/session/session.hpp>

#include <nlohmann/json.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include <sys/stat.h>

namespace session_tests {

using namespace cfp;

namespace {

// An operator of the user's own: a gate with a weight for each channel.
inline constexpr struct gated_t : op<"... width, width -> ... width", gated_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T weight) {
    return x * cfp::sigmoid(x * weight);
  }
} gated;

// Rows of numbers and of kinds, of which the next kind is to be found.
model own_model(long rows, long width = 32) {
  model net;
  const dimension batch{"batch", rows}, time{"time", 4}, channels{"channels", 16}, inner{"inner", width},
      kinds{"kinds", 8};
  const tensor signal = net.input("signal", {batch, time, channels}, element::real, {0, 0.3});
  const tensor kind = net.input("kind", {batch, time}, element::index, {0, 0, 8});
  const tensor next = net.input("next", {batch, time}, element::index, {0, 0, 8});
  tensor x = add(signal, lookup(net.weight("table", {kinds, channels}, {0, 0.5}), kind));
  for (const char* layer : {"layer.0", "layer.1"}) {
    net.scope(layer);
    const tensor up = linear(x, net.weight("up", {channels, inner}, {0, 0.3}));
    const tensor on = gated(up, net.weight("gate", {inner}, {1.0}));
    x = add(x, linear(on, net.weight("down", {inner, channels}, {0, 0.3})));
  }
  net.scope("");
  const tensor logits = linear(x, net.weight("head", {channels, kinds}, {0, 0.3}));
  const tensor most = logits_max(logits), sum = logits_sum(logits, most);
  net.recorded.loss = cross_entropy(logits, next, most, sum, 1.0 / static_cast<double>(rows * 4)).id;
  return net;
}

// The same rows however a step cuts its batch.
batch_source rows_of(long rows) {
  return [rows](long number) {
    std::vector<float> signal;
    std::vector<std::int32_t> kind, next;
    for (long i = number * rows * 4; i < (number + 1) * rows * 4; ++i) {
      const auto words = random_words(9, 0, static_cast<std::uint64_t>(i));
      const int now = static_cast<int>(words.v[0] % 8);
      kind.push_back(now);
      next.push_back((3 * now + 1) % 8);
      for (std::uint64_t c = 0; c < 16; ++c)
        signal.push_back(static_cast<float>(random_words(9, 1 + c, static_cast<std::uint64_t>(i)).v[0]) / 4.3e9f -
                         0.5f);
    }
    return batch{{"signal", signal}, {"kind", kind}, {"next", next}};
  };
}

session_options with_kernels(const std::string& mesh = "data=2") {
  session_options o;
  o.mesh = mesh;
  o.kernels = kernels_of<gated_t>();
  o.how.rate = 1e-2;
  o.name = "own model";
  return o;
}

struct folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("cfp_session_" + std::to_string(std::random_device{}()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
std::string printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

// The sentence of what is refused.
template <class Refusal = bad_input, class F>
std::string refused(const F& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return dynamic_cast<const Refusal*>(&e) != nullptr ? e.what() : std::string("something else: ") + e.what();
  }
  return "nothing is refused";
}

bool says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* w : words)
    if (text.find(w) == std::string::npos) {
      return false;
    }
  return true;
}

}  // namespace

TEST_CASE("what is known of a model before anything runs") {
  session s(own_model(8), with_kernels());
  CHECK(s.overview().needs.empty());
  const structure& known = s.analyse();
  CHECK(known.model == "own model");
  CHECK(known.mesh == "data=2");
  CHECK(known.forward > 0);
  CHECK(known.operators > known.forward);
  CHECK(known.blocks > 0);
  CHECK(known.segments > 0);
  CHECK(known.strategies > 0);
  CHECK(known.log10_operators > known.log10_blocks);
  CHECK(known.parameters == 8 * 16 + 2 * (16 * 32 + 32 + 32 * 16) + 16 * 8);
  CHECK(known.uneven.empty());
  REQUIRE(known.needs.size() >= 3);
  const structure::need &whole = known.needs.front(), *scattered = nullptr;
  CHECK(whole.plan == "replicated");
  CHECK(whole.sent == 0);
  CHECK(whole.weights == 4 * static_cast<long>(known.parameters));
  CHECK(whole.state == 2 * whole.weights);
  for (const structure::need& n : known.needs) {
    if (n.plan == "zero3") scattered = &n;
    if (n.plan == "data_parallel")
      CHECK(n.sent == whole.weights + 4);  // every gradient and the loss, and no tensor twice
  }
  REQUIRE(scattered != nullptr);
  CHECK(scattered->weights < whole.weights);
  CHECK(scattered->state < whole.state);
  CHECK(scattered->sent > 0);
  CHECK(says(printed(known), {" operators (", " blocks (", " segments (", "search space: 10^", "strategies to measure",
                              "weights GiB", "sends MiB", "replicated", "data_parallel", "zero3"}));
  const auto j = nlohmann::json::parse(known.json());
  CHECK(j["operators"] == known.operators);
  CHECK(j["blocks"] == known.blocks);
  CHECK(j["segments"]["unique"] == known.unique_segments);
  CHECK(j["parameters"] == known.parameters);
  CHECK(j["plans"]["zero3"]["bytes_per_rank"] == scattered->sent);

  CHECK(says(printed(session(own_model(9), with_kernels()).overview()), {"left out: ", "batch"}));  // 9 rows on 2 ranks
}

TEST_CASE("a model of one's own is planned, verified, trained and compared") {
  session s(own_model(8), with_kernels());
  const batch_source rows = rows_of(8);
  const found_plan& found = s.plan();
  CHECK(&s.plan() == &found);
  CHECK(found.model == "own model");
  CHECK(found.mesh == "data=2");
  CHECK(found.measured > 0);
  CHECK_FALSE(found.from_file);
  CHECK(found.best.predicted_ms > 0);
  CHECK(found.peak_bytes == predicted_peak(found.best.code));
  CHECK(found.weight_bytes > 0);
  CHECK(found.state_bytes > 0);
  REQUIRE(found.lines.size() > 3);
  REQUIRE(found.others.size() >= 3);
  CHECK(found.others.front().name == "replicated");
  for (const plan& other : found.others) CHECK(other.predicted_ms > 0);
  CHECK(says(printed(found), {"measured ", "programs in", "solved in", "a choice says what each mesh axis splits",
                              "decision", "choice", "data=", "memory of a rank, MiB: weights "}));
  const auto plan_json = nlohmann::json::parse(found.json());
  CHECK(plan_json["model"] == "own model");
  CHECK(plan_json["mesh"] == "data=2");
  CHECK(plan_json["predicted_ms"] == found.best.predicted_ms);
  CHECK(plan_json["predicted_peak_bytes"] == found.peak_bytes);
  CHECK(plan_json["measured"] == found.measured);
  CHECK(plan_json["decisions"].size() == found.lines.size());
  CHECK(plan_json["others"].size() == found.others.size());

  const verification v = s.verify(rows, 6);
  CHECK(v.holds());
  CHECK(v.steps == 6);
  CHECK(v.alone.size() == 6);
  CHECK(v.together.size() == 6);
  CHECK(v.alone.back() < v.alone.front());
  CHECK(v.left_out.of == static_cast<long>(s.overview().parameters));
  CHECK(v.stored_as.empty());
  CHECK(says(printed(v), {"verified over 6 steps: loss ", "largest relative difference", "parameters"}));
  const auto verified = nlohmann::json::parse(v.json());
  CHECK(verified["holds"] == true);
  CHECK(verified["loss_single"] == v.alone);
  CHECK(verified["loss_parallel"] == v.together);

  std::vector<long> steps;
  const training_report first = s.train(rows, 6, [&](const step_report& r) {
    steps.push_back(r.step);
    CHECK(r.loss > 0);
    CHECK(r.ms > 0);
    return true;
  });
  CHECK(steps == std::vector<long>{1, 2, 3, 4, 5, 6});
  CHECK(first.first == 1);
  CHECK(first.last == 6);
  CHECK(first.loss == v.together);  // the same plan from the same weights on the same data
  const training_report more = s.train(rows, 30);
  CHECK(more.first == 7);
  CHECK(more.last == 36);
  CHECK(more.loss.size() == 30);
  CHECK(more.ms.size() == 30);
  CHECK(more.loss.back() < 0.7 * first.loss.front());
  CHECK(says(printed(first), {"trained steps 1 to 6: loss ", "ms a step"}));
  CHECK(printed(training_report()) == "nothing was trained\n");
  const auto report = nlohmann::json::parse(more.json());
  CHECK(report["first"] == 7);
  CHECK(report["loss"] == more.loss);

  const plan_comparison c = s.compare(rows, 4);
  REQUIRE(c.plans.size() == 1 + found.others.size());
  CHECK(c.plans.front().plan == "found");
  CHECK(c.plans.front().ratio == std::array<double, 3>{1, 1, 1});
  CHECK(c.counts_agree());
  CHECK(c.tokens == 32);
  CHECK(c.ranks_here == 2);
  long sent = 0;
  for (const plan_comparison::entry& e : c.plans) {
    INFO(e.plan);
    CHECK(e.predicted_ms > 0);
    CHECK(e.measured_ms > 0);
    CHECK(e.measured_peak > 0);
    CHECK(e.measured_peak <= e.predicted_peak);
    CHECK(e.outside >= 0);
    CHECK(e.outside < 1);
    sent += e.sent.total_bytes();
  }
  CHECK(sent > 0);
  CHECK(says(printed(c), {"predicted", "measured", "tokens/s", "peak MiB", "sent MiB", "found", "replicated"}));
  const auto compared = nlohmann::json::parse(c.json());
  REQUIRE(compared.size() == c.plans.size());
  CHECK(compared[0]["name"] == "found");
  CHECK(compared[1]["predicted_peak_bytes"] == c.plans[1].predicted_peak);

  CHECK(says(s.explain(), {"strategy", "next best", "layer.0", "plan replicated: "}));
  CHECK(s.train(rows, 1).first == 37);  // none of this disturbs the training
}

TEST_CASE("sessions on two axes, in micro-batches, in bfloat16, with measured times kept", "[heavy]") {
  const folder files;
  session_options o = with_kernels("data=2,model=2");
  o.micro_batches = 2;
  o.type = number::bfloat16;
  o.how.clip = 1;
  o.table = files / "times.json";
  session s(own_model(4), o);
  std::vector<std::string> told;
  CHECK(s.plan().model == "own model micro_batches=2 bfloat16");
  const int measured = s.plan().measured;
  CHECK(measured > 0);
  const verification v = s.verify(rows_of(4), 5);
  CHECK(v.holds());
  CHECK(v.stored_as == "bfloat16");
  CHECK(v.stored_apart > 0);
  CHECK(says(printed(v), {"that was in float32; in bfloat16 the loss is within"}));
  const plan_comparison c = s.compare(rows_of(4), 2);
  CHECK(c.counts_agree());
  CHECK(c.tokens == 32);

  o.tell = [&](const progress& p) {
    told.push_back(p.what);
    return true;
  };
  // Parts in the table are not measured again, and none is new. (Segments run whole are run again before plans are
  // compared, and corrected figures may lead to a plan whose segments are new.)
  const auto parts = [&] {
    auto all = nlohmann::json::parse(std::ifstream(o.table)).at("milliseconds");
    for (auto at = all.begin(); at != all.end();) at = at.key().starts_with("whole ") ? all.erase(at) : std::next(at);
    return all;
  };
  const nlohmann::json before = parts();
  CHECK(before.size() > 20);
  session again(own_model(4), o);
  again.plan();
  CHECK(parts() == before);
  CHECK(std::any_of(told.begin(), told.end(), [](const std::string& t) { return says(t, {"running the segments"}); }));
  std::ofstream(o.table) << "no table";
  CHECK(says(refused([&] { session(own_model(4), o).plan(); }),
             {"table ", "times.json", "; name another file, or remove it"}));
}

TEST_CASE("a lazy session says first what is certified, and how much it had to measure") {
  session_options o = with_kernels();
  o.lazy = true;
  std::map<double, int> least;  // a disturbed clock may want all figures once, not each time
  for (const double tolerance : {0.0, 0.5, 1.0, 0.0, 1.0, 0.0, 1.0}) {
    o.tolerance = tolerance;
    session s(own_model(8), o);
    const found_plan& found = s.plan();
    CHECK(found.figures > 0);
    CHECK(found.figures_measured <= found.figures);
    const double share = std::max(found.gap, tolerance);
    char faster[64] = "faster";
    if (share > 0) std::snprintf(faster, sizeof faster, "more than %.3g%% faster", 100 * share);
    CHECK(printed(found).rfind(std::string("certified: no other plan is ") + faster + ", by bounds; of ", 0) == 0);
    CHECK(says(printed(found), {" figures ", "were measured"}));
    CHECK(found.others.size() >= 3);
    for (const plan& other : found.others) CHECK(other.predicted_ms >= found.best.predicted_ms);
    CHECK(s.verify(rows_of(8), 3).holds());
    const auto [at, first] = least.try_emplace(tolerance, found.figures_measured);
    at->second = std::min(at->second, found.figures_measured);
  }
  CHECK(least[1.0] < least[0.0]);
}

TEST_CASE("a training goes on from a saved state, on another mesh too") {
  const folder files;
  const std::string half = files / "half.safetensors", begun = files / "begun.safetensors";
  const batch_source rows = rows_of(8);
  session s(own_model(8), with_kernels());
  s.save_state(begun);
  s.train(rows, 4);
  s.save_state(half);
  const training_report rest = s.train(rows, 3);
  CHECK(rest.first == 5);
  session other(own_model(8), with_kernels("model=4"));
  other.load_state(half);
  const training_report there = other.train(rows, 3);
  CHECK(there.first == 5);
  CHECK(there.last == 7);
  for (std::size_t i = 0; i < 3; ++i) CHECK(there.loss[i] == Approx(rest.loss[i]).epsilon(1e-4));
  const verification v = other.verify(rows, 3);
  CHECK(v.holds());
  CHECK(v.begun_after == 4);
  CHECK(v.together == there.loss);
  CHECK(says(printed(v), {"going on after step 4"}));
  other.load_state(begun);
  CHECK(other.train(rows, 1).first == 1);
  CHECK(says(refused<bad_state>([&] { other.load_state(files / "nothing"); }), {"nothing: cannot be read"}));
  CHECK(says(refused<bad_state>([&] { session(own_model(8, 64), with_kernels()).load_state(half); }),
             {"tensor 'layer.0.up' has shape [16,32], the model's is [16,64]"}));
}

TEST_CASE("a saved plan is used again, compared with, and refused elsewhere") {
  const folder files;
  const std::string file = files / "plan.json";
  session s(own_model(8), with_kernels());
  s.save_plan(file);
  const auto j = nlohmann::json::parse(text_of(file));
  CHECK(j["model"] == "own model");
  CHECK(j["mesh"]["data"] == 2);
  session same(own_model(8), with_kernels());
  const found_plan& used = same.use_plan(file);
  CHECK(used.from_file);
  CHECK(used.measured == 0);
  CHECK(used.best.choices == s.plan().best.choices);
  CHECK(used.best.predicted_ms == s.plan().best.predicted_ms);
  CHECK(says(printed(used), {"from a file; ", "ms when it was found"}));
  CHECK(same.verify(rows_of(8), 3).holds());
  CHECK(same.train(rows_of(8), 2).loss == s.train(rows_of(8), 2).loss);
  CHECK(same.compare(rows_of(8), 2).plans.size() == 1);
  CHECK(refused([&] { same.explain(); }) == "a plan from a file has no measurements to explain it by");

  session beside(own_model(8), with_kernels());
  beside.compare_with(file);
  CHECK(beside.plan().others.back().name == file);
  CHECK(beside.compare(rows_of(8), 2).plans.back().plan == file);

  session_options named = with_kernels();
  named.name = "another";
  CHECK(says(refused([&] { session(own_model(8), named).use_plan(file); }),
             {"plan ", "plan.json: is of model 'own model', this is 'another'"}));
  CHECK(says(refused([&] { session(own_model(8), with_kernels("data=4")).use_plan(files / "none"); }),
             {"none: cannot be read"}));
  CHECK(says(refused([&] { session(own_model(8), with_kernels("model=2")).use_plan(file); }),
             {"plan ", "plan.json: is for mesh data=2, this one is model=2"}));
  CHECK(says(refused([&] { session(own_model(8), with_kernels("data=4")).use_plan(file); }),
             {"plan.json: is for mesh data=2, this one is data=4"}));
  // A model of the same name may be another one; numbers and micro-batches are part of what a plan is of.
  CHECK(says(
      refused([&] { session(own_model(8, 64), with_kernels()).use_plan(file); }),
      {"plan.json: is of a model whose tensor 'layer.0.down' is [inner=32 channels=16], this one's is [inner=64 "}));
  CHECK(says(refused([&] { session(own_model(16), with_kernels()).use_plan(file); }),
             {"plan.json: is of a model whose tensor 'kind' is [batch=8 time=4], this one's is [batch=16 time=4]"}));
  session_options narrow = with_kernels(), pieces = with_kernels();
  narrow.type = number::bfloat16;
  pieces.micro_batches = 2;
  CHECK(says(refused([&] { session(own_model(8), narrow).use_plan(file); }),
             {"plan.json: is of model 'own model', this is 'own model bfloat16'"}));
  CHECK(says(refused([&] { session(own_model(8), pieces).compare_with(file); }),
             {"plan.json: is of model 'own model', this is 'own model micro_batches=2'"}));
  std::string deep = text_of(file);
  const std::string mesh = "\"data\": 2";
  REQUIRE(deep.find(mesh) != std::string::npos);
  deep.replace(deep.find(mesh), mesh.size(), "\"data\": " + std::string(100000, '[') + std::string(100000, ']'));
  std::ofstream(file) << "{";
  CHECK(says(refused([&] { session(own_model(8), with_kernels()).use_plan(file); }), {"plan ", "plan.json: "}));
  std::ofstream(file) << deep;
  CHECK(says(refused([&] { session(own_model(8), with_kernels()).use_plan(file); }),
             {"plan.json: is for mesh data=an array, this one is data=2"}));
}

TEST_CASE("a file takes its name once it is whole, a link stays one, and what is no file is left alone") {
  const folder files;
  session s(own_model(8), with_kernels());
  std::filesystem::create_directory(files / "folder");
  CHECK(says(refused([&] { s.save_plan(files / "folder"); }), {"folder: cannot be written: what is there is no file"}));
  CHECK(
      says(refused([&] { s.save_state(files / "folder"); }), {"folder: cannot be written: what is there is no file"}));
  CHECK(refused([&] { s.save_plan(""); }) == "the name of a file to write is empty");
  CHECK(refused([&] { s.load_state(""); }) == "the name of a file to read is empty");
  REQUIRE(mkfifo((files / "pipe").c_str(), 0600) == 0);
  CHECK(says(refused([&] { s.save_plan(files / "pipe"); }), {"pipe: cannot be written: what is there is no file"}));
  CHECK(std::filesystem::is_fifo(files / "pipe"));
  CHECK(says(refused([&] { s.save_plan("/nowhere/plan.json"); }),
             {"/nowhere/plan.json: cannot be written: No such file or directory"}));
  std::ofstream(files / "old.json") << "old";
  std::filesystem::create_symlink("old.json", files / "link.json");
  s.save_plan(files / "link.json");
  CHECK(std::filesystem::is_symlink(files / "link.json"));
  CHECK(nlohmann::json::parse(text_of(files / "old.json")).contains("decisions"));
  std::filesystem::create_symlink("new.json", files / "nowhere.json");
  s.save_plan(files / "nowhere.json");
  CHECK(std::filesystem::is_symlink(files / "nowhere.json"));
  CHECK(text_of(files / "new.json") == text_of(files / "old.json"));
}

TEST_CASE("of several that write one file, each writes all of it") {
  const folder files;
  const std::string file = files / "state", alone[] = {files / "first", files / "second"};
  std::vector<session> sessions;
  for (const std::uint64_t seed : {1u, 2u}) {
    session_options o = with_kernels();
    o.seed = seed;
    sessions.emplace_back(own_model(8), o);
    sessions.back().save_state(alone[seed - 1]);
  }
  const std::string first = text_of(alone[0]), second = text_of(alone[1]);
  REQUIRE(first != second);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::jthread> writers;
    for (session& s : sessions) writers.emplace_back([&] { s.save_state(file); });
    writers.clear();
    const std::string written = text_of(file);
    REQUIRE((written == first || written == second));
    REQUIRE_FALSE(std::filesystem::exists(file + ".new"));
  }
}

TEST_CASE("a plan's header is checked by the compiler, in a namespace named as its file") {
  const folder files;
  session s(own_model(8), with_kernels());
  s.save_header(files / "my-plan.hpp");
  CHECK(says(text_of(files / "my-plan.hpp"), {"namespace my_plan", "struct plan", "own model"}));
  std::ofstream(files / "main.cpp") << "#include \"my-plan.hpp\"\nstatic_assert(my_plan::plan::passes == 1);\nint "
                                       "main() {}\n";
  const std::string command =
      std::string(CFP_CXX) + " -std=c++20 -fsyntax-only -I" CFP_SOURCE_DIR "/include " + (files / "main.cpp");
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("data that do not fit the model are refused in one sentence") {
  session s(own_model(8), with_kernels());
  const batch_source rows = rows_of(8);
  // What becomes of batch 3 is up to the case.
  const auto with = [&](const std::function<void(batch&)>& change) -> batch_source {
    return [&rows, change](long number) {
      batch b = rows(number);
      if (number == 3) change(b);
      return b;
    };
  };
  const std::vector<std::pair<batch_source, std::string>> cases = {
      {with([](batch& b) { b.erase("signal"); }), "batch 3: input 'signal' is missing"},
      {with([](batch& b) { b["signal"] = std::vector<float>(3); }),
       "batch 3: input 'signal' has 3 elements, the model takes 512"},
      {with([](batch& b) { b["signal"] = std::vector<std::int32_t>(512); }),
       "batch 3: input 'signal' holds indices, the model takes numbers (float)"},
      {with([](batch& b) { std::get<std::vector<float>>(b["signal"])[17] = std::nanf(""); }),
       "batch 3: input 'signal' holds nan at place 17"},
      {with([](batch& b) { b["kind"] = std::vector<float>(32); }),
       "batch 3: input 'kind' holds numbers, the model takes indices (std::int32_t)"},
      {with([](batch& b) { std::get<std::vector<std::int32_t>>(b["kind"])[5] = 8; }),
       "batch 3: input 'kind' has index 8 at place 5, the model takes those from 0 to 7"},
      {with([](batch& b) { std::get<std::vector<std::int32_t>>(b["next"])[0] = -1; }),
       "batch 3: input 'next' has index -1 at place 0, the model takes those from 0 to 7"},
      {with([](batch& b) { std::get<std::vector<std::int32_t>>(b["next"])[0] = ignored_target; }),
       "batch 3: input 'next' has index -100 at place 0, the model takes those from 0 to 7"},
      {with([](batch& b) { b["signals"] = b["signal"]; }),
       "batch 3: the model has no input 'signals'; the nearest one is 'signal'"},
      {with([](batch& b) {
         b["knd"] = b["kind"];
         b.erase("kind");
       }),
       "batch 3: the model has no input 'knd'; the nearest one is 'kind'"}};
  for (const auto& [data, sentence] : cases) {
    CHECK(refused([&, &from = data] { s.train(from, 5); }) == sentence);
    CHECK(refused([&, &from = data] { s.verify(from, 5); }) == sentence);
    CHECK(refused([&, &from = data] { s.compare(from, 5); }) == sentence);
  }
  // The steps before are kept.
  const training_report after = s.train(rows, 5);
  CHECK(after.first == 3);
  const folder files;
  s.save_plan(files / "plan.json");
  session straight(own_model(8), with_kernels());
  straight.use_plan(files / "plan.json");
  const training_report at_once = straight.train(rows, 7);
  CHECK(std::equal(after.loss.begin(), after.loss.end(), at_once.loss.begin() + 2, at_once.loss.end()));
  CHECK(s.verify(rows, 3).holds());
}

TEST_CASE("a source that gives other data when it is asked again is named") {
  session s(own_model(8), with_kernels());
  long asked = 0;
  const batch_source same = rows_of(8);
  CHECK(says(refused([&] { s.verify([&](long number) { return same(number + (++asked > 4)); }, 3); }),
             {"batch ", ": the source gives other data than before; a number must give the same data"}));
}

TEST_CASE("an exception of a batch source comes through") {
  session s(own_model(8), with_kernels());
  const auto data = [](long number) -> batch {
    if (number == 2) throw std::runtime_error("the disk is full");
    return rows_of(8)(number);
  };
  CHECK(refused<std::runtime_error>([&] { s.train(data, 4); }) == "the disk is full");
  CHECK(s.train(rows_of(8), 2).first == 2);
}

namespace {

std::atomic<bool> broken{false};

own_kernels breakable() {
  static own_kernel whole;
  own_kernels out = kernels_of<gated_t>();
  whole = out.front();
  out.front().in_float32 = [](const call& c) {
    if (broken) throw std::runtime_error("out of luck");
    whole.in_float32(c);
  };
  return out;
}

}  // namespace

TEST_CASE("a loss that is no number any more is said") {
  session_options o = with_kernels();
  o.how.rate = 1e38;
  session s(own_model(8), o);
  const training_report r = s.train(rows_of(8), 6);
  const long step = r.lost_at();
  REQUIRE(step > 1);
  CHECK(std::isfinite(r.loss[static_cast<std::size_t>(step - 2)]));
  CHECK_FALSE(std::isfinite(r.loss[static_cast<std::size_t>(step - 1)]));
  const std::string at = "at step " + std::to_string(step) + " the loss is no number any more";
  CHECK(says(printed(r), {at.c_str()}));
  CHECK(nlohmann::json::parse(r.json())["lost_at"] == step);
  CHECK(session(own_model(8), with_kernels()).train(rows_of(8), 2).lost_at() == 0);
  const folder files;
  std::ofstream(files / "state") << "before";
  const std::string why = "state: not written: the loss of step " + std::to_string(step) + " is no finite number";
  CHECK(says(refused([&] { s.save_state(files / "state"); }), {why.c_str()}));
  CHECK(text_of(files / "state") == "before");
  CHECK(says(printed(session(own_model(8), o).verify(rows_of(8), step)),
             {("on one rank too the loss of step " + std::to_string(step) + " is no finite number").c_str()}));
}

TEST_CASE("a state that is refused leaves what was trained") {
  const folder files;
  session s(own_model(8), with_kernels());
  const training_report first = s.train(rows_of(8), 2);
  CHECK(says(refused([&] { s.load_state(files / "none"); }), {"none: cannot be read: there is no such file"}));
  CHECK(says(refused([&] { s.load_state(files.path); }), {": cannot be read: it is a directory"}));
  std::ofstream(files / "empty").flush();
  CHECK(says(refused([&] { s.load_state(files / "empty"); }), {"empty: is empty"}));
  {
    std::string header = R"({"__metadata__":{"format":"pt","version":"1","step":"0"}})";
    while (header.size() % 4 != 1) header += ' ';
    std::ofstream(files / "askew", std::ios::binary)
        << static_cast<char>(header.size()) << std::string(7, '\0') << header;
  }
  CHECK(says(refused([&] { s.load_state(files / "askew"); }),
             {"askew: its header has ", " bytes, so that tensors are not aligned to 4"}));
  REQUIRE(mkfifo((files / "pipe").c_str(), 0600) == 0);
  CHECK(says(refused([&] { s.load_state(files / "pipe"); }), {"pipe: cannot be read: it is no file, but a pipe"}));
  CHECK(s.train(rows_of(8), 1).first == 3);
}

TEST_CASE("a training outlives what fails beside it, and begins anew where it fails itself") {
  session_options o = with_kernels();
  o.kernels = breakable();
  session s(own_model(8), o);
  const batch_source rows = rows_of(8);
  const training_report first = s.train(rows, 2);
  broken = true;
  CHECK(says(refused<rank_failure>([&] { s.compare(rows, 2); }), {"failed: out of luck"}));
  broken = false;
  const training_report more = s.train(rows, 2);
  CHECK(more.first == 3);
  broken = true;
  CHECK(says(refused<rank_failure>([&] { s.train(rows, 2); }), {"failed: out of luck"}));
  broken = false;
  const training_report again = s.train(rows, 4);
  CHECK(again.first == 1);
  CHECK(std::equal(first.loss.begin(), first.loss.end(), again.loss.begin()));
  CHECK(std::equal(more.loss.begin(), more.loss.end(), again.loss.begin() + 2));
}

TEST_CASE("an operator without a kernel is named with the line to add") {
  session_options o = with_kernels();
  o.kernels = {};
  session s(own_model(8), o);
  CHECK(s.analyse().operators > 0);  // nothing is run
  CHECK(says(refused<rank_failure>([&] { s.plan(); }),
             {"operator 'gated' is not in the catalogue: give the session .kernels = cfp::kernels_of<gated_t>()"}));
}

TEST_CASE("a callback says that it is enough", "[heavy]") {
  session s(own_model(8), with_kernels());
  const batch_source rows = rows_of(8);
  long last = 0;
  CHECK_THROWS_AS(s.train(rows, 10,
                          [&](const step_report& r) {
                            last = r.step;
                            return r.step < 4;
                          }),
                  cancelled);
  CHECK(last == 4);
  const training_report rest = s.train(rows, 2);  // what was trained is kept
  CHECK(rest.first == 5);
  session straight(own_model(8), with_kernels());
  straight.use_plan([&] {
    static const folder files;
    s.save_plan(files / "plan.json");
    return files / "plan.json";
  }());
  const training_report at_once = straight.train(rows, 6);
  CHECK(std::equal(rest.loss.begin(), rest.loss.end(), at_once.loss.begin() + 4));

  const std::pair<const char*, double> moments[] = {{"measuring", 0},
                                                    {"running the segments", -2},
                                                    {"training on one rank", 0},
                                                    {"training under the plan", 0.7},
                                                    {"comparing plans", 0},
                                                    {"training", 0.4}};
  for (const auto& [during, after] : moments) {  // in the middle of it
    INFO(during);
    session_options o = with_kernels();
    bool armed = true;
    int told = 0;
    o.tell = [&armed, &told, what = during, begin = after](const progress& p) {
      ++told;
      const bool there = std::string(what) == "training" ? p.what == what : says(p.what, {what});
      return !(armed && there && p.share > begin);
    };
    session t(own_model(8), o);
    CHECK_THROWS_AS((t.plan(), t.verify(rows, 2), t.compare(rows, 2), t.train(rows, 2)), cancelled);
    CHECK(told > 0);
    armed = false;
    CHECK(t.verify(rows, 2).holds());  // and it goes on
  }
}

TEST_CASE("what a callback throws comes to the caller, and leaves what was trained") {
  struct of_their_own {
    long step;
  };
  const folder files;
  const batch_source rows = rows_of(8);
  session straight(own_model(8), with_kernels());
  straight.plan();
  straight.save_plan(files / "plan.json");
  const training_report at_once = straight.train(rows, 6);
  session s(own_model(8), with_kernels());
  s.use_plan(files / "plan.json");
  long calls = 0;
  const auto until_four = [&](const step_report& r) {
    ++calls;
    return r.step < 4 ? true : throw of_their_own{r.step};
  };
  try {
    s.train(rows, 10, until_four);
    FAIL("nothing is thrown");
  } catch (const of_their_own& e) {
    CHECK(e.step == 4);
  }
  CHECK(calls == 4);
  s.save_state(files / "state");  // the step is done
  for (const bool loaded : {false, true}) {
    session other(own_model(8), with_kernels());
    other.use_plan(files / "plan.json");
    if (loaded) other.load_state(files / "state");
    const training_report rest = (loaded ? other : s).train(rows, 2);
    CHECK(rest.first == 5);
    CHECK(std::equal(rest.loss.begin(), rest.loss.end(), at_once.loss.begin() + 4));
  }
  for (const char* const during : {"measuring", "running the segments", "training on one rank",
                                   "training under the plan", "comparing plans", "training"}) {
    INFO(during);
    session_options o = with_kernels();
    bool armed = true;
    o.tell = [&](const progress& p) {
      const bool there = std::string(during) == "training" ? p.what == during : says(p.what, {during});
      return armed && there && p.share != 0 ? throw of_their_own{7} : true;
    };
    session t(own_model(8), o);
    CHECK_THROWS_AS((t.plan(), t.verify(rows, 2), t.compare(rows, 2), t.train(rows, 2)), of_their_own);
    armed = false;
    CHECK(t.verify(rows, 2).holds());  // and it goes on
  }
}

TEST_CASE("all that takes long with many layers says what goes on, under a saved plan too") {
  const folder files;
  session_options o = with_kernels();
  session(own_model(8), o).save_plan(files / "plan.json");
  std::vector<std::string> told;
  o.tell = [&](const progress& p) {
    if (told.empty() || told.back() != p.what) told.push_back(p.what);
    return true;
  };
  session s(own_model(8), o);
  const std::vector<std::string> begins{"making the training graph", "finding blocks", "finding equal runs of blocks",
                                        "listing what could be chosen", "counting plans"};
  CHECK(told == begins);
  told.clear();
  s.use_plan(files / "plan.json");
  CHECK(told == std::vector<std::string>{"reading plan " + (files / "plan.json"),
                                         "making the program of plan " + (files / "plan.json")});
  o.tell = [](const progress&) { return false; };
  CHECK(refused<cancelled>([&] { session(own_model(8), o); }) == "stopped, as the callback said");
}

TEST_CASE("of a session that was moved from nothing can be asked") {
  const folder files;
  session from(own_model(8), with_kernels());
  session to = std::move(from);
  const batch_source rows = rows_of(8);
  const std::function<void()> calls[] = {[&] { from.overview(); },
                                         [&] { from.analyse(); },
                                         [&] { from.plan(); },
                                         [&] { from.use_plan(files / "plan"); },
                                         [&] { from.compare_with(files / "plan"); },
                                         [&] { from.explain(); },
                                         [&] { from.verify(rows); },
                                         [&] { from.train(rows, 1); },
                                         [&] { from.compare(rows); },
                                         [&] { from.load_state(files / "state"); },
                                         [&] { from.save_state(files / "state"); },
                                         [&] { from.save_plan(files / "plan"); },
                                         [&] { from.save_header(files / "plan.hpp"); },
                                         [&] { from.training_graph(); },
                                         [&] { from.ranks(); }};
  for (const std::function<void()>& call : calls)
    CHECK(refused<bad_input>(call) == "the session was moved from: call the one that it was moved to");
  CHECK(to.overview().operators > 0);
  from = std::move(to);
  CHECK(from.overview().operators > 0);
}

TEST_CASE("a model that cannot be trained is refused in one sentence, by sessions and machines alike") {
  const auto refusal = [](const std::function<void(model&)>& change) {
    model net = own_model(8);
    change(net);
    const std::string by_session = refused([&] { session(net, with_kernels()); });
    const machine m = load_machine(std::string(CFP_SOURCE_DIR) + "/examples/machines/h100-8.json");
    CHECK(refused([&] { plan_for(net.recorded, m); }) == by_session);
    return by_session;
  };
  const auto input = [](model& net) { return tensor{&net, 0}; };  // signal
  CHECK(says(refusal([](model& net) { net.recorded.loss = -1; }), {"the model has no loss: set net.recorded.loss"}));
  CHECK(says(refusal([](model& net) { net.recorded.loss = 9999; }), {"the loss is tensor 9999 of a model that has"}));
  CHECK(says(refusal([](model& net) { net.recorded.loss = 0; }), {"the loss is 'signal', which is given"}));
  CHECK(says(refusal([&](model& net) { net.recorded.loss = add(input(net), input(net)).id; }),
             {"[batch=8 time=4 channels=16], not one number"}));
  CHECK(says(refusal([](model& net) {
               net.weight("head", {{"a", 2}, {"b", 3}}, {});
             }),
             {"two tensors are called 'head', [channels=16 kinds=8] and [a=2 b=3]"}));
  CHECK(says(refusal([](model& net) { net.weight("a\"b", {{"a", 2}}, {}); }), {"the name 'a\"b' has a quote"}));
  CHECK(says(refusal([](model& net) {
               net.weight("idle", {{"a", 2}}, {});
             }),
             {"the loss does not depend on weight 'idle': use it, or leave it out"}));
  CHECK(says(refusal([&](model& net) {
               relu(net.weight("dead", {{"a", 2}}, {}));
             }),
             {"the loss does not depend on weight 'dead'"}));
  model none;
  const tensor x = none.input("x", {{"batch", 4}}, element::real, {});
  none.recorded.loss = op<"batch, batch -> ">{}(x, x).id;
  CHECK(refused([&] { session(none, {}); }) == "the model has no weights: there is nothing to train");
  CHECK(refusal([](model& net) { net.recorded[net.recorded.find("head")].fill.deviation = std::nan(""); }) ==
        "'head' is filled around 0 with a deviation of nan: both must be finite numbers, and the deviation 0 or more");
  CHECK(says(refusal([](model& net) { net.recorded[net.recorded.find("head")].fill.constant = HUGE_VAL; }),
             {"'head' is filled around inf"}));
  CHECK(says(refusal([](model& net) { net.recorded[net.recorded.find("head")].fill.deviation = -1; }),
             {"with a deviation of -1"}));
  CHECK(refusal([](model& net) {
          const tensor loss{&net, net.recorded.loss};
          net.recorded.loss = scaled(loss, std::nan("")).id;
        }) == "'scaled' is computed by scaled with nan as its number 0");
  CHECK(says(refusal([](model& net) { net.recorded[1].fill.bound = 9; }),
             {"input 'kind' holds indices below 9, what they select from", "has 8"}));
  CHECK(says(refusal([](model& net) { net.recorded[1].fill.bound = 0; }),
             {"input 'kind' holds indices and says no bound: declare it with {0, 0, 8}"}));
}

static std::string thrown(const std::function<void(model&)>& call) {
  model net;
  try {
    call(net);
  } catch (const error& e) {
    return std::string(e.what());
  }
  return std::string("nothing is refused");
}

TEST_CASE("an operator refuses what is no tensor of its model") {
  const auto input = [](model& net, std::initializer_list<dimension> dims) {
    return net.input("x", dims, element::real, {});
  };
  CHECK(says(thrown([&](model& net) {
               add(input(net, {{"a", 2}, {"b", 3}}), input(net, {{"a", 2}}));
             }),
             {"add: operand 1 'x' (a) has 1 dimension, the rule \"..., ... -> ...\" says 2"}));
  CHECK(says(thrown([&](model& net) { add(input(net, {{"a", 2}}), tensor{}); }), {"no tensor of this model"}));
  CHECK(says(thrown([&](model& net) {
               net.weight("w", {{"width", 8}, {"width", 8}}, {});
             }),
             {"session.cpp:", "w: two dimensions are named 'width'; call one of them otherwise"}));
  CHECK(says(thrown([](model&) { relu(tensor{}); }), {"relu: operand 0 is a tensor of no model"}));
  CHECK(says(thrown([&](model& net) {
               model other;
               add(input(net, {{"a", 2}}), input(other, {{"a", 2}}));
             }),
             {"session.cpp:", ": add: operand 1 is no tensor of this model"}));
}

TEST_CASE("dimensions of a model that meet have one name and one size") {
  using dims = std::initializer_list<dimension>;
  const auto product = [](model& net, dims weight) {
    const tensor x = net.input("x", {{"batch", 4}, {"width", 8}}, element::real, {});
    return linear(x, net.weight("w", weight, {}));
  };
  const auto of = [&](dims weight) { return thrown([&](model& net) { product(net, weight); }); };
  CHECK(of({{"width", 8}, {"hidden", 8}}) == "nothing is refused");
  // A square weight the wrong way round, a misspelt dimension.
  CHECK(says(
      of({{"hidden", 8}, {"width", 8}}),
      {"linear: operand 1 'w' (hidden width) has 'hidden' of size 8 where operand 0 'x' (batch width) has 'width' of "
       "size 8, and the rule \"... in, in out -> ... out\" has one 'in'",
       "net.renamed(operand 1, \"hidden\", \"width\")"}));
  CHECK(
      says(of({{"widht", 8}, {"hidden", 8}}), {"has 'widht' of size 8 where operand 0 'x' (batch width) has 'width'"}));
  CHECK(says(of({{"width", 6}, {"hidden", 8}}), {"linear: operand 1 'w' (width hidden) has 'width' of size 6, operand "
                                                 "0 'x' (batch width) has 'width' of size 8"}));
  CHECK(says(of({{"width", 8}}), {"linear: operand 1 'w' (width) has 1 dimension, the rule", "says 2"}));
  // What is meant to be one is said to be; a name behind '~' is equal to all.
  CHECK(thrown([&](model& net) {
          const tensor x = net.input("x", {{"batch", 4}, {"width", 8}}, element::real, {});
          const tensor y = product(net, {{"width", 8}, {"hidden", 8}});
          const tensor z = add(x, net.renamed(y, "hidden", "width"));
          CHECK(net.recorded[z.id].dims[1] == "width");
          const tensor free = product(net, {{"~any", 8}, {"~out", 8}});
          CHECK(net.recorded[free.id].dims[1] == "out");
          CHECK(net.recorded[add(free, x).id].dims[1] == "width");
        }) == "nothing is refused");
  CHECK(says(thrown([&](model& net) {
               net.renamed(product(net, {{"width", 8}, {"hidden", 8}}), "widht", "width");
             }),
             {"w.linear: no dimension is called 'widht', they are (batch hidden)"}));
  CHECK(says(thrown([&](model& net) {
               net.renamed(product(net, {{"width", 8}, {"hidden", 8}}), "hidden", "batch");
             }),
             {"w.linear: 'hidden' cannot be called 'batch', as another dimension of (batch hidden) is"}));
  CHECK(says(thrown([&](model& net) {
               product(net, {{"abcdefghijklmnopqrstuvwxyz", 8}, {"hidden", 8}});
             }),
             {"'abcdefghijklmnopqrstuvwxyz': has 26 characters, at most 23 fit"}));
  CHECK(of({{"width", 8}, {"hidden", 0}}).ends_with(": w: dimension 'hidden' has size 0, at least 1 is wanted"));
  CHECK(of({{"width", 1l << 40}, {"hidden", 1l << 40}})
            .ends_with(": w: the tensor (width=1099511627776 hidden=1099511627776) has more elements than memory can "
                       "hold"));
  CHECK(thrown([&](model& net) {  // what was refused is not remembered
          CHECK_THROWS(product(net, {{"widht", 8}, {"hidden", 8}}));
          product(net, {{"width", 8}, {"hidden", 8}});
        }) == "nothing is refused");
  // Sizes that only the rule speaks of.
  const auto split = [](const auto&... heads) {
    return thrown([&](model& net) {
      split_heads(net.input("x", {{"batch", 4}, {"s", 2}, {"width", 8}}, element::real, {}), heads...);
    });
  };
  CHECK(split(size_of{"heads", 2}) == "nothing is refused");
  CHECK(says(split(),
             {"split_heads: the operands do not show the size of 'heads'", "give cfp::size_of{\"heads\", its size}"}));
  CHECK(says(split(size_of{"heads", 3}), {"has 'width' of size 8, but the factors of the rule", "make 3: heads=3"}));
}

TEST_CASE("rows that no batch asks for hardly move, and are not what rounding decides") {
  model net;
  const dimension batch{"batch", 16}, rows{"rows", 4096}, width{"width", 8};
  const tensor row = net.input("row", {batch}, element::index, {0, 0, 4096});
  const tensor x = lookup(net.weight("table", {rows, width}, {0, 0.1}), row);
  net.recorded.loss = scaled(op<"batch width, batch width -> ">{}(x, x), 1.0 / 16).id;
  session_options o;
  o.lazy = true;
  o.how.decay = 1e-3;  // in ten steps 3e-6 of the weight, of which float32 holds two digits
  session s(net, o);   // at the rate people use
  const verification v = s.verify(
      [](long number) {
        std::vector<std::int32_t> asked;
        for (std::uint64_t i = 0; i < 16; ++i)
          asked.push_back(static_cast<std::int32_t>(random_words(3, static_cast<std::uint64_t>(number), i).v[0] % 64));
        return cfp::batch{{"row", asked}};
      },
      10);
  INFO(printed(v));
  CHECK(v.holds());
  CHECK(v.faults().empty());
  CHECK(v.left_out.count < v.left_out.of / 1000);
}

TEST_CASE("what a verification finds wrong it says, value against bound") {
  verification v;
  v.alone = v.together = {1, 1};
  CHECK(v.holds());
  v.apart = {0.5, 0.25, "up"};
  v.left_out.count = 5, v.left_out.of = 100, v.left_out.most = "table";
  v.stored_as = "bfloat16", v.stored_apart = 0.125;
  CHECK(v.faults().size() == 4);
  CHECK(says(printed(v),
             {"NOT verified over 0 steps", "losses differ by 5.0e-01, at most 1e-04",
              "changes of 'up' differ by 2.5e-01, at most 1e-03", "decides 5.0% of the parameters, at most 1%",
              "in bfloat16 its losses differ by 1.2e-01 from those in float32, at most 2e-02"}));
}

TEST_CASE("a mesh that divides nothing is refused") {
  CHECK(refused([] { session(own_model(8), with_kernels("data=7")).plan(); }) ==
        "mesh data=7 divides nothing of the model (own model); choose axis sizes that divide one of its dimensions");
  CHECK(refused([] { session(own_model(8), with_kernels("data=7")).train(rows_of(8), 1); }).find("divides nothing") !=
        std::string::npos);
  session known(own_model(8), with_kernels("data=7"));
  CHECK_FALSE(known.analyse().uneven.empty());  // it may be looked at
  CHECK_NOTHROW(session(own_model(8), with_kernels("data=1")).plan());
}

TEST_CASE("a mesh, a configuration and a table are read, or refused in one sentence") {
  using namespace families;
  CHECK(read_mesh("data=999,model=999").devices() == 998001);
  CHECK(refused([] { read_mesh("a=999,b=999,c=999,d=999"); }) ==
        "mesh a=999,b=999,c=999,d=999: 996005996001 ranks, at most 2147483647 can be counted");
  CHECK(refused([] { read_mesh("data=8", 4); }) == "mesh data=8: 8 ranks, at most 4 run as threads");
  CHECK(refused([] { read_mesh("data=2,"); }) == "mesh data=2,: an axis stands behind every comma");
  CHECK(refused([] { read_mesh("data=2\n"); }) == "a mesh is one line without control characters");

  const folder files;
  const std::string file = files / "file.json", deep = std::string(100000, '[') + std::string(100000, ']');
  const auto config = [&](const std::string& text) {
    std::ofstream(file) << text;
    return refused([&] { read_decoder(config_file(file)); }).substr(file.size());
  };
  CHECK(refused([] { config_file("/dev/zero"); }) == "/dev/zero: cannot be read");
  CHECK(profile_table().load("/dev/zero") == "it cannot be read");
  CHECK(config("{") == ": line 1, column 2: this is not JSON");
  CHECK(config("[]") == ": must be an object, is an array");
  CHECK(config("{\"n_layer\": 1e999}").find("the number 1e999 is too large") != std::string::npos);
  CHECK(config("{\"n_layer\": 1, \"n_layer\": 2}") == ": the key 'n_layer' stands twice in one object");
  CHECK(config("{\"model_type\": \"gpt2\", \"n_layer\": " + deep + "}") ==
        ": key 'n_layer' must be a whole number, is an array");
  CHECK(config("{\"model_type\": \"gpt2\", \"n_layer\": 18446744073709551615}") ==
        ": key 'n_layer' must be at least 1 and at most 1e9, is 18446744073709551615");
  std::string experts = text_of(CFP_SOURCE_DIR "/tests/tiny_mixtral.json");
  experts.insert(experts.find('{') + 1, "\"capacity_factor\": 1e300,");
  std::ofstream(file) << experts;
  const graph g = build_model(config_file(file), {.batch = 4, .sequence = 8, .layers = 1}).forward;
  long places = 0;  // an expert has no more of them than there are tokens
  for (const value& v : g.values)
    for (int dim = 0; dim < v.rank(); ++dim)
      if (v.dims[dim] == "capacity") places = std::max(places, v.shape[dim]);
  CHECK(places == 8);

  const auto table = [&](const std::string& rest) {
    std::ofstream(file) << R"({"version": 1, "machine": "here", "model": "m", "mesh": "data=2", )" << rest;
    return profile_table().load(file);
  };
  const std::string entry = R"("milliseconds": {"up": {"median": 1, "spread": 0.5, "repeats": )";
  CHECK(table(entry + "3}}}") == "");
  CHECK(table(entry + "3}}") == "line 1, column 133: this is not JSON");
  CHECK(table(entry + "1e300}}}") == "'up.repeats' must be a whole number, got 1e+300");
  CHECK(table(entry + "4294967297}}}") == "'up.repeats' must be a whole number, got 4294967297");
  CHECK(table(entry + deep + "}}}") == "'up.repeats' must be a whole number, got an array");
  CHECK(table(entry + R"(3}}, "choices": {"p": 1e300}})") == "'p' must be a whole number, got 1e+300");
  CHECK(table(entry + R"(3}}, "instructions": {"p": {"milliseconds": -1, "flops": 0, "traffic": 0}}})") ==
        "'p' has a milliseconds that is -1, it must be from 0 to 1e24");
  CHECK(table(R"("milliseconds": null})") == "'milliseconds' must be an object, got null");
  CHECK(table(entry + R"(3}}, "plans": 3})") == "'plans' must be a list, got 3");
  CHECK(table(entry + R"(3}}, "plans": [{"among": "1", "choices": [0, -1]}]})") ==
        "'a plan's choices' must be a whole number, got -1");
  profile_table elsewhere;
  elsewhere.origin.mesh = "data=4";
  CHECK(elsewhere.load(file) == "its mesh is 'data=2', this is 'data=4'");
}

TEST_CASE("options that do not fit are refused in one sentence") {
  const auto with = [](const auto& change) {
    return refused([&] {
      session_options o = with_kernels();
      change(o);
      session(own_model(8), o).plan();
    });
  };
  CHECK(says(with([](session_options& o) { o.memory = 1000; }),
             {"memory 1000: no plan fits; the leanest plan found needs ", " bytes, ", " more"}));
  CHECK(says(with([](session_options& o) { o.memory = -1; }), {"memory must be bytes, or 0 for any, is -1"}));
  CHECK(says(with([](session_options& o) { o.micro_batches = 0; }), {"micro_batches must be at least 1, is 0"}));
  CHECK(says(with([](session_options& o) { o.mesh = "data"; }), {"mesh data: write axes as name=size"}));
  CHECK(says(with([](session_options& o) { o.type = number::float16; }),
             {"mesh data=2: numbers are stored as float16 on GPUs only; take bfloat16 or float32 here"}));
  CHECK(with([](session_options& o) { o.deadline = 0; }) ==
        "deadline must be seconds, more than 0 and at most 1e9, is 0");
  CHECK(with([](session_options& o) { o.tolerance = 2; }) ==
        "tolerance must be a share of the time, from 0 to 1, is 2");
  CHECK(with([](session_options& o) { o.tolerance = 0.1; }) ==
        "tolerance is of a lazy search alone, which then measures less: set lazy too, or leave it out");
  CHECK(with([](session_options& o) { o.micro_batches = 2, o.how.micro_batches = 4; }) ==
        "micro_batches is 2, and of how it is trained 4: say it once");
  CHECK(with([](session_options& o) { o.name = ""; }) == "name must be a text: plans and tables call the model so");
  for (const char* const label : {"a\"b", "a\nb", "a\\b"})
    CHECK(with([label](session_options& o) { o.name = label; }) ==
          "name must be a text without quotes, backslashes and control characters: it stands in headers");
  CHECK(says(with([](session_options& o) { o.name = "\xff"; }), {"name must be a text in UTF-8"}));
  CHECK(with([](session_options& o) { o.how.warmup = 3, o.how.steps = 2; }) ==
        "how it is trained: a warmup of 3 steps is longer than all 2 steps");
  model lost = own_model(8);
  lost.recorded.loss = -1;
  CHECK(says(refused([&] { session(lost, with_kernels()); }), {"the model has no loss: set net.recorded.loss"}));
  CHECK(with([](session_options& o) { o.how.rate = -1; }) == "how it is trained: rate must be at least 0, is -1");
  CHECK(with([](session_options& o) { o.how.rate = std::nan(""); }) ==
        "how it is trained: rate must be at least 0, is nan");
  CHECK(with([](session_options& o) { o.how.beta2 = 1; }) ==
        "how it is trained: beta2 must be at least 0 and below 1, is 1");
  CHECK(says(with([](session_options& o) { o.mesh = "data=2, model=2"; }),
             {"an axis name has letters, digits and _, not ' ' as ' model' has"}));
  session s(own_model(8), with_kernels());
  CHECK(refused([&] { s.train(rows_of(8), -1); }) == "a training has 0 steps or more, not -1");
  CHECK(refused([&] { s.verify(rows_of(8), 0); }) == "a verification has at least 1 step, not 0");
  for (const std::function<void()>& f : std::initializer_list<std::function<void()>>{
           [&] { s.train({}, 1); }, [&] { s.verify({}, 1); }, [&] { s.compare({}, 1); }})
    CHECK(refused(f) == "there is no data: the source of batches is an empty function");
  CHECK(refused([&] { s.compare(rows_of(8), 0); }) == "a comparison has at least 1 step, not 0");
}

namespace {

// Bytes that the plans people use need, the leanest first.
std::vector<long> usual_peaks(const found_plan& found) {
  std::vector<long> out;
  for (const plan& p : found.others) out.push_back(predicted_peak(p.code));
  std::sort(out.begin(), out.end());
  REQUIRE(out.front() < out.back());
  return out;
}

}  // namespace

TEST_CASE("a plan keeps the memory it may use") {
  session free(own_model(8), with_kernels());
  const std::vector<long> peaks = usual_peaks(free.plan());
  const folder files;
  for (const long most : {peaks.back() - 1, peaks.front()}) {
    session_options o = with_kernels();
    o.memory = most;
    o.table = files / "times";  // of both searches
    session tight(own_model(8), o);
    CHECK(tight.plan().peak_bytes <= most);
    CHECK(tight.verify(rows_of(8), 3).holds());
    tight.save_plan(files / "tight");
    o.memory = tight.plan().peak_bytes;  // which it keeps, whatever sums of parts say
    CHECK(session(own_model(8), o).plan().peak_bytes <= o.memory);
    CHECK(session(own_model(8), o).use_plan(files / "tight").peak_bytes <= o.memory);
  }
  free.save_plan(files / "plan");
  session_options o = with_kernels();
  o.memory = 1000;
  o.table = files / "times";
  nlohmann::json known = nlohmann::json::parse(std::ifstream(o.table));
  CHECK(known["plans"].size() >= 2);
  known["plans"][0]["choices"][0] = 99;
  std::ofstream(o.table) << known;
  const std::string why = refused([&] { session(own_model(8), o).plan(); });
  CHECK(says(why, {"table ", ": one of its plans makes other choices than there are", "remove"}));
  o.table.clear();
  CHECK(says(refused<nothing_fits>([&] { session(own_model(8), o).use_plan(files / "plan"); }),
             {"memory 1000: no plan fits; plan ", " needs ", " bytes, ", " more"}));
}

// Of 8 rows, as above, four fifths of the memory are what an engine keeps of instructions, which no sum of parts knows.
TEST_CASE("what keeps a limit is found within what it takes itself, where tensors take most of the memory") {
  constexpr long rows = 256;
  const std::vector<long> peaks = usual_peaks(session(own_model(rows), with_kernels()).plan());
  const folder files;
  session_options o = with_kernels();
  o.table = files / "times";
  for (const long limit : {peaks.back() - 1, (peaks.front() + peaks.back()) / 2}) {
    o.memory = limit;
    session tight(own_model(rows), o);
    CHECK(tight.plan().peak_bytes <= limit);
    o.memory = tight.plan().peak_bytes;
    CHECK(session(own_model(rows), o).plan().peak_bytes <= o.memory);
  }
}

}  // namespace session_tests
