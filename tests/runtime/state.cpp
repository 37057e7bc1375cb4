// A saved state goes on under another plan on another mesh as if nothing had been interrupted; bad files are refused by name.
#include "../catch.hpp"

#include "small.hpp"

using namespace cfp;
using namespace small_tests;

namespace {

graph small_gpt(long layers = 2) {
  gpt_config c = tiny_config();
  c.layers = layers;
  return differentiate(refine(gpt(c)));
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
  std::mt19937 random(2);
  const auto plan_on = [&](const mesh_shape& mesh) {
    return random_plan(g, mesh, decisions(g, parallel_blocks(g), mesh, axis_choice::regathered), random, sizeof(double));
  };
  const auto whole = driver::train<double, double>(single(g, sizeof(double)), g, k, text, 6, 3);
  for (int n = 0; n < 6; ++n) {
    INFO("case " << n);
    const plan first = plan_on(mesh_of({2})), second = plan_on(n % 2 ? mesh_of({2, 2}) : mesh_of({4}));
    {
      state saved = state::create(files / "half.safetensors", g, 3);
      driver::train<double, double>(first.code, g, k, text, 3, 3, nullptr, &saved);
      CHECK_FALSE(std::filesystem::exists(files / "half.safetensors"));
      saved.commit();
    }
    const state loaded = state::open(files / "half.safetensors", g);
    CHECK(loaded.step() == 3);
    state last = state::create(files / "last.safetensors", g, 6);
    const auto resumed = driver::train<double, double>(second.code, g, k, text, 3, 3, &loaded, &last);
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
