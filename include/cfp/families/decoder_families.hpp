// The table of families: of each model_type what its models are made of (decoder_bases.hpp and its like) and which
// keys of its configurations say what (decoder_keys.hpp and its like).
#pragma once

#include <cfp/families/encoder_bases.hpp>
#include <cfp/families/encoder_keys.hpp>
#include <cfp/families/expert_bases.hpp>
#include <cfp/families/expert_keys.hpp>

#include <span>
#include <string>
#include <vector>

namespace cfp::inline v0_1::families {

/// `complete`: what follows from several keys together.
struct decoder_family {
  const char* type;
  transformer base;
  config_rows rows;
  void (*complete)(const config_file&, transformer&) = nullptr;
};

namespace decoder_detail {

inline constexpr decoder_family all_families[] = {
    {"gpt2", gpt2_base(), {{gpt_keys, gpt2_own}}},
    {"opt", opt_base(), {{size_keys, opt_own}}, opt_complete},
    {"gpt_neo", neo_base(), {{neo_own}}, neo_complete},
    {"gpt_neox", neox_base(), {{size_keys, neox_own}}, neox_complete},
    {"gptj", gptj_base(), {{gpt_keys, gptj_own}}},
    {"bloom", bloom_base(), {{bloom_own}}},
    {"mpt", mpt_base(), {{mpt_own}}, mpt_complete},
    {"falcon", falcon_base(), {{size_keys, falcon_own}}, falcon_complete},
    {"llama", llama_base(), {{llama_keys, llama_own}}},
    {"mistral", llama_base(), {{llama_keys, mistral_own}}},
    {"qwen2", qwen2_base(), {{llama_keys, qwen_own}}},
    {"qwen3", qwen3_base(), {{llama_keys, qwen_own}}},
    {"gemma", gemma_base(), {{llama_keys, gemma_own}}, gemma_complete},
    {"gemma2", gemma2_base(), {{llama_keys, gemma2_own}}, gemma_complete},
    {"phi", phi_base(), {{llama_keys, phi_own}}},
    {"phi3", phi3_base(), {{llama_keys, phi3_own}}},
    {"stablelm", stablelm_base(), {{llama_keys, stablelm_own}}},
    {"olmo2", olmo2_base(), {{llama_keys, llama_own}}},
    {"cohere", cohere_base(), {{llama_keys, cohere_own}}},
    {"bert", bert_base(), {{encoder_keys, bert_own}}},
    {"roberta", roberta_base(), {{encoder_keys, bert_own}}, roberta_complete},
    {"vit", vit_base(), {{encoder_keys, vit_own}}, vit_complete},
    {"mixtral", mixtral_base(), {{llama_keys, mixtral_own, dispatch_keys}}, experts_complete},
    {"gshard", gshard_base(), {{gpt_keys, gshard_own, dispatch_keys}}, experts_complete},
    {"dbrx", dbrx_base(), {{dbrx_own, dispatch_keys}}, experts_complete},
    {"qwen2_moe", qwen2_moe_base(), {{llama_keys, qwen_moe_own, qwen2_moe_shared, dispatch_keys}}, experts_complete},
    {"qwen3_moe", qwen3_moe_base(), {{llama_keys, qwen_moe_own, dispatch_keys}}, experts_complete},
    {"deepseek_v2",
     deepseek_v2_base(),
     {{llama_keys, deepseek_own, deepseek_v2_own, dispatch_keys}},
     deepseek_complete},
    {"deepseek_v3",
     deepseek_v3_base(),
     {{llama_keys, deepseek_own, deepseek_v3_own, dispatch_keys}},
     deepseek_complete}};

}  // namespace decoder_detail

inline constexpr std::span<const decoder_family> decoder_families = decoder_detail::all_families;

/// The family of a model_type, or nullptr.
inline const decoder_family* decoder_family_of(std::string_view type) {
  for (const decoder_family& f : decoder_families)
    if (type == f.type) return &f;
  return nullptr;
}

/// What a configuration describes. Throws bad_input, naming file and key, for what is none, does not fit, or is not
/// modelled.
inline transformer read_decoder(const config_file& f) {
  std::vector<std::string> types;
  for (const decoder_family& d : decoder_families) types.emplace_back(d.type);
  const decoder_family& of = *decoder_family_of(f.type(types));
  transformer t = of.base;
  read_rows(f, of.rows, t);
  const bool grouped = std::string_view(key_of<&transformer::kv_heads>(of.rows, "")) == "num_key_value_heads";
  if (grouped && t.kv_heads == 0) t.kv_heads = t.heads;
  if (of.complete != nullptr) of.complete(f, t);
  check_layers<&transformer::layers>(f, of.rows, t.layers);
  check_heads(f, of.rows, t);
  return t;
}

}  // namespace cfp::families
