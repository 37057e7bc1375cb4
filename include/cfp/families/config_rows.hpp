// What keys of a configuration file say of a decoder: rows of a table.
#pragma once

#include <cfp/families/config_file.hpp>
#include <cfp/families/transformer.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace cfp::inline v0_1::families {

/// A key, and what it says. Throws bad_input where it says something else.
struct config_row {
  const char* key;
  void (*read)(const config_file&, const char* key, transformer&);
};

/// A whole number that must be there, or may be.
template <long transformer::*To>
void size(const config_file& f, const char* key, transformer& t) {
  t.*To = f.integer(key);
}
template <long transformer::*To>
void maybe_size(const config_file& f, const char* key, transformer& t) {
  if (f.has(key)) t.*To = f.integer(key);
}
/// A positive number.
template <double transformer::*To>
void real(const config_file& f, const char* key, transformer& t) {
  t.*To = f.number(key);
}
template <double transformer::*To>
void maybe_real(const config_file& f, const char* key, transformer& t) {
  t.*To = f.number(key, t.*To);
}
/// A share of elements that falls out.
template <double transformer::*... To>
void share(const config_file& f, const char* key, transformer& t) {
  ((t.*To = f.share(key)), ...);
}
template <bool transformer::*... To>
void flag(const config_file& f, const char* key, transformer& t) {
  ((t.*To = f.flag(key, t.*To)), ...);
}
/// A key that changes nothing here.
inline void ignored(const config_file&, const char*, transformer&) {}
/// A feature that is not modelled: if the key stands it must say so.
inline void absent(const config_file& f, const char* key, transformer&) { f.only(key, false); }
inline void present(const config_file& f, const char* key, transformer&) { f.only(key, true); }
inline void nothing(const config_file& f, const char* key, transformer&) {
  if (f.has(key)) throw f.fail(key, "is not modelled, and must be null, is " + f.at(key).dump().substr(0, 100));
}
inline void zero(const config_file& f, const char* key, transformer&) {
  if (f.has(key) && f.at(key) != 0) throw f.fail(key, "is not modelled, and must be 0, is " + f.at(key).dump());
}

/// What an MLP computes between its weights, by the names configurations have for it.
inline void activation(const config_file& f, const char* key, transformer& t) {
  if (!f.has(key)) return;  // the family's own
  const std::string called = f.at(key).dump();
  const bool tanh = called == "\"gelu_new\"" || called == "\"gelu_pytorch_tanh\"" || called == "\"gelu_fast\"";
  if (t.gated()) {
    if (called == "\"silu\"") t.activation = activation_kind::gated_silu;
    else if (tanh) t.activation = activation_kind::gated_gelu;
    else throw f.fail(key, "must be \"silu\", \"gelu_new\" or \"gelu_pytorch_tanh\", is " + called);
  } else if (called == "\"gelu\"") {
    t.activation = activation_kind::gelu_exact;
  } else if (called == "\"relu\"") {
    t.activation = activation_kind::relu;
  } else if (tanh) {
    t.activation = activation_kind::gelu;
  } else {
    throw f.fail(key, "must be \"gelu\", \"gelu_new\", \"gelu_pytorch_tanh\" or \"relu\", is " + called);
  }
}
/// What a key says of an activation that a newer one supersedes, where some kind of GELU is meant by it.
inline void any_gelu(const config_file& f, const char* key, transformer&) {
  if (f.has(key) && f.at(key) != "gelu" && f.at(key) != "gelu_pytorch_tanh")
    throw f.fail(key, "must be \"gelu\" or \"gelu_pytorch_tanh\", is " + f.at(key).dump());
}
/// The part of a head that turns.
inline void turned_share(const config_file& f, const char* key, transformer& t) {
  if (!f.has(key)) return;
  t.turned = static_cast<long>(f.number(key) * static_cast<double>(t.head_depth()));
  if (t.turned < 2)
    throw f.fail(key, "must be such that 2 or more of a head's " + std::to_string(t.head_depth()) +
                          " numbers turn, is " + f.at(key).dump());
}

/// Keys of any configuration that say nothing of what is computed.
inline constexpr const char* said_of_files[] = {"model_type",
                                                "architectures",
                                                "torch_dtype",
                                                "dtype",
                                                "transformers_version",
                                                "use_cache",
                                                "bos_token_id",
                                                "eos_token_id",
                                                "pad_token_id",
                                                "unk_token_id",
                                                "sep_token_id",
                                                "cls_token_id",
                                                "auto_map",
                                                "tokenizer_class",
                                                "output_past",
                                                "id2label",
                                                "label2id",
                                                "source",
                                                "pretraining_tp",
                                                "prefix",
                                                "task_specific_params"};

/// Reads all keys by the rows of a family. Throws bad_input for one that they do not know, unless it says nothing of
/// what is computed.
inline void read_rows(const config_file& f, std::span<const config_row> shared, std::span<const config_row> own,
                      transformer& t) {
  for (const auto rows : {shared, own})
    for (const config_row& r : rows) r.read(f, r.key, t);
  const auto knows = [&](const std::string& key) {
    const auto is = [&](const config_row& r) { return key == r.key; };
    return std::any_of(shared.begin(), shared.end(), is) || std::any_of(own.begin(), own.end(), is) ||
           key.starts_with("_") || key.starts_with("summary_") ||
           std::find(std::begin(said_of_files), std::end(said_of_files), key) != std::end(said_of_files);
  };
  for (const std::string& key : f.keys())
    if (!knows(key))
      throw f.fail(key, "says " + f.at(key.c_str()).dump().substr(0, 100) +
                            ", which nobody here knows of this family; leave it out if it changes nothing of what is "
                            "computed");
}

/// Throws bad_input where heads do not divide what they are of. The keys are those that most families have.
inline void check_heads(const config_file& f, const transformer& t) {
  const auto key = [&](const char* usual, const char* other) { return f.has(usual) ? usual : other; };
  const char *const heads = key("num_attention_heads", key("n_head", "num_heads")), *const width =
                                                                                        key("hidden_size", "n_embd");
  if (t.depth == 0) f.divides(heads, t.heads, width, t.width);
  if (t.kv_heads > 0) f.divides(key("num_key_value_heads", "num_kv_heads"), t.kv_heads, heads, t.heads);
  if (t.position != position_kind::rotary && t.position != position_kind::rotary_pairs) return;
  const long turned = t.turned > 0 ? t.turned : t.head_depth();
  if (turned % 2 != 0 || turned > t.head_depth() || t.head_depth() % (turned / 2) != 0)
    throw f.fail(width,
                 "must give every head an even number of dimensions for the rotary embedding, that divides the "
                 "head's: it turns " +
                     std::to_string(turned) + " of " + std::to_string(t.head_depth()));
}

}  // namespace cfp::families
