// The table of decoder families: of each model_type what its models are made of (decoder_bases.hpp) and which keys
// of its configurations say what (decoder_keys.hpp).
#pragma once

#include <cfp/families/decoder_bases.hpp>
#include <cfp/families/decoder_keys.hpp>

#include <span>
#include <string>
#include <vector>

namespace cfp::inline v0_1::families {

/// `complete`: what follows from several keys together.
struct decoder_family {
  const char* type;
  transformer base;
  std::span<const config_row> shared, own;
  void (*complete)(const config_file&, transformer&) = nullptr;
};

inline constexpr decoder_family decoder_families[] = {
    {"gpt2", decoder_detail::gpt2_base(), decoder_detail::gpt_keys, decoder_detail::gpt2_own},
    {"opt", decoder_detail::opt_base(), decoder_detail::size_keys, decoder_detail::opt_own,
     decoder_detail::opt_complete},
    {"gpt_neo", decoder_detail::neo_base(), {}, decoder_detail::neo_own, decoder_detail::neo_complete},
    {"gpt_neox", decoder_detail::neox_base(), decoder_detail::size_keys, decoder_detail::neox_own,
     decoder_detail::neox_complete},
    {"gptj", decoder_detail::gptj_base(), decoder_detail::gpt_keys, decoder_detail::gptj_own},
    {"bloom", decoder_detail::bloom_base(), {}, decoder_detail::bloom_own},
    {"falcon", decoder_detail::falcon_base(), decoder_detail::size_keys, decoder_detail::falcon_own,
     decoder_detail::falcon_complete},
    {"llama", decoder_detail::llama_base(), decoder_detail::llama_keys, decoder_detail::llama_own},
    {"mistral", decoder_detail::llama_base(), decoder_detail::llama_keys, decoder_detail::mistral_own},
    {"qwen2", decoder_detail::qwen2_base(), decoder_detail::llama_keys, decoder_detail::qwen_own},
    {"qwen3", decoder_detail::qwen3_base(), decoder_detail::llama_keys, decoder_detail::qwen_own},
    {"gemma", decoder_detail::gemma_base(), decoder_detail::llama_keys, decoder_detail::gemma_own,
     decoder_detail::gemma_complete},
    {"gemma2", decoder_detail::gemma2_base(), decoder_detail::llama_keys, decoder_detail::gemma2_own,
     decoder_detail::gemma_complete},
    {"phi", decoder_detail::phi_base(), decoder_detail::llama_keys, decoder_detail::phi_own},
    {"phi3", decoder_detail::phi3_base(), decoder_detail::llama_keys, decoder_detail::phi3_own},
    {"stablelm", decoder_detail::stablelm_base(), decoder_detail::llama_keys, decoder_detail::stablelm_own},
    {"olmo2", decoder_detail::olmo2_base(), decoder_detail::llama_keys, decoder_detail::llama_own},
    {"cohere", decoder_detail::cohere_base(), decoder_detail::llama_keys, decoder_detail::cohere_own},
    {"mixtral", decoder_detail::mixtral_base(), decoder_detail::llama_keys, decoder_detail::mixtral_own,
     decoder_detail::experts_complete},
    {"gshard", decoder_detail::gshard_base(), decoder_detail::gpt_keys, decoder_detail::gshard_own,
     decoder_detail::experts_complete}};

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
  read_rows(f, of.shared, of.own, t);
  const bool grouped = std::any_of(of.shared.begin(), of.shared.end(), [](const config_row& r) {
    return std::string_view(r.key) == "num_key_value_heads";
  });
  if (grouped && t.kv_heads == 0) t.kv_heads = t.heads;
  if (of.complete != nullptr) of.complete(f, t);
  check_heads(f, t);
  return t;
}

}  // namespace cfp::families
