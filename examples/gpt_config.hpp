// Reads the configuration files public GPT-2 models have.
#pragma once

#include "gpt_model.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>
#include <string>

/// Bad input: one sentence for stderr; the program ends with exit code 2.
struct bad_input : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads a configuration. Throws bad_input naming file, key and value.
inline gpt_config read_gpt_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw bad_input(path + ": cannot be read; give --model a configuration file or 'gpt2'");
  nlohmann::json j;
  try {
    j = nlohmann::json::parse(file);
  } catch (const nlohmann::json::exception& e) {
    throw bad_input(path + ": is no JSON: " + e.what());
  }
  const auto fail = [&](const std::string& key, const std::string& why) -> bad_input {
    return bad_input(path + ": key '" + key + "' " + why);
  };
  const auto has = [&](const char* key) { return j.is_object() && j.contains(key) && !j.at(key).is_null(); };
  const auto integer = [&](const char* key) -> long {
    if (!has(key)) throw fail(key, "is missing");
    if (!j.at(key).is_number_integer()) throw fail(key, "must be a whole number, is " + j.at(key).dump());
    const long n = j.at(key);
    if (n < 1 || n > 1'000'000'000) throw fail(key, "must be at least 1 and below 1e9, is " + std::to_string(n));
    return n;
  };
  if (!has("model_type")) throw fail("model_type", "is missing");
  if (j.at("model_type") != "gpt2") throw fail("model_type", "must be \"gpt2\", is " + j.at("model_type").dump());
  gpt_config c;
  c.layers = integer("n_layer");
  c.heads = integer("n_head");
  c.width = integer("n_embd");
  c.vocabulary = integer("vocab_size");
  c.positions = integer("n_positions");
  if (!has("layer_norm_epsilon")) throw fail("layer_norm_epsilon", "is missing");
  if (!j.at("layer_norm_epsilon").is_number()) throw fail("layer_norm_epsilon", "must be a number, is " + j.at("layer_norm_epsilon").dump());
  c.epsilon = j.at("layer_norm_epsilon");
  if (has("initializer_range")) {
    if (!j.at("initializer_range").is_number() || !(j.at("initializer_range") > 0))
      throw fail("initializer_range", "must be a positive number, is " + j.at("initializer_range").dump());
    c.deviation = j.at("initializer_range");
  }
  if (c.width % c.heads != 0)
    throw fail("n_head", "must divide n_embd " + std::to_string(c.width) + ", is " + std::to_string(c.heads));
  if (has("n_inner") && j.at("n_inner") != 4 * c.width) throw fail("n_inner", "must be null or 4 n_embd, is " + j.at("n_inner").dump());
  if (has("activation_function") && j.at("activation_function") != "gelu_new")
    throw fail("activation_function", "must be \"gelu_new\", is " + j.at("activation_function").dump());
  if (has("tie_word_embeddings") && j.at("tie_word_embeddings") != true)
    throw fail("tie_word_embeddings", "must be true, is " + j.at("tie_word_embeddings").dump());
  return c;
}
