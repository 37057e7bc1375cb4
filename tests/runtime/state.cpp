// A saved state goes on under another plan on another mesh as if nothing had been interrupted; bad files are refused by
// name.
#include "../catch.hpp"

#include "small.hpp"

namespace state_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

graph small_gpt(long layers = 2) {
  transformer c = tiny_config();
  c.layers = layers;
  return differentiate(refine(decoder(c)));
}

struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("cfp_state_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

using state = state_file<double>;

// What training some steps in double precision leaves: from the beginning or a state, and into one.
struct run_of {
  std::vector<double> loss;
  std::vector<std::vector<double>> before, after;  // weights
};
run_of train_in_double(const program& p, const graph& g, long steps, const state* from, state* to) {
  run_of out;
  shared_batches text(g, text_for(g));
  const auto ranks = ranks_for(p);
  ranks->run([&](rank& r) {
    const auto run = r.load(p, g, 3);
    if (from != nullptr)
      for (const auto& [value, all] : from->start().tensors) run->give(value, all);
    const auto weights = [&](std::vector<std::vector<double>>& into) {
      for (int v = 0; v < g.value_count(); ++v)
        if (g[v].role == value_role::weight && g[v].producer < 0) {
          const std::vector<double> now = whole(r, *run, g, v);
          if (r.leads()) into.push_back(now);
        }
    };
    weights(out.before);
    const long done = from != nullptr ? from->step() : 0;
    for (long s = done + 1; s <= done + steps; ++s) {
      one_step(*run, p, text, s);
      if (r.leads()) out.loss.push_back(run->loss());
    }
    weights(out.after);
    if (to == nullptr) return;
    for (int v = 0; v < g.value_count(); ++v)
      if (state::is_state(g[v]))
        run->collect(v, std::span<double>(to->data(v), static_cast<std::size_t>(elements(g[v].shape))));
  });
  return out;
}

}  // namespace

TEST_CASE("Rethinking: a state saved on one mesh goes on on another, of more ranks or fewer") {
  const folder files;
  const graph g = small_gpt();
  std::mt19937 random(2);
  const auto plan_on = [&](const mesh_shape& mesh) {
    return random_plan(g, mesh, decisions(g, parallel_blocks(g), mesh, axis_choice::regathered), random,
                       sizeof(double));
  };
  const run_of at_once = train_in_double(single(g, sizeof(double)), g, 6, nullptr, nullptr);
  for (int n = 0; n < 6; ++n) {
    INFO("case " << n);
    const bool loses = n >= 4;  // one of four ranks; else two are added
    const plan first = plan_on(mesh_of({loses ? 4 : 2})), second = plan_on(loses   ? mesh_of({3})
                                                                           : n % 2 ? mesh_of({2, 2})
                                                                                   : mesh_of({4}));
    {
      state saved = state::create(files / "half.safetensors", g, 3);
      train_in_double(first.code, g, 3, nullptr, &saved);
      CHECK_FALSE(std::filesystem::exists(files / "half.safetensors"));
      saved.commit();
    }
    const state loaded = state::open(files / "half.safetensors", g);
    CHECK(loaded.step() == 3);
    state last = state::create(files / "last.safetensors", g, 6);
    const run_of resumed = train_in_double(second.code, g, 3, &loaded, &last);
    for (std::size_t s = 0; s < 3; ++s) CHECK(resumed.loss[s] == Approx(at_once.loss[3 + s]).epsilon(1e-10));
    std::size_t w = 0;
    for (int v = 0; v < g.value_count(); ++v) {
      if (g[v].role != value_role::weight || g[v].producer >= 0) continue;
      double apart = 0, moved = 0;
      for (std::size_t i = 0; i < at_once.after[w].size(); ++i) {
        apart += std::pow(resumed.after[w][i] - at_once.after[w][i], 2);
        moved += std::pow(at_once.after[w][i] - at_once.before[w][i], 2);
      }
      CHECK(std::equal(resumed.after[w].begin(), resumed.after[w].end(), last.data(v)));
      CHECK(moved > 0);
      CHECK(apart <= 1e-14 * moved);
      ++w;
    }
    REQUIRE(w == at_once.after.size());
    std::filesystem::remove(files / "half.safetensors");
  }
}

