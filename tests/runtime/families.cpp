// Families of decoders by table: sizes of public models, gradients and plans of small ones, and what is not modelled.
#include "../catch.hpp"

#include "small_families.hpp"

#include <cfp/families/families.hpp>
#include <cfp/families/packed_rows.hpp>
#include <cfp/model/random_words.hpp>
#include <cfp/session/check_gradients.hpp>
#include <cfp/session/session.hpp>
#include <cfp/solve/packing.hpp>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace families_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

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
// Words twice, then of each layer queries, keys and values, the weight behind them, two norms, the router, 16 experts.
constexpr long dbrx =
    2 * 100352l * 6144 + 40 * (6144 * (2 * 6144 + 2 * 8 * 128 + 2 + 16) + 16 * 3 * 6144l * 10752) + 6144;
constexpr published all_published[] = {{"gpt2", 124439808},
                                       {"opt-125m", 125239296},
                                       {"gpt-neo-125m", 125198592},
                                       {"pythia-160m", 162322944},
                                       {"gpt-neox-20b", 20554567680},
                                       {"gpt-j-6b", 6050882784},
                                       {"bloom-560m", 559214592},
                                       {"falcon-7b", falcon_7b},
                                       {"falcon-40b", falcon_40b},
                                       {"llama-2-7b", 6738415616},
                                       {"llama-3-8b", 8030261248},
                                       {"llama-3-70b", 70553706496},
                                       {"mistral-7b", 7241732096},
                                       {"qwen2-7b", 7615616512},
                                       {"qwen3-8b", 8190735360},
                                       {"gemma-2b", 2506172416},
                                       {"gemma-2-9b", 9241705984},
                                       {"phi-2", 2779683840},
                                       {"phi-3-mini", 3821079552},
                                       {"stablelm-3b", 2795443200},
                                       {"olmo-2-7b", 7298617344},
                                       {"command-r", 34980831232},
                                       {"mixtral-8x7b", 46702792704},
                                       {"llama-3.1-8b", 8030261248},
                                       {"mpt-7b", 6649286656},
                                       {"dbrx", dbrx},
                                       {"qwen1.5-moe-a2.7b", 14315784192},
                                       {"qwen3-30b-a3b", 30532122624},
                                       {"deepseek-v2-lite", 15706484224},
                                       {"deepseek-v3", 671026419200},
                                       {"bert-base", 109514298},
                                       {"roberta-base", 124697433},
                                       {"vit-base", 86567656},
                                       {"t5-small", 60506624},
                                       {"t5-large", 737668096},
                                       {"t5-v1.1-small", 76961152}};

long parameters(const graph& g) {
  long n = 0;
  for (const value& v : g.values)
    if (v.role == value_role::weight && v.producer < 0) n += elements(v.shape);
  return n;
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
    CHECK(parameters(build_model(carried(p.model), {.batch = 1, .sequence = 16}).forward) == p.parameters);
  }
}

