// Which keys of the configurations of decoders say what, family by family.
#pragma once

#include <cfp/families/scaling_keys.hpp>

#include <cmath>

namespace cfp::inline v0_1::families {

namespace decoder_detail {

using form = transformer;

// Keys of GPT-2's kind.
inline constexpr config_row gpt_keys[] = {{"n_layer", size<&form::layers>},
                                          {"n_head", size<&form::heads>},
                                          {"n_embd", size<&form::width>},
                                          {"vocab_size", size<&form::vocabulary>},
                                          {"n_positions", size<&form::positions>},
                                          {"n_ctx", ignored},
                                          {"n_inner", maybe_size<&form::hidden>},
                                          {"layer_norm_epsilon", real<&form::epsilon>},
                                          {"initializer_range", maybe_real<&form::deviation>},
                                          {"embd_pdrop", share<&form::embedding_dropout>},
                                          {"attn_pdrop", share<&form::attention_dropout>},
                                          {"resid_pdrop", share<&form::residual_dropout>},
                                          {"activation_function", activation},
                                          {"scale_attn_weights", present},
                                          {"scale_attn_by_inverse_layer_idx", absent},
                                          {"reorder_and_upcast_attn", ignored},
                                          {"add_cross_attention", absent}};
// Of most others.
inline constexpr config_row size_keys[] = {{"num_hidden_layers", size<&form::layers>},
                                           {"num_attention_heads", size<&form::heads>},
                                           {"hidden_size", size<&form::width>},
                                           {"vocab_size", size<&form::vocabulary>},
                                           {"initializer_range", maybe_real<&form::deviation>},
                                           {"attention_dropout", share<&form::attention_dropout>},
                                           {"tie_word_embeddings", flag<&form::tied>}};
inline constexpr config_row llama_keys[] = {{"num_hidden_layers", size<&form::layers>},
                                            {"num_attention_heads", size<&form::heads>},
                                            {"num_key_value_heads", maybe_size<&form::kv_heads>},
                                            {"hidden_size", size<&form::width>},
                                            {"intermediate_size", size<&form::hidden>},
                                            {"head_dim", maybe_size<&form::depth>},
                                            {"vocab_size", size<&form::vocabulary>},
                                            {"max_position_embeddings", size<&form::positions>},
                                            {"rope_theta", maybe_real<&form::rope>},
                                            {"rope_scaling", rope_scaling},
                                            {"initializer_range", maybe_real<&form::deviation>},
                                            {"attention_dropout", share<&form::attention_dropout>},
                                            {"tie_word_embeddings", flag<&form::tied>},
                                            {"mlp_bias", absent}};

inline constexpr config_row gpt2_own[] = {{"tie_word_embeddings", present}};
inline constexpr config_row gptj_own[] = {
    {"rotary_dim", size<&form::turned>}, {"rotary", present}, {"tie_word_embeddings", absent}};
inline constexpr config_row opt_own[] = {{"ffn_dim", size<&form::hidden>},
                                         {"max_position_embeddings", size<&form::positions>},
                                         {"word_embed_proj_dim", ignored},  // see opt_complete
                                         {"do_layer_norm_before", present},
                                         {"activation_function", activation},
                                         {"init_std", maybe_real<&form::deviation>},
                                         {"dropout", share<&form::residual_dropout>},
                                         {"activation_dropout", zero},
                                         {"layerdrop", zero},
                                         {"enable_bias", present},
                                         {"layer_norm_elementwise_affine", present}};
inline constexpr config_row neo_own[] = {{"num_layers", size<&form::layers>},
                                         {"num_heads", size<&form::heads>},
                                         {"hidden_size", size<&form::width>},
                                         {"intermediate_size", maybe_size<&form::hidden>},
                                         {"vocab_size", size<&form::vocabulary>},
                                         {"max_position_embeddings", size<&form::positions>},
                                         {"window_size", size<&form::window>},
                                         {"attention_types", ignored},  // see neo_complete
                                         {"attention_layers", ignored},
                                         {"activation_function", activation},
                                         {"layer_norm_epsilon", real<&form::epsilon>},
                                         {"initializer_range", maybe_real<&form::deviation>},
                                         {"attention_dropout", share<&form::attention_dropout>},
                                         {"embed_dropout", share<&form::embedding_dropout>},
                                         {"resid_dropout", share<&form::residual_dropout>},
                                         {"classifier_dropout", ignored},
                                         {"tie_word_embeddings", present}};
inline constexpr config_row neox_own[] = {{"intermediate_size", size<&form::hidden>},
                                          {"max_position_embeddings", size<&form::positions>},
                                          {"hidden_act", activation},
                                          {"rotary_pct", turned_share},
                                          {"rotary_emb_base", maybe_real<&form::rope>},
                                          {"rope_theta", maybe_real<&form::rope>},
                                          {"rope_scaling", rope_scaling},
                                          {"layer_norm_eps", real<&form::epsilon>},
                                          {"hidden_dropout", share<&form::residual_dropout, &form::embedding_dropout>},
                                          {"classifier_dropout", ignored},
                                          {"attention_bias", flag<&form::attention_bias, &form::out_bias>},
                                          {"use_parallel_residual", ignored}};  // see neox_complete
inline constexpr config_row bloom_own[] = {{"n_layer", size<&form::layers>},
                                           {"n_head", size<&form::heads>},
                                           {"hidden_size", size<&form::width>},
                                           {"n_inner", nothing},
                                           {"vocab_size", size<&form::vocabulary>},
                                           {"layer_norm_epsilon", real<&form::epsilon>},
                                           {"initializer_range", maybe_real<&form::deviation>},
                                           {"hidden_dropout", share<&form::residual_dropout>},
                                           {"attention_dropout", share<&form::attention_dropout>},
                                           {"apply_residual_connection_post_layernorm", absent},
                                           {"seq_length", ignored},
                                           {"offset_alibi", ignored},
                                           {"slow_but_exact", ignored},
                                           {"skip_bias_add", ignored},
                                           {"skip_bias_add_qkv", ignored},
                                           {"attention_softmax_in_fp32", ignored},
                                           {"masked_softmax_fusion", ignored},
                                           {"bias_dropout_fusion", ignored}};
inline constexpr config_row falcon_own[] = {{"num_kv_heads", maybe_size<&form::kv_heads>},
                                            {"layer_norm_epsilon", real<&form::epsilon>},
                                            {"hidden_dropout", share<&form::residual_dropout>},
                                            {"rope_theta", maybe_real<&form::rope>},
                                            {"rope_scaling", rope_scaling},
                                            {"alibi", absent},
                                            {"bias", absent},
                                            {"parallel_attn", present},
                                            {"multi_query", ignored},  // see falcon_complete
                                            {"new_decoder_architecture", ignored},
                                            {"apply_residual_connection_post_layernorm", absent}};
inline constexpr config_row llama_own[] = {
    {"rms_norm_eps", real<&form::epsilon>}, {"hidden_act", activation}, {"attention_bias", absent}};
inline constexpr config_row mistral_own[] = {
    {"rms_norm_eps", real<&form::epsilon>}, {"hidden_act", activation}, {"sliding_window", maybe_size<&form::window>}};
inline constexpr config_row qwen_own[] = {
    {"rms_norm_eps", real<&form::epsilon>}, {"hidden_act", activation},  {"attention_bias", absent},
    {"use_sliding_window", absent},         {"sliding_window", ignored},  // of what is not used
    {"max_window_layers", ignored}};
inline constexpr config_row gemma_own[] = {{"rms_norm_eps", real<&form::epsilon>},
                                           {"hidden_act", any_gelu},
                                           {"hidden_activation", activation},
                                           {"attention_bias", absent}};
inline constexpr config_row gemma2_own[] = {{"rms_norm_eps", real<&form::epsilon>},
                                            {"hidden_act", any_gelu},
                                            {"hidden_activation", activation},
                                            {"attention_bias", absent},
                                            {"query_pre_attn_scalar", real<&form::score_scale>},
                                            {"attn_logit_softcapping", maybe_real<&form::score_cap>},
                                            {"final_logit_softcapping", maybe_real<&form::logit_cap>},
                                            {"sliding_window", maybe_size<&form::window>},
                                            {"cache_implementation", ignored}};
inline constexpr config_row phi_own[] = {
    {"layer_norm_eps", real<&form::epsilon>},        {"hidden_act", activation},
    {"partial_rotary_factor", turned_share},         {"qk_layernorm", absent},
    {"embd_pdrop", share<&form::embedding_dropout>}, {"resid_pdrop", share<&form::residual_dropout>}};
inline constexpr config_row phi3_own[] = {{"rms_norm_eps", real<&form::epsilon>},
                                          {"hidden_act", activation},
                                          {"sliding_window", maybe_size<&form::window>},
                                          {"original_max_position_embeddings", ignored},
                                          {"attention_bias", absent},
                                          {"embd_pdrop", share<&form::embedding_dropout>},
                                          {"resid_pdrop", share<&form::residual_dropout>}};
inline constexpr config_row stablelm_own[] = {{"layer_norm_eps", real<&form::epsilon>},
                                              {"hidden_act", activation},
                                              {"partial_rotary_factor", turned_share},
                                              {"use_qkv_bias", flag<&form::attention_bias>},
                                              {"qk_layernorm", absent},
                                              {"use_parallel_residual", absent},
                                              {"hidden_dropout", share<&form::residual_dropout>}};
inline constexpr config_row cohere_own[] = {{"layer_norm_eps", real<&form::epsilon>},
                                            {"hidden_act", activation},
                                            {"logit_scale", real<&form::logit_scale>},
                                            {"use_qk_norm", absent},
                                            {"attention_bias", absent}};

// MPT's slopes are those of ALiBi's authors where the largest of them is 8.
inline constexpr config_row mpt_own[] = {{"n_layers", size<&form::layers>},
                                         {"n_heads", size<&form::heads>},
                                         {"d_model", size<&form::width>},
                                         {"vocab_size", size<&form::vocabulary>},
                                         {"max_seq_len", size<&form::positions>},
                                         {"expansion_ratio", ignored},  // see mpt_complete
                                         {"emb_pdrop", share<&form::embedding_dropout>},
                                         {"resid_pdrop", share<&form::residual_dropout>},
                                         {"initializer_range", maybe_real<&form::deviation>},
                                         {"no_bias", present},
                                         {"norm_type", says<"low_precision_layernorm", "layernorm">},
                                         {"layer_norm_epsilon", maybe_real<&form::epsilon>},
                                         {"learned_pos_emb", ignored},  // there is none beside slopes
                                         {"logit_scale", nothing},
                                         {"embedding_fraction", is<1>},
                                         {"init_device", ignored},
                                         {"init_config", ignored},
                                         {"tokenizer_name", ignored},
                                         {"verbose", ignored},
                                         {"attn_config.alibi", present},
                                         {"attn_config.alibi_bias_max", is<8>},
                                         {"attn_config.attn_impl", ignored},
                                         {"attn_config.attn_pdrop", share<&form::attention_dropout>},
                                         {"attn_config.attn_type", says<"multihead_attention">},
                                         {"attn_config.attn_uses_sequence_id", absent},
                                         {"attn_config.clip_qkv", maybe_real<&form::clip>},
                                         {"attn_config.prefix_lm", absent},
                                         {"attn_config.qk_ln", absent},
                                         {"attn_config.softmax_scale", maybe_real<&form::score_scale>},
                                         {"attn_config.model_type", ignored}};

inline void opt_complete(const config_file& f, transformer& t) {
  if (f.has("word_embed_proj_dim") && f.integer("word_embed_proj_dim") != t.width)
    throw f.fail("word_embed_proj_dim",
                 "must be hidden_size, " + std::to_string(t.width) + ", is " + f.at("word_embed_proj_dim").dump());
}
// [[["global", "local"], 6]]: every second layer has a window.
inline void neo_complete(const config_file& f, transformer& t) {
  const char* const key = "attention_types";
  const nlohmann::json all = {{{"global", "local"}, t.layers / 2}};
  if (!f.has(key) || f.at(key) != all) throw f.fail(key, "must be " + all.dump() + ", as the family has it");
}
inline void mpt_complete(const config_file& f, transformer& t) {
  t.hidden = t.width * (f.has("expansion_ratio") ? f.integer("expansion_ratio") : 4);
}
inline void neox_complete(const config_file& f, transformer& t) {
  if (!f.flag("use_parallel_residual", true)) t.layer = layer_kind::norm_before;
}
inline void falcon_complete(const config_file& f, transformer& t) {
  if (f.flag("new_decoder_architecture", false)) {
    t.layer = layer_kind::parallel;
    t.names.attention_norm = "ln_attn", t.names.mlp_norm = "ln_mlp";
    if (t.kv_heads == 0) t.kv_heads = t.heads;
  } else {
    t.kv_heads = f.flag("multi_query", true) ? 1 : t.heads;
  }
}
inline void gemma_complete(const config_file&, transformer& t) {
  t.word_scale = std::sqrt(static_cast<double>(t.width));
  if (t.score_scale > 0) t.score_scale = 1 / std::sqrt(t.score_scale);
}

}  // namespace decoder_detail

}  // namespace cfp::families
