// The table of model families: from any configuration file a model of the sizes asked for, and what its inputs are made
// of.
#pragma once

#include <cfp/families/decoder.hpp>
#include <cfp/families/public_weights.hpp>
#include <cfp/families/read_config.hpp>
#include <cfp/families/text_layout.hpp>

namespace cfp::inline v0_1::families {

/// Sizes given to a model of a configuration.
struct model_sizes {
  long batch = 8, sequence = 1024;
  long layers = 0;      ///< 0: those of the configuration
  bool folded = false;  ///< of many equal layers few are written (`repeat_layers`): to be planned, not run
  long pieces = 0;      ///< in which attention takes the sequence (`transformer::pieces`)
  long vocabulary = 0;  ///< 0: that of the configuration, up to a multiple of `pad_to`
  long pad_to = 1;
  long least_groups = 1;  ///< of sequences whose tokens are routed together
};

/// A model of given sizes.
struct built_model {
  graph forward;
  std::string family;  ///< "gpt2"
  std::string sizes;   ///< "layers=2 width=768 ...": what tells it from others of its kind
  long layers = 0, vocabulary = 0, vocabulary_given = 0;
  text_layout inputs{};
  weight_layout weights{};  ///< where public checkpoints have them; none: by the graph's names and shapes
};

/// Tokens routed together: whole sequences, so few that there are groups to split.
inline long routed_together(const experts_form& e, long batch, long sequence, long least_groups) {
  return std::max(1l, std::min(e.group / sequence, batch / least_groups)) * sequence;
}

namespace detail {

inline std::string sizes_text(const std::vector<std::pair<const char*, long>>& sizes) {
  std::string out;
  for (const auto& [label, n] : sizes)
    out.append(out.empty() ? "" : " ").append(label).append(1, '=').append(std::to_string(n));
  return out;
}

inline void fits(const char* key, long sequence, long positions, const config_file& file) {
  if (sequence > positions)
    throw bad_input("sequences of " + std::to_string(sequence) + " tokens exceed " + key + " " +
                    std::to_string(positions) + " of " + file.path + "; take shorter ones");
}

// Gives a configuration the sizes asked for, and notes them.
template <class Config>
Config resized(Config c, const model_sizes& asked, built_model& out) {
  out.vocabulary_given = c.vocabulary;
  if (asked.layers > 0) c.layers = asked.layers;
  c.vocabulary =
      asked.vocabulary > 0 ? asked.vocabulary : (c.vocabulary + asked.pad_to - 1) / asked.pad_to * asked.pad_to;
  c.folded = asked.folded;
  c.batch = asked.batch;
  c.sequence = asked.sequence;
  out.layers = c.layers;
  out.vocabulary = c.vocabulary;
  return c;
}

// Tokens are routed in whole groups.
inline void group_tokens(transformer& t, const model_sizes& asked, const config_file& file) {
  experts_form& e = t.experts;
  e.group = routed_together(e, asked.batch, asked.sequence, asked.least_groups);
  if (asked.batch * asked.sequence % e.group != 0)
    throw bad_input("a batch of " + std::to_string(asked.batch) + " sequences does not make whole groups of " +
                    std::to_string(e.group / asked.sequence) + " (group_size of " + file.path + ")");
}

inline void build_decoder(const config_file& file, const model_sizes& asked, built_model& out) {
  transformer t = resized(read_decoder(file), asked, out);
  if (t.image.size > 0) {
    t.sequence = t.positions = t.image.rows();
    out.inputs.image_rows = t.sequence, out.inputs.image_numbers = t.image.numbers();
  } else if (t.sees_ahead) {  // it says which tokens were hidden; no byte of a text is 0
    t.ignored_targets = true;
    out.inputs.reads = {{"tokens", 0}, {"targets", 0}};
    out.inputs.hidden_as = 0;
  }
  if (t.token_kinds > 0)
    out.inputs.fixed["token_kinds"] = std::vector<std::int32_t>(static_cast<std::size_t>(t.batch * t.sequence), 0);
  if (t.position != position_kind::slopes)
    fits(file.has("n_positions") ? "n_positions" : "max_position_embeddings", t.sequence, t.positions, file);
  t.pieces = asked.pieces;
  const experts_form& e = t.experts;
  if (e.count > 0) group_tokens(t, asked, file);
  std::vector<std::pair<const char*, long>> sizes{{"layers", t.layers}, {"width", t.width}};
  if (e.count == 0) sizes.push_back({"hidden", t.inner()});
  sizes.push_back({"heads", t.heads});
  if (e.count == 0 && t.kv_heads > 0) sizes.push_back({"kv_heads", t.kv_heads});
  if (e.count > 0) sizes.insert(sizes.end(), {{"experts", e.count}, {"choices", e.choices}, {"hidden", e.hidden}});
  sizes.insert(sizes.end(), {{"vocabulary", t.vocabulary}, {"batch", t.batch}, {"sequence", t.sequence}});
  if (e.count > 0) sizes.push_back({"group", e.group});
  if (t.pieces > 0) sizes.push_back({"pieces", t.pieces});
  out.sizes = sizes_text(sizes);
  out.inputs.positions = t.position == position_kind::learned && t.image.size == 0;
  out.inputs.first_position = t.skipped_positions;
  out.weights = public_layout(t);
  out.forward = decoder(t);
}

inline void build_t5(const config_file& file, const model_sizes& asked, built_model& out) {
  const t5_config c = resized(read_t5(file), asked, out);
  if (asked.pieces > 0)
    throw bad_input("attention in pieces is that of decoders alone, " + file.path +
                    " has an encoder; leave the pieces out");
  out.sizes = sizes_text({{"layers", c.layers},
                          {"width", c.width},
                          {"hidden", c.hidden},
                          {"heads", c.heads},
                          {"vocabulary", c.vocabulary},
                          {"batch", c.batch},
                          {"sequence", c.sequence}});
  out.inputs.reads = {{"tokens", 0}, {"decoder_tokens", c.sequence}, {"targets", c.sequence + 1}};
  out.inputs.fixed = {{"distances", t5_buckets(c, true)}, {"decoder_distances", t5_buckets(c, false)}};
  out.inputs.positions = false;
  out.forward = t5(c);
}

}  // namespace detail

/// The model of a configuration file, by its model_type. Throws bad_input for what does not fit, naming file and key.
inline built_model build_model(const config_file& file, const model_sizes& sizes) {
  std::vector<std::string> types;
  for (const decoder_family& f : decoder_families) types.emplace_back(f.type);
  types.emplace_back("t5");
  built_model out;
  out.family = file.type(types);
  if (decoder_family_of(out.family) != nullptr) detail::build_decoder(file, sizes, out);
  else detail::build_t5(file, sizes, out);
  return out;
}

}  // namespace cfp::families