TEST_CASE("gradients of every family are those of its loss, on one rank and on two under random plans", "[heavy]") {
  const auto check = [](const graph& g) {
    gradient_options o;
    o.mesh = "data=2";
    o.plans = 2;
    o.elements = 3;
    const gradient_check c = check_gradients(g, o);
    INFO(c.json());
    CHECK(c.holds());
  };
  for (const char* const model :
       {"opt-125m",   "gpt-neo-125m", "pythia-160m",       "gpt-j-6b",      "bloom-560m",       "falcon-7b",
        "falcon-40b", "mistral-7b",   "qwen2-7b",          "qwen3-8b",      "gemma-2b",         "gemma-2-9b",
        "phi-2",      "phi-3-mini",   "stablelm-3b",       "olmo-2-7b",     "command-r",        "llama-3.1-8b",
        "mpt-7b",     "dbrx",         "qwen1.5-moe-a2.7b", "qwen3-30b-a3b", "deepseek-v2-lite", "deepseek-v3",
        "bert-base",  "roberta-base"}) {
    INFO(model);
    check(decoder(smallest(read_decoder(carried(model)))));
  }
  t5_config c = read_t5(carried("t5-v1.1-small"));
  c.layers = 1, c.heads = 4, c.depth = 4, c.width = 12, c.hidden = 16, c.vocabulary = 32, c.buckets = 8;
  c.farthest = 6, c.dropout = 0, c.batch = 4, c.sequence = 8;
  check(t5(c));
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
      {R"("rope_scaling": {"rope_type": "longrope"})",
       "'rope_scaling.rope_type' must be \"default\", \"linear\", \"llama3\" or \"yarn\", is \"longrope\""},
      {R"("rope_scaling": {"rope_type": "yarn"})", "'rope_scaling.factor' is missing"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": 2, "low_freq_factor": 1})",
       "'rope_scaling.low_freq_factor' says 1, which nobody here knows of its kind"},
      {R"("rope_scaling.factor": 2)", "'rope_scaling.factor' has a dot, as no key here"},
      {R"("a\u0000b": 1)", "'a\\u0000b' says 1, which nobody here knows of this family"},
      {R"("a\nb": 1)", "'a\\nb' says 1, which nobody here knows of this family"},
      {R"("attention_bias": true)", "'attention_bias' must be false, is true"},
      {R"("hidden_act": "relu")", "'hidden_act' must be \"silu\", \"gelu_new\" or \"gelu_pytorch_tanh\", is \"relu\""},
      {R"("num_key_value_heads": 3)", "'num_key_value_heads' must divide num_attention_heads 4, is 3"},
      {R"("mlp_bias": true)", "'mlp_bias' must be false, is true"},
      {R"("head_dim": 3)", "'head_dim' must give every head an even number of dimensions"}};
  for (const auto& [more, why] : wrong) {
    INFO(more);
    CHECK_THAT(refused("{" + llama + ", " + more + "}"), Catch::StartsWith(file + why));
  }
  std::string deep = llama;
  deep.replace(deep.find("_layers\": 2"), 11, "_layers\": 10001");
  CHECK_THAT(refused("{" + deep + "}"),
             Catch::StartsWith(file + "'num_hidden_layers' must be at most 10000, is 10001"));
  const auto small = [](const char* type, const std::string& more) {
    return std::string(R"({"model_type": ")") + type + R"(", "hidden_size": 16, "intermediate_size": 24,
      "vocab_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 16, )" +
           more + "}";
  };
  CHECK_THAT(refused(small("gemma", R"("rms_norm_eps": 1e-5, "hidden_act": "relu")")),
             Catch::StartsWith(file + "'hidden_act' must be \"gelu\" or \"gelu_pytorch_tanh\", is \"relu\""));
  CHECK_THAT(refused(R"({"model_type": "vit", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
      "num_attention_heads": 4, "image_size": 8, "patch_size": 4, "num_channels": 3, "layer_norm_eps": 1e-5,
      "num_labels": 3, "id2label": {"0": "a", "1": "b"}})"),
             Catch::StartsWith(file + "'id2label' must have as many labels as num_labels says, 3, has 2"));
  CHECK_THAT(
      refused(small("stablelm", R"("layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25)")),
      Catch::StartsWith(file + "'partial_rotary_factor' must be such that 2 or more of a head's 4 numbers turn"));
  const auto mpt = [&](const std::string& more) {
    return refused(R"({"model_type": "mpt", "d_model": 16, "n_heads": 4, "n_layers": 2, "vocab_size": 32,
      "max_seq_len": 16, "attn_config": )" +
                   more + "}");
  };
  CHECK(mpt("{}") == "");
  CHECK_THAT(mpt("7"), Catch::StartsWith(file + "'attn_config' must be an object, is 7"));
  CHECK_THAT(mpt(R"({"alibi": false})"), Catch::StartsWith(file + "'attn_config.alibi' must be true, is false"));
  CHECK_THAT(mpt(R"({"sink": 4})"),
             Catch::StartsWith(file + "'attn_config.sink' says 4, which nobody here knows of this family"));
  const auto deepseek = [&](const char* type, const std::string& more) {
    return refused(R"({"model_type": ")" + std::string(type) + R"(", "hidden_size": 16, "intermediate_size": 24,
      "vocab_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
      "max_position_embeddings": 16, "rms_norm_eps": 1e-6, "kv_lora_rank": 6, "qk_nope_head_dim": 4,
      "qk_rope_head_dim": 4, "v_head_dim": 4, "n_routed_experts": 8, "num_experts_per_tok": 3,
      "moe_intermediate_size": 8, "n_group": 4, )" +
                   more + "}");
  };
  CHECK(deepseek("deepseek_v3", R"("topk_group": 2)") == "");
  CHECK(deepseek("deepseek_v2", R"("topk_group": 2, "topk_method": "group_limited_greedy")") == "");
  const std::pair<const char*, const char*> of_v3[] = {
      {R"("topk_group": 1)", "'topk_group' must be at most n_group 4, of sets that have 3 experts together, is 1"},
      {R"("topk_group": 2, "topk_method": "greedy")", "'topk_method' must be \"noaux_tc\", is \"greedy\""},
      {R"("topk_group": 2, "scoring_func": "softmax")", "'scoring_func' must be \"sigmoid\", is \"softmax\""},
      {R"("topk_group": 2, "ep_size": 8)", "'ep_size' must be 1, is 8"},
      {R"("topk_group": 2, "rope_scaling": {"type": "yarn", "factor": 4, "mscale": 2, "mscale_all_dim": 1})",
       "'rope_scaling.mscale' must be mscale_all_dim"}};
  for (const auto& [more, why] : of_v3) CHECK_THAT(deepseek("deepseek_v3", more), Catch::StartsWith(file + why));
  CHECK_THAT(deepseek("deepseek_v2", R"("norm_topk_prob": true, "routed_scaling_factor": 2)"),
             Catch::StartsWith(file + "'routed_scaling_factor' must be 1 where norm_topk_prob is true"));
  const auto t5 = [&](const std::string& more) {
    return refused(R"({"model_type": "t5", "num_layers": 2, "num_heads": 4, "d_kv": 4, "d_model": 16, "d_ff": 24,
      "vocab_size": 32, "relative_attention_num_buckets": 8, "layer_norm_epsilon": 1e-6, )" +
                   more + "}");
  };
  CHECK(t5(R"("feed_forward_proj": "gated-gelu", "is_gated_act": true, "tie_word_embeddings": false)") == "");
  CHECK_THAT(t5(R"("scalable_attention": true)"),
             Catch::StartsWith(file + "'scalable_attention' says true, which nobody here knows of this family"));
  CHECK_THAT(t5(R"("is_gated_act": true)"), Catch::StartsWith(file + "'is_gated_act' must be false, is true"));
  CHECK_THAT(t5(R"("num_decoder_layers": 3)"), Catch::StartsWith(file + "'num_decoder_layers' must be 2, is 3"));
  CHECK_THAT(refused(R"({"model_type": "mamba"})"), Catch::Contains("must be \"gpt2\" or \"opt\" or "));
}

