// Which keys of the configurations of encoders say what, family by family.
#pragma once

#include <cfp/families/decoder_keys.hpp>

#include <string>

namespace cfp::inline v0_1::families {

namespace decoder_detail {

inline constexpr config_row encoder_keys[] = {
    {"num_hidden_layers", size<&form::layers>},
    {"num_attention_heads", size<&form::heads>},
    {"hidden_size", size<&form::width>},
    {"intermediate_size", size<&form::hidden>},
    {"hidden_act", activation},
    {"layer_norm_eps", real<&form::epsilon>},
    {"initializer_range", maybe_real<&form::deviation>},
    {"hidden_dropout_prob", share<&form::residual_dropout, &form::embedding_dropout>},
    {"attention_probs_dropout_prob", share<&form::attention_dropout>}};
inline constexpr config_row bert_own[] = {{"vocab_size", size<&form::vocabulary>},
                                          {"max_position_embeddings", size<&form::positions>},
                                          {"type_vocab_size", size<&form::token_kinds>},
                                          {"position_embedding_type", says<"absolute">},
                                          {"tie_word_embeddings", present},
                                          {"is_decoder", absent},
                                          {"add_cross_attention", absent},
                                          {"gradient_checkpointing", ignored},
                                          {"classifier_dropout", ignored}};

template <long image_form::*To>
void of_image(const config_file& f, const char* key, transformer& t) {
  t.image.*To = f.integer(key);
}
// As many as have a name, or a number.
inline void labels(const config_file& f, const char* key, transformer& t) {
  if (!f.has(key)) return;
  const long said = f.at(key).is_object() ? static_cast<long>(f.at(key).size()) : f.integer(key);
  if (f.has("num_labels") && f.integer("num_labels") != said)
    throw f.fail(key, "must have as many labels as num_labels says, " + std::to_string(f.integer("num_labels")) +
                          ", has " + std::to_string(said));
  t.vocabulary = said;
}
inline constexpr config_row vit_own[] = {{"image_size", of_image<&image_form::size>},
                                         {"patch_size", of_image<&image_form::patch>},
                                         {"num_channels", of_image<&image_form::channels>},
                                         {"qkv_bias", flag<&form::attention_bias>},
                                         {"num_labels", labels},
                                         {"id2label", labels},
                                         {"encoder_stride", ignored}};  // of pictures that are filled in

inline void vit_complete(const config_file& f, transformer& t) {
  if (t.image.size > 65536) throw f.fail("image_size", "must be at most 65536, is " + std::to_string(t.image.size));
  if (t.image.channels > 4096)
    throw f.fail("num_channels", "must be at most 4096, is " + std::to_string(t.image.channels));
  f.divides("patch_size", t.image.patch, "image_size", t.image.size);
  if (!f.has("num_labels") && !f.has("id2label")) throw f.fail("num_labels", "is missing, as id2label is");
  if (t.vocabulary < 1) throw f.fail("id2label", "must have a label or more");
}
// Positions begin behind that of padding, whose number is that of its token.
inline void roberta_complete(const config_file& f, transformer& t) {
  t.skipped_positions = f.has("pad_token_id") ? f.integer("pad_token_id") + 1 : 2;
  if (t.positions <= t.skipped_positions)
    throw f.fail("max_position_embeddings", "must be above pad_token_id and 1, is " + std::to_string(t.positions));
  t.positions -= t.skipped_positions;
}

}  // namespace decoder_detail

}  // namespace cfp::families
