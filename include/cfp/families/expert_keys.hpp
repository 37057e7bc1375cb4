// Which keys of the configurations of models with experts say what, family by family.
#pragma once

#include <cfp/families/decoder_keys.hpp>

#include <initializer_list>
#include <string>

namespace cfp::inline v0_1::families {

namespace decoder_detail {

template <long experts_form::*To>
void of_experts(const config_file& f, const char* key, transformer& t) {
  t.experts.*To = f.integer(key);
}
template <long experts_form::*To>
void maybe_of_experts(const config_file& f, const char* key, transformer& t) {
  if (f.has(key)) t.experts.*To = f.integer(key);
}
template <bool experts_form::*To>
void flag_of_experts(const config_file& f, const char* key, transformer& t) {
  t.experts.*To = f.flag(key, t.experts.*To);
}
template <long latent_form::*To>
void of_latent(const config_file& f, const char* key, transformer& t) {
  t.latent.*To = f.integer(key);
}
inline void balance(const config_file& f, const char* key, transformer& t) {
  if (f.has(key)) t.experts.balance = f.share(key);
}

// What is said of how tokens are dispatched, by no public configuration.
inline constexpr config_row dispatch_keys[] = {{"group_size", maybe_of_experts<&experts_form::group>},
                                               {"capacity_factor", ignored}};  // see experts_complete

inline constexpr config_row mixtral_own[] = {{"rms_norm_eps", real<&form::epsilon>},
                                             {"hidden_act", activation},
                                             {"attention_bias", absent},
                                             {"sliding_window", maybe_size<&form::window>},
                                             {"num_local_experts", of_experts<&experts_form::count>},
                                             {"num_experts_per_tok", of_experts<&experts_form::choices>},
                                             {"router_aux_loss_coef", balance},
                                             {"router_jitter_noise", zero},
                                             {"output_router_logits", ignored}};
inline constexpr config_row gshard_own[] = {{"num_experts", of_experts<&experts_form::count>},
                                            {"num_experts_per_tok", of_experts<&experts_form::choices>},
                                            {"router_aux_loss_coef", balance},
                                            {"tie_word_embeddings", present}};

// Qwen's models of many small experts.
inline void no_layers(const config_file& f, const char* key, transformer&) {
  if (f.has(key) && f.at(key) != nlohmann::json::array())
    throw f.fail(key, "is not modelled, and must be [], is " + f.at(key).dump().substr(0, 100));
}
inline void sparse_step(const config_file& f, const char* key, transformer& t) {
  if (!f.has(key)) return;
  t.experts.period = t.period = f.integer(key);
  t.experts.first = t.experts.period - 1;
}
inline constexpr config_row qwen_moe_own[] = {{"rms_norm_eps", real<&form::epsilon>},
                                              {"hidden_act", activation},
                                              {"use_sliding_window", absent},
                                              {"sliding_window", ignored},
                                              {"max_window_layers", ignored},
                                              {"attention_bias", absent},
                                              {"decoder_sparse_step", sparse_step},
                                              {"mlp_only_layers", no_layers},
                                              {"num_experts", of_experts<&experts_form::count>},
                                              {"num_experts_per_tok", of_experts<&experts_form::choices>},
                                              {"moe_intermediate_size", of_experts<&experts_form::hidden>},
                                              {"norm_topk_prob", flag_of_experts<&experts_form::normalised>},
                                              {"router_aux_loss_coef", balance},
                                              {"output_router_logits", ignored}};
inline constexpr config_row qwen2_moe_shared[] = {
    {"shared_expert_intermediate_size", of_experts<&experts_form::shared>}};

// DeepSeek's. A head of keys and values for each head of queries is what latent attention has.
inline constexpr config_row deepseek_own[] = {{"rms_norm_eps", real<&form::epsilon>},
                                              {"hidden_act", activation},
                                              {"attention_bias", absent},
                                              {"kv_lora_rank", of_latent<&latent_form::keys>},
                                              {"q_lora_rank", ignored},  // see deepseek_complete
                                              {"qk_nope_head_dim", of_latent<&latent_form::still>},
                                              {"qk_rope_head_dim", of_latent<&latent_form::turned>},
                                              {"v_head_dim", of_latent<&latent_form::values>},
                                              {"n_routed_experts", of_experts<&experts_form::count>},
                                              {"num_experts_per_tok", of_experts<&experts_form::choices>},
                                              {"moe_intermediate_size", of_experts<&experts_form::hidden>},
                                              {"n_shared_experts", ignored},
                                              {"moe_layer_freq", maybe_of_experts<&experts_form::period>},
                                              {"first_k_dense_replace", ignored},
                                              {"norm_topk_prob", flag_of_experts<&experts_form::normalised>},
                                              {"routed_scaling_factor", ignored},
                                              {"n_group", maybe_of_experts<&experts_form::sets>},
                                              {"topk_group", maybe_of_experts<&experts_form::kept>},
                                              {"topk_method", ignored},
                                              {"scoring_func", ignored},
                                              {"ep_size", is<1>},
                                              {"seq_aux", present}};
inline constexpr config_row deepseek_v2_own[] = {{"aux_loss_alpha", balance}};
// Its authors balance by the numbers that correct choices. What predicts further tokens is a module beside the model.
inline constexpr config_row deepseek_v3_own[] = {
    {"aux_loss_alpha", ignored}, {"num_nextn_predict_layers", ignored}, {"quantization_config", ignored}};

inline void act_silu(const config_file& f, const char* key, transformer&) { f.only(key, {{"name", "silu"}}); }
inline constexpr config_row dbrx_own[] = {{"n_layers", size<&form::layers>},
                                          {"n_heads", size<&form::heads>},
                                          {"d_model", size<&form::width>},
                                          {"vocab_size", size<&form::vocabulary>},
                                          {"max_seq_len", size<&form::positions>},
                                          {"emb_pdrop", share<&form::embedding_dropout>},
                                          {"resid_pdrop", share<&form::residual_dropout>},
                                          {"initializer_range", maybe_real<&form::deviation>},
                                          {"tie_word_embeddings", flag<&form::tied>},
                                          {"attn_config.clip_qkv", maybe_real<&form::clip>},
                                          {"attn_config.kv_n_heads", size<&form::kv_heads>},
                                          {"attn_config.rope_theta", real<&form::rope>},
                                          {"attn_config.attn_pdrop", share<&form::attention_dropout>},
                                          {"attn_config.model_type", ignored},
                                          {"ffn_config.ffn_hidden_size", of_experts<&experts_form::hidden>},
                                          {"ffn_config.moe_num_experts", of_experts<&experts_form::count>},
                                          {"ffn_config.moe_top_k", of_experts<&experts_form::choices>},
                                          {"ffn_config.moe_jitter_eps", zero},
                                          {"ffn_config.moe_normalize_expert_weights", is<1>},
                                          {"ffn_config.uniform_expert_assignment", absent},
                                          {"ffn_config.ffn_act_fn", act_silu},
                                          {"ffn_config.moe_loss_weight", balance},
                                          {"ffn_config.model_type", ignored},
                                          {"router_aux_loss_coef", balance},
                                          {"output_router_logits", ignored}};

inline void experts_complete(const config_file& f, transformer& t) {
  experts_form& e = t.experts;
  if (e.hidden == 0) e.hidden = t.inner();
  e.capacity_factor = f.number("capacity_factor", static_cast<double>(e.choices));
  const auto called = [&](const char* rows, std::initializer_list<const char*> others) {
    for (const char* key : others)
      if (f.has(key)) return key;
    return rows;
  };
  if (e.choices > e.count)
    throw f.fail(called("num_experts_per_tok", {"ffn_config.moe_top_k"}),
                 "must be at most " +
                     std::string(called("num_local_experts",
                                        {"num_experts", "n_routed_experts", "ffn_config.moe_num_experts"})) +
                     " " + std::to_string(e.count) + ", is " + std::to_string(e.choices));
}
// Sets of experts, where there are some.
inline void check_sets(const config_file& f, const experts_form& e) {
  f.divides("n_group", e.sets, "n_routed_experts", e.count);
  const long of_set = e.count / e.sets;
  if (e.kept > e.sets || e.kept * of_set < e.choices)
    throw f.fail("topk_group", "must be at most n_group " + std::to_string(e.sets) + ", of sets that have " +
                                   std::to_string(e.choices) + " experts together, is " + std::to_string(e.kept));
  if (e.best_two && of_set < 2) throw f.fail("n_group", "must leave 2 experts or more in each, leaves 1");
}
inline void deepseek_complete(const config_file& f, transformer& t) {
  experts_form& e = t.experts;
  latent_form& a = t.latent;
  if (t.kv_heads != t.heads)
    throw f.fail("num_key_value_heads",
                 "must be num_attention_heads, " + std::to_string(t.heads) + ", is " + std::to_string(t.kv_heads));
  if (f.has("head_dim")) f.only("head_dim", a.turned);
  t.kv_heads = 0;
  t.depth = a.still + a.turned;
  if (f.has("q_lora_rank")) a.queries = f.integer("q_lora_rank");
  if (f.has("n_shared_experts")) e.shared = f.integer("n_shared_experts") * e.hidden;
  if (f.has("first_k_dense_replace") && f.at("first_k_dense_replace") != 0)
    e.dense_layers = f.integer("first_k_dense_replace");
  e.scale = f.number("routed_scaling_factor", 1);
  experts_complete(f, t);
  f.only("scoring_func", e.logistic ? "sigmoid" : "softmax");
  const bool greedy = !e.corrected && (!f.has("topk_method") || f.at("topk_method") == "greedy");
  if (!greedy) f.only("topk_method", e.corrected ? "noaux_tc" : "group_limited_greedy");
  if (greedy) e.sets = e.kept = 1;  // published code does not look at them
  check_sets(f, e);
  if (!e.corrected && e.normalised && e.scale != 1)
    throw f.fail("routed_scaling_factor", "must be 1 where norm_topk_prob is true, is " + std::to_string(e.scale));
}

}  // namespace decoder_detail

}  // namespace cfp::families
