// Reads the configuration files public models have.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/file/json_reader.hpp>
#include <cfp/file/whole_file.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cfp::inline v0_1::families {

/// A configuration file. What is wrong with it is thrown as bad_input naming file, key and value.
class config_file {
 public:
  std::string path;

  /// A file, or a directory that holds a config.json.
  explicit config_file(const std::string& from)
      : path(std::filesystem::is_directory(from) ? from + "/config.json" : from) {
    const std::optional<std::string> text = detail::whole_file(path);
    if (!text) throw bad_input(path + ": cannot be read");
    json_ = reader(*text, path).object();
  }

  bad_input fail(const std::string& key, const std::string& why) const {
    const std::string quoted = nlohmann::json(key).dump();  // in one line, whatever a key is made of
    return bad_input(path + ": key '" + quoted.substr(1, quoted.size() - 2) + "' " + why);
  }
  /// Whether a key says something; "attn_config.alibi" is that of an object in the file.
  bool has(const std::string& key) const { return find(key) != nullptr; }

  /// Those that say something.
  std::vector<std::string> keys() const {
    std::vector<std::string> out;
    for (const auto& [key, value] : json_.items())
      if (!value.is_null()) out.push_back(key);
    return out;
  }
  /// Of a key that says something.
  const nlohmann::json& at(const std::string& key) const { return *find(key); }

  long integer(const std::string& key) const {
    if (!has(key)) throw fail(key, "is missing");
    const nlohmann::json& n = at(key);
    if (!n.is_number_integer()) throw fail(key, "must be a whole number, is " + shown(n));
    if (n < 1 || n > 1'000'000'000) throw fail(key, "must be at least 1 and at most 1e9, is " + shown(n));
    return n;
  }
  double number(const std::string& key) const {
    if (!has(key)) throw fail(key, "is missing");
    if (!at(key).is_number()) throw fail(key, "must be a number, is " + shown(at(key)));
    if (!(at(key).get<double>() > 0)) throw fail(key, "must be a positive number, is " + shown(at(key)));
    return at(key);
  }
  double number(const std::string& key, double otherwise) const { return has(key) ? number(key) : otherwise; }
  /// A share from 0 up to but not including 1; 0 where it does not stand.
  double share(const std::string& key) const {
    if (!has(key)) return 0;
    const nlohmann::json& x = at(key);
    if (!x.is_number() || !(x.get<double>() >= 0 && x.get<double>() < 1))
      throw fail(key, "must be a number from 0 up to but not including 1, is " + shown(x));
    return x;
  }
  bool flag(const std::string& key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_boolean()) throw fail(key, "must be true or false, is " + shown(at(key)));
    return at(key);
  }
  /// Where the key stands, it must say this.
  void only(const std::string& key, const nlohmann::json& value) const {
    if (has(key) && at(key) != value) throw fail(key, "must be " + value.dump() + ", is " + shown(at(key)));
  }
  /// "gpt2", "llama", ...: one of those a program knows.
  std::string type(const std::vector<std::string>& known) const {
    if (!has("model_type")) throw fail("model_type", "is missing");
    std::string list;
    for (const std::string& k : known) {
      if (json_.at("model_type") == k) return k;
      list.append(list.empty() ? "\"" : " or \"").append(k).append("\"");
    }
    throw fail("model_type", "must be " + list + ", is " + shown(json_.at("model_type")));
  }
  void divides(const std::string& key, long part, const char* of, long whole) const {
    if (whole % part != 0)
      throw fail(key, "must divide " + std::string(of) + " " + std::to_string(whole) + ", is " + std::to_string(part));
  }

 private:
  const nlohmann::json* find(const std::string& key) const {
    const nlohmann::json* at = &json_;
    for (std::size_t from = 0;;) {
      const std::size_t dot = key.find('.', from);
      const auto found = at->find(key.substr(from, dot - from));  // in what is no object nothing is
      if (found == at->end() || found->is_null()) return nullptr;
      at = &*found;
      if (dot == std::string::npos) return at;
      from = dot + 1;
    }
  }
  struct reader : detail::json_reader<bad_input> {
    reader(const std::string& text, const std::string& where) : json_reader(text, where) {}
    json object() const {
      json all = parsed();
      if (!all.is_object()) refuse("must be an object, is " + detail::shown(all));
      return all;
    }
  };
  static std::string shown(const nlohmann::json& value) { return detail::shown(value); }

  nlohmann::json json_;
};

}  // namespace cfp::families
