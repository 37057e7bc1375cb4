// Families of decoders by table: sizes of public models, gradients and plans of small ones, and what is not modelled.
#include "../catch.hpp"

#include <cfp/families/families.hpp>
#include <cfp/session/check_gradients.hpp>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace families_tests {

using namespace cfp;
using namespace cfp::families;

namespace {

config_file carried(const std::string& model) {
  return config_file(std::string(CFP_SOURCE_DIR) + "/examples/models/" + model + ".json");
}

// Parameters as those who published a model count them: in its checkpoint's metadata ("total" of safetensors, bytes of
// the index over those of a number) or on its card.
struct published {
  const char* model;
  long parameters;
};
// By hand, where none is stated: words, then of each layer queries, keys and values, the weight behind them, the MLP
// and its norms, then the last norm.
constexpr long squared(long n) { return n * n; }
constexpr long falcon_7b = 65024l * 4544 + 32 * (4544 * (4544 + 2 * 64) + 9 * squared(4544) + 2 * 4544) + 2 * 4544;
constexpr long falcon_40b = 65024l * 8192 + 60 * (8192 * (8192 + 2 * 8 * 64) + 9 * squared(8192) + 4 * 8192) + 2 * 8192;
constexpr published all_published[] = {
    {"gpt2", 124439808},        {"opt-125m", 125239296},       {"gpt-neo-125m", 125198592},
    {"pythia-160m", 162322944}, {"gpt-neox-20b", 20554567680}, {"gpt-j-6b", 6050882784},
    {"bloom-560m", 559214592},  {"falcon-7b", falcon_7b},      {"falcon-40b", falcon_40b},
    {"llama-2-7b", 6738415616}, {"llama-3-8b", 8030261248},    {"llama-3-70b", 70553706496},
    {"mistral-7b", 7241732096}, {"qwen2-7b", 7615616512},      {"qwen3-8b", 8190735360},
    {"gemma-2b", 2506172416},   {"gemma-2-9b", 9241705984},    {"phi-2", 2779683840},
    {"phi-3-mini", 3821079552}, {"stablelm-3b", 2795443200},   {"olmo-2-7b", 7298617344},
    {"command-r", 34980831232}, {"mixtral-8x7b", 46702792704}};

long parameters(const graph& g) {
  long n = 0;
  for (const value& v : g.values)
    if (v.role == value_role::weight && v.producer < 0) n += elements(v.shape);
  return n;
}

// As small as can be: all that a family does is still there.
transformer smallest(transformer t) {
  const bool grouped = t.kv_heads > 1 && t.kv_heads < t.heads;
  if (t.kv_heads > 0) t.kv_heads = grouped ? 2 : t.kv_heads == 1 ? 1 : 4;
  if (t.depth > 0) t.depth = 6;
  const long depth = t.depth > 0 ? t.depth : 4;
  if (t.turned > 0) t.turned = t.turned < t.head_depth() ? depth - 2 : depth;
  t.layers = 2, t.heads = 4, t.width = 16, t.hidden = 24, t.vocabulary = 32, t.positions = 16;
  if (t.window > 0) t.window = 3;
  if (t.score_cap > 0) t.score_cap = 2;
  t.deviation = 0.4;
  t.embedding_dropout = t.attention_dropout = t.residual_dropout = 0;
  if (t.experts.count > 0) t.experts.count = 4, t.experts.hidden = 24;
  t.batch = 4, t.sequence = 8;
  return t;
}

std::string refused(const std::string& text) {
  const std::string file = "families_config.json";
  std::ofstream(file) << text;
  std::string said;
  try {
    build_model(config_file(file), {.batch = 2, .sequence = 8});
  } catch (const bad_input& e) {
    said = e.what();
  }
  std::remove(file.c_str());
  return said;
}

}  // namespace

TEST_CASE("every family has as many parameters as its models are published with") {
  for (const published& p : all_published) {
    INFO(p.model);
    transformer t = read_decoder(carried(p.model));
    t.batch = 1, t.sequence = 16;
    CHECK(parameters(decoder(t)) == p.parameters);
  }
}

TEST_CASE("gradients of every family are those of its loss, on one rank and on two under random plans", "[heavy]") {
  for (const char* const model : {"opt-125m", "gpt-neo-125m", "pythia-160m", "gpt-j-6b", "bloom-560m", "falcon-7b",
                                  "falcon-40b", "mistral-7b", "qwen2-7b", "qwen3-8b", "gemma-2b", "gemma-2-9b", "phi-2",
                                  "phi-3-mini", "stablelm-3b", "olmo-2-7b", "command-r"}) {
    INFO(model);
    gradient_options o;
    o.mesh = "data=2";
    o.plans = 2;
    o.elements = 3;
    const gradient_check c = check_gradients(decoder(smallest(read_decoder(carried(model)))), o);
    INFO(c.json());
    CHECK(c.holds());
  }
}

TEST_CASE("what a configuration says and no family here models is refused by its key") {
  const std::string llama = R"("model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "vocab_size": 32,
    "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 16, "rms_norm_eps": 1e-5)";
  CHECK(refused("{" + llama +
                ", \"architectures\": [\"LlamaForCausalLM\"], \"_name_or_path\": \"x\", \"bos_token_id\": "
                "1, \"rope_scaling\": null}") == "");
  const std::string file = "families_config.json: key ";
  const std::pair<const char*, const char*> wrong[] = {
      {R"("sliding_window": 8)", "'sliding_window' says 8, which nobody here knows of this family"},
      {R"("rope_scaling": {"rope_type": "yarn"})", "'rope_scaling' is not modelled, and must be null"},
      {R"("attention_bias": true)", "'attention_bias' must be false, is true"},
      {R"("hidden_act": "relu")", "'hidden_act' must be \"silu\", \"gelu_new\" or \"gelu_pytorch_tanh\", is \"relu\""},
      {R"("num_key_value_heads": 3)", "'num_key_value_heads' must divide num_attention_heads 4, is 3"},
      {R"("mlp_bias": true)", "'mlp_bias' must be false, is true"},
      {R"("head_dim": 3)", "'hidden_size' must give every head an even number of dimensions"}};
  for (const auto& [more, why] : wrong) {
    INFO(more);
    CHECK_THAT(refused("{" + llama + ", " + more + "}"), Catch::StartsWith(file + why));
  }
  const auto small = [](const char* type, const std::string& more) {
    return std::string(R"({"model_type": ")") + type + R"(", "hidden_size": 16, "intermediate_size": 24,
      "vocab_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 16, )" +
           more + "}";
  };
  CHECK_THAT(refused(small("gemma", R"("rms_norm_eps": 1e-5, "hidden_act": "relu")")),
             Catch::StartsWith(file + "'hidden_act' must be \"gelu\" or \"gelu_pytorch_tanh\", is \"relu\""));
  CHECK_THAT(
      refused(small("stablelm", R"("layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25)")),
      Catch::StartsWith(file + "'partial_rotary_factor' must be such that 2 or more of a head's 4 numbers turn"));
  CHECK_THAT(refused(R"({"model_type": "mamba"})"), Catch::Contains("must be \"gpt2\" or \"opt\" or "));
}

}  // namespace families_tests
