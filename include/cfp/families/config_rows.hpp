// What keys of a configuration file say of a model: rows of a table.
#pragma once

#include <cfp/core/text.hpp>
#include <cfp/families/config_file.hpp>
#include <cfp/families/transformer.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

namespace cfp::inline v0_1::families {

/// A key, and what it says of a description; "attn_config.alibi" is one of an object in the file. Throws bad_input
/// where it says something else.
template <class Form>
struct row_of {
  const char* key;
  void (*read)(const config_file&, const char* key, Form&);
};
using config_row = row_of<transformer>;

namespace detail {
template <class Member>
struct of_member;
template <class Form, class Number>
struct of_member<Number Form::*> {
  using form = Form;
};
template <auto To>
using form_of = typename of_member<decltype(To)>::form;
}  // namespace detail

/// A whole number that must be there, or may be.
template <auto To>
void size(const config_file& f, const char* key, detail::form_of<To>& t) {
  t.*To = f.integer(key);
}
template <auto To>
void maybe_size(const config_file& f, const char* key, detail::form_of<To>& t) {
  if (f.has(key)) t.*To = f.integer(key);
}
/// A positive number.
template <auto To>
void real(const config_file& f, const char* key, detail::form_of<To>& t) {
  t.*To = f.number(key);
}
template <auto To>
void maybe_real(const config_file& f, const char* key, detail::form_of<To>& t) {
  t.*To = f.number(key, t.*To);
}
/// A share of elements that falls out.
template <auto First, auto... To>
void share(const config_file& f, const char* key, detail::form_of<First>& t) {
  t.*First = f.share(key);
  ((t.*To = f.share(key)), ...);
}
template <auto First, auto... To>
void flag(const config_file& f, const char* key, detail::form_of<First>& t) {
  t.*First = f.flag(key, t.*First);
  ((t.*To = f.flag(key, t.*To)), ...);
}
/// A key that changes nothing here.
template <class Form>
void ignored(const config_file&, const char*, Form&) {}
/// A feature that is not modelled: if the key stands it must say so.
template <class Form>
void absent(const config_file& f, const char* key, Form&) {
  f.only(key, false);
}
template <class Form>
void present(const config_file& f, const char* key, Form&) {
  f.only(key, true);
}
template <class Form>
void nothing(const config_file& f, const char* key, Form&) {
  if (f.has(key)) throw f.fail(key, "is not modelled, and must be null, is " + f.at(key).dump().substr(0, 100));
}
template <class Form>
void zero(const config_file& f, const char* key, Form&) {
  if (f.has(key) && f.at(key) != 0) throw f.fail(key, "is not modelled, and must be 0, is " + f.at(key).dump());
}
/// One of these words or numbers.
template <lit... Words, class Form>
void says(const config_file& f, const char* key, Form&) {
  if (!f.has(key) || ((f.at(key) == std::string(Words.view())) || ...)) return;
  std::string list;
  ((list += (list.empty() ? "\"" : " or \"") + std::string(Words.view()) + "\""), ...);
  throw f.fail(key, "must be " + list + ", is " + f.at(key).dump().substr(0, 100));
}
template <long Number, class Form>
void is(const config_file& f, const char* key, Form&) {
  f.only(key, Number);
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

/// The rows of a family: those it shares with others, its own. None of a key may stand twice.
template <class Form>
using rows_of = std::array<std::span<const row_of<Form>>, 4>;
using config_rows = rows_of<transformer>;

/// The key that a row reads a member by, as families call it differently; `otherwise` if none does.
template <auto To>
const char* key_of(const rows_of<detail::form_of<To>>& all, const char* otherwise) {
  for (const auto& rows : all)
    for (const auto& r : rows)
      if (r.read == &size<To> || r.read == &maybe_size<To>) return r.key;
  return otherwise;
}

/// Reads all keys by the rows of a family. Throws bad_input for one that they do not know, unless it says nothing of
/// what is computed.
template <class Form>
void read_rows(const config_file& f, const rows_of<Form>& all, Form& t) {
  for (const auto& rows : all)
    for (const row_of<Form>& r : rows) r.read(f, r.key, t);
  const auto any_row = [&](const auto& holds) {
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& rows) { return std::any_of(rows.begin(), rows.end(), holds); });
  };
  const auto check = [&](const std::string& key, const nlohmann::json& value) {
    if (!any_row([&](const row_of<Form>& r) { return key == r.key; }))
      throw f.fail(key, "says " + value.dump().substr(0, 100) +
                            ", which nobody here knows of this family; leave it out if it changes nothing of what is "
                            "computed");
  };
  for (const std::string& key : f.keys()) {
    if (key.starts_with("_") || key.starts_with("summary_") ||
        std::find(std::begin(said_of_files), std::end(said_of_files), key) != std::end(said_of_files))
      continue;
    if (key.find('.') != std::string::npos)  // those of rows mean members
      throw f.fail(key, "has a dot, as no key here; a member of an object stands in that object");
    const nlohmann::json& value = f.at(key);
    if (!any_row([&](const row_of<Form>& r) { return std::string_view(r.key).starts_with(key + "."); })) {
      check(key, value);
      continue;
    }
    if (!value.is_object()) throw f.fail(key, "must be an object, is " + value.dump().substr(0, 100));
    for (const auto& [member, said] : value.items())
      if (!said.is_null()) check(key + "." + member, said);
  }
}

/// Throws bad_input for more layers than anybody plans for: graphs of all of them would fill memory first.
template <auto Layers>
void check_layers(const config_file& f, const rows_of<detail::form_of<Layers>>& rows, long layers) {
  if (layers > 10'000)
    throw f.fail(key_of<Layers>(rows, "num_hidden_layers"), "must be at most 10000, is " + std::to_string(layers));
}

/// Throws bad_input where heads do not divide what they are of.
inline void check_heads(const config_file& f, const config_rows& rows, const transformer& t) {
  const char *const heads = key_of<&transformer::heads>(rows, "num_attention_heads"), *const width =
                                                                                          key_of<&transformer::width>(
                                                                                              rows, "hidden_size");
  if (t.depth == 0) f.divides(heads, t.heads, width, t.width);
  if (t.kv_heads > 0)
    f.divides(key_of<&transformer::kv_heads>(rows, "num_key_value_heads"), t.kv_heads, heads, t.heads);
  if (!t.is_turned()) return;
  const bool latent = t.latent.keys > 0;
  const long depth = latent ? t.latent.turned : t.head_depth(), turned = t.turned > 0 ? t.turned : depth;
  if (turned % 2 != 0 || turned > depth || depth % (turned / 2) != 0)
    throw f.fail(latent              ? "qk_rope_head_dim"
                 : f.has("head_dim") ? "head_dim"
                                     : width,
                 "must give every head an even number of dimensions for the rotary embedding, that divides the "
                 "head's: it turns " +
                     std::to_string(turned) + " of " + std::to_string(depth));
  if (!latent && turned < depth && t.turns.score_factor != 1)
    throw f.fail("rope_scaling", "makes scores sharper, which is modelled where all numbers of a head turn: it turns " +
                                     std::to_string(turned) + " of " + std::to_string(depth));
}

}  // namespace cfp::families
