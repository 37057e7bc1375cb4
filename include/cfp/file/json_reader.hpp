// What all readers of JSON files share: every mistake is one sentence that names the file and the place.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// A value in a sentence. Arrays and objects may be long, and as deep as they like.
inline std::string shown(const nlohmann::json& value) {
  return value.is_array() ? "an array" : value.is_object() ? "an object" : value.dump();
}

/// Throws `Error`, whose sentence begins with the file, if `where` names one.
template <class Error>
class json_reader {
 public:
  using json = nlohmann::json;

  json_reader(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

 protected:
  [[noreturn]] void refuse(const std::string& why) const {
    std::string line = where_.empty() ? why : where_ + ": " + why;
    for (char& c : line)  // of a key, for example
      if (static_cast<unsigned char>(c) < ' ') c = '?';
    throw Error(line);
  }

  /// The whole text. A key that stands twice in one object is refused: it says two things.
  [[nodiscard]] json parsed() const {
    const std::size_t zero = text_.find('\0');  // which the parser takes for the end
    if (zero != std::string_view::npos) refuse(position(zero) + ": this is not JSON");
    std::vector<std::set<std::string>> keys;
    std::string twice;
    const auto watch = [&](int, json::parse_event_t event, json& value) {
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
        twice = value.get<std::string>();
      return true;
    };
    try {
      json out = json::parse(text_, watch);
      if (!twice.empty()) refuse("the key '" + twice + "' stands twice in one object");
      return out;
    } catch (const json::parse_error& e) {
      refuse(position(e.byte > 0 ? e.byte - 1 : 0) + ": this is not JSON");
    } catch (const json::out_of_range& e) {  // which says the number and not where it stands
      const std::string_view what = e.what();
      const std::size_t begin = what.find('\''), end = what.rfind('\'');
      const std::string_view number = begin < end ? what.substr(begin + 1, end - begin - 1) : "";
      refuse(position(text_.find(number)) + ": the number " + std::string(number) + " is too large");
    }
  }

  void only(const json& object, const std::string& owner, std::initializer_list<std::string_view> known,
            const char* who) const {
    for (const auto& item : this->object(object, owner).items())
      if (std::find(known.begin(), known.end(), item.key()) == known.end())
        refuse(owner + " has the key '" + item.key() + "', which " + who + " do not know");
  }
  const json& member(const json& object, const std::string& owner, const char* key) const {
    const auto at = object.find(key);
    if (at == object.end()) refuse(owner + " must have '" + key + "'");
    return *at;
  }
  const json& object(const json& value, const std::string& owner) const {
    if (!value.is_object()) refuse(owner + " must be an object, got " + std::string(value.type_name()));
    return value;
  }
  const json& array(const json& value, const std::string& owner) const {
    if (!value.is_array()) refuse(owner + " must be an array, got " + std::string(value.type_name()));
    return value;
  }
  /// The version a file is of, beside the one that is read.
  void check_version(const json& object, const std::string& owner, int reads) const {
    const json& version = member(object, owner, "version");
    if (version != reads) refuse("is of version " + version.dump() + ", this reads " + std::to_string(reads));
  }
  std::string text(const json& value, const std::string& owner) const {
    if (!value.is_string()) refuse(owner + " must be a text, got " + std::string(value.type_name()));
    return value.get<std::string>();
  }

 private:
  [[nodiscard]] std::string position(std::size_t byte) const {
    const std::string_view before = text_.substr(0, std::min(byte, text_.size()));
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    return "line " + std::to_string(lines + 1) + ", column " +
           std::to_string(newline == std::string_view::npos ? before.size() + 1 : before.size() - newline);
  }

  std::string_view text_;
  std::string where_;
};

}  // namespace cfp
