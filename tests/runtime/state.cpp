// A saved state goes on under another plan on another mesh as if nothing had been interrupted; bad files are refused by name.
#include "../catch.hpp"

#include "driver.hpp"
#include "read_config.hpp"

using namespace cfp;

namespace {

mesh_shape mesh_of(std::initializer_list<int> sizes) {
  static constexpr const char* names[] = {"data", "model"};
  mesh_shape m;
  for (int s : sizes) m.axes.push({name(names[m.rank()]), s});
  return m;
}

graph small_gpt(long layers = 2) {
  gpt_config c = read_gpt(config_file(std::string(CFP_SOURCE_DIR) + "/tests/tiny_gpt.json"));
  c.layers = layers;
  c.vocabulary = 512;
  c.batch = 4;
  c.sequence = 8;
  return differentiate(refine(gpt(c)));
}

std::string some_text() {
  std::string s;
  for (int i = 0; i < 4000; ++i) s += static_cast<char>('a' + (i * i + i / 7) % 23);
  return s;
}

plan random_plan(const graph& g, const mesh_shape& mesh, std::mt19937& random) {
  const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
  std::vector<int> choices;
  for (const decision& n : d.nodes) choices.push_back(static_cast<int>(random() % n.choices()));
  return realise("random", g, mesh, d, choices, sizeof(double));
}

struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("cfp_state_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

using state = host::state_file<double>;

}  // namespace

TEST_CASE("a state saved on one mesh goes on on another") {
  const folder files;
  const graph g = small_gpt();
  const host::kernels<double> k;
  const driver::byte_text text(some_text(), 4, 8, 5);
  program single = lower(g, mesh_of({1}), sharding::replicated(g), all_operations(g), sizeof(double));
  plan_memory(single);
  const auto whole = driver::train<double, double>(single, g, k, text, 6, 3);
  std::mt19937 random(2);
  for (int n = 0; n < 6; ++n) {
    INFO("case " << n);
    const plan first = random_plan(g, mesh_of({2}), random), second = random_plan(g, n % 2 ? mesh_of({2, 2}) : mesh_of({4}), random);
    {
      state saved = state::create(files / "half.safetensors", g, 3);
      driver::train<double, double>(first.code, g, k, text, 3, 3, nullptr, &saved);
      CHECK_FALSE(std::filesystem::exists(files / "half.safetensors"));
      saved.commit();
    }
    const state loaded = state::open(files / "half.safetensors", g);
    CHECK(loaded.step() == 3);
    state last = state::create(files / "last.safetensors", g, 6);
    const auto resumed = driver::train<double, double>(second.code, g, k, text, 3, 77, &loaded, &last);  // another seed: all comes from the file
    for (std::size_t s = 0; s < 3; ++s) CHECK(resumed.loss[s] == Approx(whole.loss[3 + s]).epsilon(1e-10));
    for (std::size_t w = 0; w < whole.weights.size(); ++w) {
      double apart = 0, moved = 0;
      for (std::size_t i = 0; i < whole.after[w].size(); ++i) {
        apart += std::pow(resumed.after[w][i] - whole.after[w][i], 2);
        moved += std::pow(whole.after[w][i] - whole.before[w][i], 2);
      }
      CHECK(std::equal(resumed.after[w].begin(), resumed.after[w].end(), last.data(whole.weights[w])));
      CHECK(apart <= 1e-14 * moved);
    }
    std::filesystem::remove(files / "half.safetensors");
  }
}

TEST_CASE("files that are no state of the model are refused by name") {
  const folder files;
  const graph g = small_gpt();
  const std::string path = files / "state.safetensors";
  const auto why = [&](const graph& of) -> std::string {
    try {
      state::open(path, of);
      return "";
    } catch (const host::bad_state& e) {
      return e.what();
    }
  };
  CHECK(why(g).find(path + ": cannot be read") == 0);
  {
    state s = state::create(path, g, 1);
    s.commit();
  }
  CHECK(why(g).empty());
  CHECK(why(small_gpt(1)).empty());  // what a smaller model needs is there
  CHECK(why(small_gpt(3)).find("tensor 'h.2.") != std::string::npos);
  CHECK(why(small_gpt(3)).find("is missing; the state is of another model") != std::string::npos);
  CHECK_THROWS_WITH(host::state_file<float>::open(path, g), Catch::Contains("holds \"F64\", wanted are \"F32\""));
  gpt_config wider = read_gpt(config_file(std::string(CFP_SOURCE_DIR) + "/tests/tiny_gpt.json"));
  wider.layers = 2;
  wider.sequence = 8;
  CHECK(why(differentiate(refine(gpt(wider)))).find("tensor 'wte.weight' has shape [512,64], the model's is [500,64]") != std::string::npos);
  const auto whole = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, whole - 8);
  CHECK(why(g).find("is it cut short?") != std::string::npos);
  std::filesystem::resize_file(path, 20);
  CHECK(why(g).find("is no safetensors file") != std::string::npos);
  std::ofstream(path) << "not a state at all, but longer than eight bytes";
  CHECK(why(g).find("is no safetensors file") != std::string::npos);
  CHECK_THROWS_WITH(state::create("/nowhere/state", g, 1), "/nowhere/state: cannot be written");
}