TEST_CASE("a training that is saved and resumed is the same to the bit") {
  const folder files;
  const graph g = small_gpt();
  const byte_text text = text_for(g);
  std::mt19937 random(7);
  for (const long bytes : {4l, 2l}) {
    INFO("numbers of " << bytes << " bytes");
    const mesh_shape mesh = mesh_of({2});
    const plan p = random_plan(g, mesh, decisions(g, parallel_blocks(g), mesh, axis_choice::regathered), random, bytes);
    const auto ranks = ranks_for(p.code);
    train_options remember;
    remember.keep_changes = true;
    trainer at_once(*ranks, p.code, g, 3), half(*ranks, p.code, g, 3), rest(*ranks, p.code, g, 3);
    const trained first = at_once.run(text, 3), second = at_once.run(text, 3, remember);
    CHECK(half.run(text, 3).loss == first.loss);
    CHECK(half.done() == 3);
    half.save(files / "half.safetensors");
    {
      const state_file<float> kept = state_file<float>::open(files / "half.safetensors", g);
      rest.resume(kept.start());
    }
    CHECK(rest.done() == 3);
    const trained resumed = rest.run(text, 3, remember);
    CHECK(rest.done() == 6);
    CHECK(resumed.loss == second.loss);
    CHECK(resumed.begun == second.begun);
    CHECK((resumed.change == second.change));
    const auto file = [&](const char* name) {
      std::ifstream in(files / name, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    rest.save(files / "rest.safetensors");
    at_once.save(files / "at_once.safetensors");
    CHECK((file("rest.safetensors") == file("at_once.safetensors")));
    CHECK_THROWS_WITH(rest.save("/nowhere/state"), "/nowhere/state: cannot be written: No such file or directory");
    CHECK(rest.run(text, 1).loss == at_once.run(text, 1).loss);  // the training is not lost with it
  }
}

TEST_CASE("a header that says what cannot be is refused by name") {
  const folder files;
  const std::string path = files / "state.safetensors";
  model net;
  const tensor a = net.weight("a", {{"width", 4}}, {}), b = net.weight("b", {{"width", 4}}, {});
  net.recorded.loss = op<"width, width -> ">{}(a, b).id;
  const graph g = net.recorded;
  const auto why = [&](const std::string& header, std::size_t numbers) -> std::string {
    {
      std::ofstream out(path, std::ios::binary);
      for (int byte = 0; byte < 8; ++byte) out.put(static_cast<char>(header.size() >> (8 * byte) & 0xff));
      out << header << std::string(numbers * sizeof(double), '\0');
    }
    try {
      state::open(path, g);
      return "";
    } catch (const bad_state& e) {
      return std::string(e.what()).substr(path.size());
    }
  };
  const auto lies = [](const std::string& at, const std::string& shape = "[4]") {
    return R"({"dtype": "F64", "shape": )" + shape + R"(, "data_offsets": )" + at + "}";
  };
  const auto header = [&](const std::string& step, const std::string& first, const std::string& second) {
    std::string out =
        R"({"__metadata__": {"version": "1", "step": )" + step + R"(}, "a": )" + first + R"(, "b": )" + second + "}";
    out.resize((out.size() + 7) / 8 * 8, ' ');
    return out;
  };
  const std::string first = lies("[0, 32]"), second = lies("[32, 64]");
  CHECK(why(header("\"3\"", first, second), 8) == "");
  CHECK(why(header("\"3\"", first, first), 4) == ": tensor 'b' lies where another one does");
  {  // a checksum is whatever the file says, and its sentence one line
    const std::string step = R"("step": "3", "crc32": ")" + cfp::detail::checksum("3", 1) + "\"";
    std::string bad = R"({"__metadata__": {"version": "1", )" + step +
                      R"(, "crc32 a": "b\u0001", "crc32 b": ""}, "a": )" + first + R"(, "b": )" + second + "}";
    bad.resize((bad.size() + 7) / 8 * 8, ' ');
    CHECK(why(bad, 8).find(": tensor 'a' is not what was written: its checksum is ") == 0);
    CHECK(why(bad, 8).find("the file says b?; the file was damaged since") != std::string::npos);
  }
  CHECK(why(header("\"3 steps\"", first, second), 8) == ": header: its step must be a whole number, got \"3 steps\"");
  CHECK(why(header("\"-3\"", first, second), 8) == ": header: its step must be a whole number, got \"-3\"");
  CHECK(why(header("\"none\"", first, second), 8) == ": header: its step must be a whole number, got \"none\"");
  CHECK(why(header("3", first, second), 8) == ": header: its step must be a text, got number");
  for (const char* const at : {"[1e300, 64]", "[-32, 64]", "[32, 64, 96]", "[32]"})
    CHECK(why(header("\"3\"", first, lies(at)), 8) ==
          ": header: tensor 'b'.data_offsets must be the bytes it begins and ends at");
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  CHECK(why(header("\"3\"", first, lies("[32, 64]", deep)), 8) ==
        ": tensor 'b' has shape [an array], the model's is [4]");
  CHECK(why("[]", 8) == ": header: it must be an object, got array");
  CHECK(why("{\"a\": ", 8) == ": header: line 1, column 7: this is not JSON");
  CHECK(why("{}", 8) == ": header: it must have '__metadata__'");
}

TEST_CASE("files that are no state of the model are refused by name") {
  const folder files;
  const graph g = small_gpt();
  const std::string path = files / "state.safetensors";
  const auto why = [&](const graph& of) -> std::string {
    try {
      state::open(path, of);
      return "";
    } catch (const bad_state& e) {
      return e.what();
    }
  };
  CHECK(why(g).find(path + ": cannot be read") == 0);
  {
    state s = state::create(path, g, 1);
    s.commit();
  }
  CHECK(why(g).empty());
  CHECK(why(small_gpt(1)).find("holds tensor 'h.1.") != std::string::npos);
  CHECK(why(small_gpt(1)).find("which this model has not; it is another's state") != std::string::npos);
  CHECK(why(small_gpt(3)).find("tensor 'h.2.") != std::string::npos);
  CHECK(why(small_gpt(3)).find("is missing; the state is of another model") != std::string::npos);
  CHECK_THROWS_WITH(state_file<float>::open(path, g), Catch::Contains("holds \"F64\", wanted are \"F32\""));
  transformer wider = read_decoder(tiny("gpt"));
  wider.layers = 2;
  wider.sequence = 8;
  CHECK(why(differentiate(refine(decoder(wider))))
            .find("tensor 'wte.weight' has shape [512,64], the model's is [500,64]") != std::string::npos);
  const auto whole = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, whole + 8);
  CHECK(why(g).find(": something is behind them") != std::string::npos);
  std::filesystem::resize_file(path, whole);
  CHECK(why(g).empty());
  {  // two tensors at the same bytes
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    std::string all = text.str();
    const std::size_t second = all.find("data_offsets", all.find("data_offsets") + 1), from = all.find('[', second),
                      to = all.find(']', from);
    const std::size_t begun = all.find('[', all.find("data_offsets"));
    const std::string first = all.substr(begun, all.find(']', begun) - begun);
    REQUIRE(first.size() <= to - from);
    all.replace(from, to - from, first + std::string(to - from - first.size(), ' '));
    std::ofstream(path, std::ios::binary) << all;
    CHECK(why(g) != "");
  }
  {
    state s = state::create(path, g, 1);
    s.commit();
  }
  std::filesystem::resize_file(path, whole - 8);
  CHECK(why(g).find("is it cut short?") != std::string::npos);
  std::filesystem::resize_file(path, 20);
  CHECK(why(g).find("is no safetensors file") != std::string::npos);
  std::ofstream(path) << "not a state at all, but longer than eight bytes";
  CHECK(why(g).find("is no safetensors file") != std::string::npos);
  CHECK_THROWS_WITH(state::create("/nowhere/state", g, 1),
                    "/nowhere/state: cannot be written: No such file or directory");
}

}  // namespace state_tests
