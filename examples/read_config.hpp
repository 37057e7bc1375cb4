// Reads the configuration files public models have.
#pragma once

#include "moe_model.hpp"
#include "t5_model.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <stdexcept>

/// Bad input: one sentence for stderr; the program ends with exit code 2.
struct bad_input : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The path of a file of examples/FOLDER that is asked for by name, or the path given. Throws bad_input for one that is no file.
inline std::string carried_file(const std::string& folder, const std::string& option, const std::string& asked, bool* carried = nullptr) {
  namespace fs = std::filesystem;
  const fs::path all = fs::path(CFP_SOURCE_DIR) / "examples" / folder, named = all / (asked + ".json");
  const bool by_name = asked.find('/') == std::string::npos && fs::is_regular_file(named);
  if (carried != nullptr) *carried = by_name;
  if (by_name) return named;
  if (fs::is_regular_file(asked)) return asked;
  std::vector<std::string> names;
  for (const auto& f : fs::directory_iterator(all)) names.push_back(f.path().stem());
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  throw bad_input(asked + ": cannot be read; give " + option + " a file or one of " + list);
}

/// A configuration file. What is wrong with it is thrown as bad_input naming file, key and value.
class config_file {
 public:
  bool carried = false;  ///< one of examples/models, asked for by name
  std::string path;

  /// The name of a model in examples/models, or a path.
  explicit config_file(const std::string& model) : path(carried_file("models", "--model", model, &carried)) {
    std::ifstream file(path);
    try {
      json_ = nlohmann::json::parse(file);
    } catch (const nlohmann::json::exception& e) {
      throw bad_input(path + ": is no JSON: " + e.what());
    }
  }

  bad_input fail(const std::string& key, const std::string& why) const { return bad_input(path + ": key '" + key + "' " + why); }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key) && !json_.at(key).is_null(); }

  long integer(const char* key) const {
    if (!has(key)) throw fail(key, "is missing");
    if (!json_.at(key).is_number_integer()) throw fail(key, "must be a whole number, is " + json_.at(key).dump());
    const long n = json_.at(key);
    if (n < 1 || n > 1'000'000'000) throw fail(key, "must be at least 1 and below 1e9, is " + std::to_string(n));
    return n;
  }
  double number(const char* key) const {
    if (!has(key)) throw fail(key, "is missing");
    if (!json_.at(key).is_number()) throw fail(key, "must be a number, is " + json_.at(key).dump());
    if (!(json_.at(key) > 0)) throw fail(key, "must be a positive number, is " + json_.at(key).dump());
    return json_.at(key);
  }
  double number(const char* key, double otherwise) const { return has(key) ? number(key) : otherwise; }
  /// A share from 0 up to but not including 1; 0 where it does not stand.
  double share(const char* key) const {
    if (!has(key)) return 0;
    const nlohmann::json& x = json_.at(key);
    if (!x.is_number() || !(x >= 0 && x < 1)) throw fail(key, "must be a number from 0 up to but not including 1, is " + x.dump());
    return x;
  }
  bool flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!json_.at(key).is_boolean()) throw fail(key, "must be true or false, is " + json_.at(key).dump());
    return json_.at(key);
  }
  /// Where the key stands, it must say this.
  void only(const char* key, const nlohmann::json& value) const {
    if (has(key) && json_.at(key) != value) throw fail(key, "must be " + value.dump() + ", is " + json_.at(key).dump());
  }
  /// "gpt2", "llama", ...: one of those a program knows.
  std::string type(const std::vector<std::string>& known) const {
    if (!has("model_type")) throw fail("model_type", "is missing");
    std::string list;
    for (const std::string& k : known) {
      if (json_.at("model_type") == k) return k;
      list.append(list.empty() ? "\"" : " or \"").append(k).append("\"");
    }
    throw fail("model_type", "must be " + list + ", is " + json_.at("model_type").dump());
  }
  void divides(const char* key, long part, const char* of, long whole) const {
    if (whole % part != 0) throw fail(key, "must divide " + std::string(of) + " " + std::to_string(whole) + ", is " + std::to_string(part));
  }

 private:
  nlohmann::json json_;
};

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
    throw f.fail("hidden_size", "must give every head an even number of dimensions for the rotary embedding, gives " + std::to_string(c.width / c.heads));
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
    throw f.fail("num_experts_per_tok", "must be at most " + std::string(count) + " " + std::to_string(e.count) + ", is " + std::to_string(e.choices));
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
  if (c.buckets < 4 || c.buckets % 4 != 0) throw f.fail("relative_attention_num_buckets", "must be a multiple of 4, is " + std::to_string(c.buckets));
  if (c.farthest <= c.buckets / 2)
    throw f.fail("relative_attention_max_distance", "must be above half the buckets, " + std::to_string(c.buckets / 2) + ", is " + std::to_string(c.farthest));
  f.only("feed_forward_proj", "relu");
  f.only("tie_word_embeddings", true);
  return c;
}

/// Tokens routed together: whole sequences, so few that there are groups to split.
inline long routed_together(const experts_config& e, long batch, long sequence, long least_groups) {
  return std::max(1l, std::min(e.group / sequence, batch / least_groups)) * sequence;
}

/// Sizes given to a model of a configuration.
struct model_sizes {
  long batch = 8, sequence = 1024, layers = 0;  ///< layers 0: those of the configuration
  long least_groups = 1;                        ///< of sequences whose tokens are routed together
};

/// The forward graph of any configuration file, by its model_type.
inline cfp::graph read_model(const config_file& file, const model_sizes& sizes) {
  const std::string type = file.type({"gpt2", "llama", "mixtral", "gshard", "t5"});
  const auto sized = [&](auto c) {
    if (sizes.layers > 0) c.layers = sizes.layers;
    c.batch = sizes.batch;
    c.sequence = sizes.sequence;
    return c;
  };
  if (type == "gpt2") return gpt(sized(read_gpt(file)));
  if (type == "llama") return llama(sized(read_llama(file)));
  if (type == "t5") return t5(sized(read_t5(file)));
  experts_config e = read_experts(file);
  e.group = routed_together(e, sizes.batch, sizes.sequence, sizes.least_groups);
  return type == "gshard" ? gshard(sized(read_gpt(file)), e) : mixtral(sized(read_llama(file)), e);
}
