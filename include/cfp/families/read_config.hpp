// What configuration files say of each family of models.
#pragma once

#include <cfp/families/config_file.hpp>
#include <cfp/families/moe.hpp>
#include <cfp/families/t5.hpp>

namespace cfp::inline v0_1::families {

inline gpt_config read_gpt(const config_file& f) {
  gpt_config c;
  c.layers = f.integer("n_layer");
  c.heads = f.integer("n_head");
  c.width = f.integer("n_embd");
  c.vocabulary = f.integer("vocab_size");
  c.positions = f.integer("n_positions");
  c.epsilon = f.number("layer_norm_epsilon");
  c.deviation = f.number("initializer_range", c.deviation);
  f.divides("n_head", c.heads, "n_embd", c.width);
  if (f.has("n_inner")) c.hidden = f.integer("n_inner");
  c.embedding_dropout = f.share("embd_pdrop");
  c.attention_dropout = f.share("attn_pdrop");
  c.residual_dropout = f.share("resid_pdrop");
  f.only("activation_function", "gelu_new");
  f.only("tie_word_embeddings", true);
  return c;
}

inline llama_config read_llama(const config_file& f) {
  llama_config c;
  c.layers = f.integer("num_hidden_layers");
  c.heads = f.integer("num_attention_heads");
  c.kv_heads = f.has("num_key_value_heads") ? f.integer("num_key_value_heads") : c.heads;
  c.width = f.integer("hidden_size");
  c.hidden = f.integer("intermediate_size");
  c.vocabulary = f.integer("vocab_size");
  c.positions = f.integer("max_position_embeddings");
  c.epsilon = f.number("rms_norm_eps");
  c.rope = f.number("rope_theta", c.rope);
  c.deviation = f.number("initializer_range", c.deviation);
  c.tied = f.flag("tie_word_embeddings", false);
  f.divides("num_attention_heads", c.heads, "hidden_size", c.width);
  f.divides("num_key_value_heads", c.kv_heads, "num_attention_heads", c.heads);
  if (c.width / c.heads % 2 != 0)
    throw f.fail("hidden_size", "must give every head an even number of dimensions for the rotary embedding, gives " +
                                    std::to_string(c.width / c.heads));
  f.only("hidden_act", "silu");
  return c;
}

inline experts_config read_experts(const config_file& f) {
  const bool mixtral = f.type({"mixtral", "gshard"}) == "mixtral";
  const char* const count = mixtral ? "num_local_experts" : "num_experts";
  experts_config e;
  e.count = f.integer(count);
  e.choices = f.integer("num_experts_per_tok");
  e.hidden = mixtral ? f.integer("intermediate_size") : read_gpt(f).inner();
  e.capacity_factor = f.number("capacity_factor", static_cast<double>(e.choices));
  e.balance = f.number("router_aux_loss_coef", e.balance);
  if (f.has("group_size")) e.group = f.integer("group_size");
  e.gated = mixtral;
  if (e.choices > e.count)
    throw f.fail("num_experts_per_tok", "must be at most " + std::string(count) + " " + std::to_string(e.count) +
                                            ", is " + std::to_string(e.choices));
  return e;
}

inline t5_config read_t5(const config_file& f) {
  t5_config c;
  c.layers = f.integer("num_layers");
  c.heads = f.integer("num_heads");
  c.depth = f.integer("d_kv");
  c.width = f.integer("d_model");
  c.hidden = f.integer("d_ff");
  c.vocabulary = f.integer("vocab_size");
  c.buckets = f.integer("relative_attention_num_buckets");
  if (f.has("relative_attention_max_distance")) c.farthest = f.integer("relative_attention_max_distance");
  c.epsilon = f.number("layer_norm_epsilon");
  c.dropout = f.share("dropout_rate");
  if (c.buckets < 4 || c.buckets % 4 != 0)
    throw f.fail("relative_attention_num_buckets", "must be a multiple of 4, is " + std::to_string(c.buckets));
  if (c.farthest <= c.buckets / 2)
    throw f.fail("relative_attention_max_distance", "must be above half the buckets, " + std::to_string(c.buckets / 2) +
                                                        ", is " + std::to_string(c.farthest));
  f.only("feed_forward_proj", "relu");
  f.only("tie_word_embeddings", true);
  return c;
}

}  // namespace cfp::families
