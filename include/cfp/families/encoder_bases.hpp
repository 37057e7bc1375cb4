// What the models of a family of encoders have in common: see decoder_bases.hpp.
#pragma once

#include <cfp/families/transformer.hpp>

namespace cfp::inline v0_1::families {

namespace decoder_detail {

constexpr transformer bert_base() {
  transformer t;
  t.layer = layer_kind::norm_after;
  t.activation = activation_kind::gelu_exact;
  t.attention_bias = t.out_bias = t.mlp_bias = t.head_bias = true;
  t.word_norm = t.head_transform = t.sees_ahead = true;
  t.last_norm = false;
  t.names = {.words = "bert.embeddings.word_embeddings",
             .positions = "bert.embeddings.position_embeddings",
             .word_norm = "bert.embeddings.LayerNorm",
             .layer = "bert.encoder.layer.",
             .attention = "attention",
             .query = "self.query",
             .key = "self.key",
             .value = "self.value",
             .out = "output.dense",
             .behind_attention = "attention.output.LayerNorm",
             .mlp = "",
             .up = "intermediate.dense",
             .down = "output.dense",
             .behind_mlp = "output.LayerNorm",
             .head = "cls.predictions",
             .kinds = "bert.embeddings.token_type_embeddings",
             .transform = "transform.dense",
             .transform_norm = "transform.LayerNorm"};
  return t;
}
constexpr transformer roberta_base() {
  transformer t = bert_base();
  t.names.words = "roberta.embeddings.word_embeddings";
  t.names.positions = "roberta.embeddings.position_embeddings";
  t.names.word_norm = "roberta.embeddings.LayerNorm";
  t.names.kinds = "roberta.embeddings.token_type_embeddings";
  t.names.layer = "roberta.encoder.layer.";
  t.names.head = "lm_head", t.names.transform = "dense", t.names.transform_norm = "layer_norm";
  return t;
}
constexpr transformer vit_base() {
  transformer t;
  t.image.size = 224;
  t.activation = activation_kind::gelu_exact;
  t.attention_bias = t.out_bias = t.mlp_bias = t.head_bias = t.sees_ahead = true;
  t.tied = false;
  t.names = {.words = "vit.embeddings.patch_embeddings.projection",
             .positions = "vit.embeddings.position_embeddings",
             .layer = "vit.encoder.layer.",
             .attention_norm = "layernorm_before",
             .attention = "attention",
             .query = "attention.query",
             .key = "attention.key",
             .value = "attention.value",
             .out = "output.dense",
             .mlp_norm = "layernorm_after",
             .mlp = "",
             .up = "intermediate.dense",
             .down = "output.dense",
             .last_norm = "vit.layernorm",
             .head = "classifier",
             .first = "vit.embeddings.cls_token"};
  return t;
}

}  // namespace decoder_detail

}  // namespace cfp::families