TEST_CASE("Hydraulis: documents packed into rows train as each in a row of its own does, on one rank and on two",
          "[heavy]") {
  std::vector<std::vector<std::int32_t>> documents;
  for (const long length : {5, 12, 3, 7, 2, 9, 4, 6}) {
    documents.emplace_back();
    const std::uint64_t first = 100 * documents.size();
    for (long i = 0; i < length; ++i)
      documents.back().push_back(
          static_cast<std::int32_t>(random_words(4, 0, first + static_cast<std::uint64_t>(i)).v[0] % 32));
  }
  const long longest = 12;
  std::vector<long> lengths;
  for (const std::vector<std::int32_t>& d : documents) lengths.push_back(static_cast<long>(d.size()));
  const auto alone = [&](long) {  // the rest of each row has no targets, and comes behind
    batch out;
    std::vector<std::int32_t> tokens, targets, positions;
    for (const std::vector<std::int32_t>& d : documents)
      for (std::size_t i = 0; i < static_cast<std::size_t>(longest); ++i) {
        tokens.push_back(i < d.size() ? d[i] : 0);
        targets.push_back(i + 1 < d.size() ? d[i + 1] : ignored_target);
      }
    for (long i = 0; i < longest; ++i) positions.push_back(static_cast<std::int32_t>(i));
    out["tokens"] = tokens, out["targets"] = targets, out["positions"] = positions;
    return out;
  };
  for (const char* const name : {"gpt2", "mistral-7b"}) {
    transformer t = smallest(read_decoder(carried(name)));
    t.sequence = longest, t.batch = static_cast<long>(documents.size()), t.ignored_targets = true;
    const bool learned = t.position == position_kind::learned;
    session_options o{.mesh = "x=1", .type = number::float64};
    const std::vector<double> expected = session(decoder(t), o)
                                             .train(
                                                 [&](long n) {
                                                   batch b = alone(n);
                                                   if (!learned) b.erase("positions");
                                                   return b;
                                                 },
                                                 5)
                                             .loss;
    const packed_rows rows(documents, packed_few(lengths, longest), 4, longest, learned);
    CHECK(rows.size() == 4);  // of 8 as they are
    t.batch = 4, t.packed = true;
    for (const char* const mesh : {"x=1", "x=2"}) {
      o.mesh = mesh;
      const std::vector<double> found = session(decoder(t), o).train(rows, 5).loss;
      REQUIRE(found.size() == expected.size());
      for (std::size_t s = 0; s < found.size(); ++s) CHECK(found[s] == Approx(expected[s]).epsilon(1e-11));
    }
    gradient_options g;
    g.mesh = "data=2", g.plans = 2, g.elements = 3;
    const gradient_check c = check_gradients(decoder(t), g);
    INFO(c.json());
    CHECK(c.holds());
  }
  CHECK_THROWS_AS(packed_rows({{1, 2, 3}}, {{0}}, 1, 2), bad_input);
  CHECK_THROWS_AS(packed_rows({{1}}, {{0}}, 1, 2), bad_input);
  CHECK_THROWS_AS(packed_rows({{1, 2}}, {{1}}, 1, 2), bad_input);
  CHECK_THROWS_AS(packed_rows({}, {}, 1, 2), bad_input);
  CHECK_THROWS_AS(packed_rows({{1, 2}}, {std::vector<int>(300, 0)}, 1, 1024), bad_input);
}

}  // namespace families_tests
