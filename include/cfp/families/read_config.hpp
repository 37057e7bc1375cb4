// What configuration files say of each family of models.
#pragma once

#include <cfp/families/config_file.hpp>
#include <cfp/families/decoder_families.hpp>
#include <cfp/families/t5.hpp>

namespace cfp::inline v0_1::families {

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
