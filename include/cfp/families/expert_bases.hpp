// What the models of a family of decoders with experts have in common: see decoder_bases.hpp.
#pragma once

#include <cfp/families/decoder_bases.hpp>

namespace cfp::inline v0_1::families {

namespace decoder_detail {

constexpr transformer mixtral_base() {
  transformer t = llama_base();
  t.experts.gated = t.experts.apart = true;
  t.experts.hidden = 0;  // that of the MLP
  return t;
}
constexpr transformer gshard_base() {
  transformer t = gpt2_base();
  t.period = 2;
  t.experts.period = 2, t.experts.first = 1;
  t.experts.hidden = 0;
  t.experts.called = "moe";
  return t;
}
constexpr void small_experts(experts_form& e) {
  e.gated = e.apart = true;
  e.normalised = false;
  e.called = "mlp", e.gate = "gate_proj", e.up = "up_proj", e.down = "down_proj";
}
constexpr transformer qwen2_moe_base() {
  transformer t = qwen2_base();
  small_experts(t.experts);
  t.experts.shared_gate = true;
  t.experts.beside = "shared_expert";
  t.experts.balance = 0.001;
  return t;
}
constexpr transformer qwen3_moe_base() {
  transformer t = qwen3_base();
  small_experts(t.experts);
  t.experts.balance = 0.001;
  return t;
}
constexpr transformer deepseek_v2_base() {
  transformer t = llama_base();
  t.position = position_kind::rotary_pairs;
  t.latent.keys = 512;
  small_experts(t.experts);
  t.experts.balance = 0.001;
  return t;
}
constexpr transformer deepseek_v3_base() {
  transformer t = deepseek_v2_base();
  t.experts.logistic = t.experts.corrected = t.experts.normalised = t.experts.best_two = true;
  t.experts.balance = 0;
  return t;
}
constexpr transformer dbrx_base() {
  transformer t = llama_base();
  t.norm = norm_kind::layer_unbiased;
  t.names = {.words = "transformer.wte",
             .layer = "transformer.blocks.",
             .attention_norm = "norm_attn_norm.norm_1",
             .attention = "norm_attn_norm.attn",
             .query = "Wqkv.q",
             .key = "Wqkv.k",
             .value = "Wqkv.v",
             .out = "out_proj",
             .mlp_norm = "norm_attn_norm.norm_2",
             .last_norm = "transformer.norm_f"};
  t.experts.gated = true;
  t.experts.balance = 0.05;
  t.experts.called = "ffn", t.experts.router = "router.layer", t.experts.expert = "experts.mlp";
  t.experts.up = "v1";
  t.experts.in_rows = t.parts_joined = true;
  return t;
}

}  // namespace decoder_detail

}  // namespace cfp::families
