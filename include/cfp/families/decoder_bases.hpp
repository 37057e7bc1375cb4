// What the models of a family of decoders have in common, and what their parameters are called in public checkpoints.
#pragma once

#include <cfp/families/transformer.hpp>

namespace cfp::inline v0_1::families {

namespace decoder_detail {

constexpr transformer gpt2_base() {
  transformer t;
  t.projection = projection_kind::joined;
  t.in_out = t.attention_bias = t.out_bias = t.mlp_bias = true;
  t.names = {.words = "wte",
             .positions = "wpe",
             .layer = "h.",
             .attention_norm = "ln_1",
             .attention = "attn",
             .joined = "c_attn",
             .out = "c_proj",
             .mlp_norm = "ln_2",
             .mlp = "mlp",
             .up = "c_fc",
             .down = "c_proj",
             .last_norm = "ln_f"};
  return t;
}
constexpr transformer opt_base() {
  transformer t;
  t.activation = activation_kind::relu;
  t.attention_bias = t.out_bias = t.mlp_bias = true;
  t.skipped_positions = 2;
  t.names = {.words = "model.decoder.embed_tokens",
             .positions = "model.decoder.embed_positions",
             .layer = "model.decoder.layers.",
             .attention_norm = "self_attn_layer_norm",
             .out = "out_proj",
             .mlp_norm = "final_layer_norm",
             .mlp = "",
             .up = "fc1",
             .down = "fc2",
             .last_norm = "model.decoder.final_layer_norm"};
  return t;
}
constexpr transformer neo_base() {
  transformer t;
  t.out_bias = t.mlp_bias = true;
  t.score_scale = 1;
  t.window_period = t.period = 2, t.window_first = 1;
  t.names = {.words = "transformer.wte",
             .positions = "transformer.wpe",
             .layer = "transformer.h.",
             .attention_norm = "ln_1",
             .attention = "attn.attention",
             .out = "out_proj",
             .mlp_norm = "ln_2",
             .up = "c_fc",
             .down = "c_proj",
             .last_norm = "transformer.ln_f"};
  return t;
}
constexpr transformer neox_base() {
  transformer t;
  t.layer = layer_kind::parallel;
  t.position = position_kind::rotary;
  t.projection = projection_kind::by_head;
  t.attention_bias = t.out_bias = t.mlp_bias = true;
  t.tied = false;
  t.names = {.words = "gpt_neox.embed_in",
             .layer = "gpt_neox.layers.",
             .attention = "attention",
             .joined = "query_key_value",
             .out = "dense",
             .up = "dense_h_to_4h",
             .down = "dense_4h_to_h",
             .last_norm = "gpt_neox.final_layer_norm",
             .head = "embed_out"};
  return t;
}
constexpr transformer gptj_base() {
  transformer t;
  t.layer = layer_kind::parallel_shared;
  t.position = position_kind::rotary_pairs;
  t.mlp_bias = t.head_bias = true;
  t.tied = false;
  t.names = {.words = "transformer.wte",
             .layer = "transformer.h.",
             .attention_norm = "ln_1",
             .attention = "attn",
             .out = "out_proj",
             .up = "fc_in",
             .down = "fc_out",
             .last_norm = "transformer.ln_f"};
  return t;
}
constexpr transformer bloom_base() {
  transformer t;
  t.position = position_kind::slopes;
  t.projection = projection_kind::by_head;
  t.attention_bias = t.out_bias = t.mlp_bias = t.word_norm = true;
  t.names = {.words = "word_embeddings",
             .word_norm = "word_embeddings_layernorm",
             .layer = "h.",
             .attention = "self_attention",
             .joined = "query_key_value",
             .out = "dense",
             .up = "dense_h_to_4h",
             .down = "dense_4h_to_h",
             .last_norm = "ln_f"};
  return t;
}
constexpr transformer falcon_base() {
  transformer t;
  t.layer = layer_kind::parallel_shared;
  t.position = position_kind::rotary;
  t.activation = activation_kind::gelu_exact;
  t.parts_joined = t.joined_by_group = true;
  t.positions = 2048;
  t.names = {.words = "transformer.word_embeddings",
             .layer = "transformer.h.",
             .attention = "self_attention",
             .query = "query_key_value.q",
             .key = "query_key_value.k",
             .value = "query_key_value.v",
             .out = "dense",
             .up = "dense_h_to_4h",
             .down = "dense_4h_to_h",
             .last_norm = "transformer.ln_f"};
  return t;
}
constexpr transformer mpt_base() {
  transformer t;
  t.norm = norm_kind::layer_unbiased;
  t.position = position_kind::slopes;
  t.projection = projection_kind::joined;
  t.activation = activation_kind::gelu_exact;
  t.names = {.words = "transformer.wte",
             .layer = "transformer.blocks.",
             .attention_norm = "norm_1",
             .attention = "attn",
             .joined = "Wqkv",
             .out = "out_proj",
             .mlp_norm = "norm_2",
             .mlp = "ffn",
             .up = "up_proj",
             .down = "down_proj",
             .last_norm = "transformer.norm_f"};
  return t;
}
constexpr transformer llama_base() {
  transformer t;
  t.norm = norm_kind::rms;
  t.position = position_kind::rotary;
  t.activation = activation_kind::gated_silu;
  t.tied = false;
  return t;
}
constexpr transformer qwen2_base() {
  transformer t = llama_base();
  t.attention_bias = true;
  return t;
}
constexpr transformer qwen3_base() {
  transformer t = llama_base();
  t.query_norm = query_norm_kind::of_head;
  return t;
}
constexpr transformer gemma_base() {
  transformer t = llama_base();
  t.norm = norm_kind::rms_plus_one;
  t.activation = activation_kind::gated_gelu;
  t.tied = true;
  return t;
}
constexpr transformer gemma2_base() {
  transformer t = gemma_base();
  t.layer = layer_kind::norm_around;
  t.window_period = t.period = 2;
  t.names.behind_attention = "post_attention_layernorm";
  t.names.mlp_norm = "pre_feedforward_layernorm", t.names.behind_mlp = "post_feedforward_layernorm";
  return t;
}
constexpr transformer phi_base() {
  transformer t;
  t.layer = layer_kind::parallel_shared;
  t.position = position_kind::rotary;
  t.attention_bias = t.out_bias = t.mlp_bias = t.head_bias = true;
  t.tied = false;
  t.names.out = "dense", t.names.up = "fc1", t.names.down = "fc2", t.names.last_norm = "model.final_layernorm";
  return t;
}
constexpr transformer phi3_base() {
  transformer t = llama_base();
  t.parts_joined = true;
  t.names.query = "qkv_proj.q", t.names.key = "qkv_proj.k", t.names.value = "qkv_proj.v";
  t.names.gate = "gate_up_proj.gate", t.names.up = "gate_up_proj.up";
  return t;
}
constexpr transformer stablelm_base() {
  transformer t = llama_base();
  t.norm = norm_kind::layer;
  return t;
}
constexpr transformer olmo2_base() {
  transformer t = llama_base();
  t.layer = layer_kind::norm_behind;
  t.query_norm = query_norm_kind::whole;
  t.names.behind_attention = "post_attention_layernorm", t.names.behind_mlp = "post_feedforward_layernorm";
  return t;
}
constexpr transformer cohere_base() {
  transformer t = llama_base();
  t.norm = norm_kind::layer_unbiased;
  t.layer = layer_kind::parallel_shared;
  t.position = position_kind::rotary_pairs;
  t.tied = true;
  return t;
}

}  // namespace decoder_detail

/// GPT-2 of its published size, but for the vocabulary, which is padded to a multiple of 128.
constexpr transformer gpt2() { return decoder_detail::gpt2_base(); }

}  // namespace cfp::families
