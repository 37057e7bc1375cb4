// The table of model families: from any configuration file a model of the sizes asked for, and what its inputs are made
// of.
#pragma once

#include <cfp/families/read_config.hpp>
#include <cfp/families/text_layout.hpp>

namespace cfp::inline v0_1::families {

/// Sizes given to a model of a configuration.
struct model_sizes {
  long batch = 8, sequence = 1024;
  long layers = 0;      ///< 0: those of the configuration
  bool folded = false;  ///< of many equal layers few are written (`repeat_layers`): to be planned, not run
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
};

/// Tokens routed together: whole sequences, so few that there are groups to split.
inline long routed_together(const experts_config& e, long batch, long sequence, long least_groups) {
  return std::max(1l, std::min(e.group / sequence, batch / least_groups)) * sequence;
}

namespace detail {

inline std::string sizes_text(std::initializer_list<std::pair<const char*, long>> sizes) {
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

inline void build_gpt(const config_file& file, const model_sizes& asked, built_model& out) {
  const gpt_config c = resized(read_gpt(file), asked, out);
  fits("n_positions", c.sequence, c.positions, file);
  out.sizes = sizes_text({{"layers", c.layers},
                          {"width", c.width},
                          {"hidden", c.inner()},
                          {"heads", c.heads},
                          {"vocabulary", c.vocabulary},
                          {"batch", c.batch},
                          {"sequence", c.sequence}});
  out.forward = gpt(c);
}

inline void build_llama(const config_file& file, const model_sizes& asked, built_model& out) {
  const llama_config c = resized(read_llama(file), asked, out);
  fits("max_position_embeddings", c.sequence, c.positions, file);
  out.sizes = sizes_text({{"layers", c.layers},
                          {"width", c.width},
                          {"hidden", c.hidden},
                          {"heads", c.heads},
                          {"kv_heads", c.kv_heads},
                          {"vocabulary", c.vocabulary},
                          {"batch", c.batch},
                          {"sequence", c.sequence}});
  out.inputs.positions = false;
  out.forward = llama(c);
}

inline void build_experts(const config_file& file, const model_sizes& asked, built_model& out) {
  const bool is_mixtral = out.family == "mixtral";
  const gpt_config g = is_mixtral ? gpt_config{} : resized(read_gpt(file), asked, out);
  const llama_config l = is_mixtral ? resized(read_llama(file), asked, out) : llama_config{};
  experts_config e = read_experts(file);
  fits(is_mixtral ? "max_position_embeddings" : "n_positions", asked.sequence, is_mixtral ? l.positions : g.positions,
       file);
  e.group = routed_together(e, asked.batch, asked.sequence, asked.least_groups);
  if (asked.batch * asked.sequence % e.group != 0)
    throw bad_input("a batch of " + std::to_string(asked.batch) + " sequences does not make whole groups of " +
                    std::to_string(e.group / asked.sequence) + " (group_size of " + file.path + ")");
  out.sizes = sizes_text({{"layers", out.layers},
                          {"width", is_mixtral ? l.width : g.width},
                          {"heads", is_mixtral ? l.heads : g.heads},
                          {"experts", e.count},
                          {"choices", e.choices},
                          {"hidden", e.hidden},
                          {"vocabulary", out.vocabulary},
                          {"batch", asked.batch},
                          {"sequence", asked.sequence},
                          {"group", e.group}});
  out.inputs.positions = !is_mixtral;
  out.forward = is_mixtral ? mixtral(l, e) : gshard(g, e);
}

inline void build_t5(const config_file& file, const model_sizes& asked, built_model& out) {
  const t5_config c = resized(read_t5(file), asked, out);
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

struct family {
  const char* type;  ///< model_type of its configuration files
  void (*build)(const config_file&, const model_sizes&, built_model&);
};
inline constexpr family all_families[] = {{"gpt2", &build_gpt},
                                          {"llama", &build_llama},
                                          {"mixtral", &build_experts},
                                          {"gshard", &build_experts},
                                          {"t5", &build_t5}};

}  // namespace detail

/// The model of a configuration file, by its model_type. Throws bad_input for what does not fit, naming file and key.
inline built_model build_model(const config_file& file, const model_sizes& sizes) {
  std::vector<std::string> types;
  for (const detail::family& f : detail::all_families) types.push_back(f.type);
  built_model out;
  out.family = file.type(types);
  for (const detail::family& f : detail::all_families)
    if (out.family == f.type) f.build(file, sizes, out);
  return out;
}

}  // namespace cfp::families
