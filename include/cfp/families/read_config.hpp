// What configuration files say of T5: rows of a table, as for others (decoder_families.hpp).
#pragma once

#include <cfp/families/decoder_families.hpp>
#include <cfp/families/t5.hpp>

#include <string>

namespace cfp::inline v0_1::families {

namespace detail {

/// What the feed-forward layers compute: "relu", or as of version 1.1 "gated-gelu", which is that in tanh form.
inline void feed_forward(const config_file& f, const char* key, t5_config& c) {
  says<"relu", "gated-gelu">(f, key, c);
  c.gated = f.has(key) && f.at(key) == "gated-gelu";
}
// The same again, as newer files have it. They stand behind the key above.
inline void gated_act(const config_file& f, const char* key, t5_config& c) { f.only(key, c.gated); }
inline void dense_act(const config_file& f, const char* key, t5_config& c) {
  f.only(key, c.gated ? "gelu_new" : "relu");
}
inline void as_many_layers(const config_file& f, const char* key, t5_config& c) { f.only(key, c.layers); }

inline constexpr row_of<t5_config> t5_rows[] = {{"num_layers", size<&t5_config::layers>},
                                                {"num_decoder_layers", as_many_layers},
                                                {"num_heads", size<&t5_config::heads>},
                                                {"d_kv", size<&t5_config::depth>},
                                                {"d_model", size<&t5_config::width>},
                                                {"d_ff", size<&t5_config::hidden>},
                                                {"vocab_size", size<&t5_config::vocabulary>},
                                                {"relative_attention_num_buckets", size<&t5_config::buckets>},
                                                {"relative_attention_max_distance", maybe_size<&t5_config::farthest>},
                                                {"layer_norm_epsilon", real<&t5_config::epsilon>},
                                                {"dropout_rate", share<&t5_config::dropout>},
                                                {"feed_forward_proj", feed_forward},
                                                {"is_gated_act", gated_act},
                                                {"dense_act_fn", dense_act},
                                                {"tie_word_embeddings", flag<&t5_config::tied>},
                                                {"is_encoder_decoder", present},
                                                {"initializer_factor", is<1>},
                                                {"n_positions", ignored},  // distances have no end
                                                {"decoder_start_token_id", ignored},
                                                {"classifier_dropout", ignored}};

}  // namespace detail

inline t5_config read_t5(const config_file& f) {
  t5_config c;
  const rows_of<t5_config> rows{detail::t5_rows};
  read_rows(f, rows, c);
  check_layers<&t5_config::layers>(f, rows, c.layers);
  if (c.buckets < 4 || c.buckets % 4 != 0)
    throw f.fail("relative_attention_num_buckets", "must be a multiple of 4, is " + std::to_string(c.buckets));
  if (c.farthest <= c.buckets / 2)
    throw f.fail("relative_attention_max_distance", "must be above half the buckets, " + std::to_string(c.buckets / 2) +
                                                        ", is " + std::to_string(c.farthest));
  return c;
}

}  // namespace cfp::families
