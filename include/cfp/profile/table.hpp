// The profile table: measured times by name, as a readable JSON file that later runs reuse and extend.
#pragma once

#include <cfp/model/new_file.hpp>
#include <cfp/profile/summary.hpp>
#include <cfp/solve/json_reader.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace cfp::inline v0_1 {

/// The least time seen for an instruction, and what it does in it.
struct instruction_time {
  double ms = 0, flops = 0, traffic = 0;
};

/// What a table was measured on; a table of anything else is not used. What is empty takes any, and then is what the
/// table says.
struct profile_origin {
  std::string machine;  ///< processor and number of hardware threads
  std::string model;    ///< name and sizes
  std::string mesh;
  friend bool operator==(const profile_origin&, const profile_origin&) = default;
};

inline constexpr int profile_table_version = 1;

class profile_table {
 public:
  profile_origin origin;
  std::map<std::string, measurement> entries;
  std::map<std::string, instruction_time> instructions;  ///< of the programs measured, by kind and size
  std::map<std::string, long> choices;                   ///< as `rank::choices` names them

  /// Reads a table. Returns why it cannot be used, or nothing.
  std::string load(const std::string& path);

  /// Writes the table beside `path` and renames it, so that an interrupted write loses nothing.
  void save(const std::string& path) const {
    nlohmann::ordered_json j;
    j["version"] = profile_table_version;
    j["machine"] = origin.machine;
    j["model"] = origin.model;
    j["mesh"] = origin.mesh;
    auto& all = j["milliseconds"] = nlohmann::ordered_json::object();
    for (const auto& [key, m] : entries)
      all[key] = {{"median", m.median}, {"spread", m.spread}, {"repeats", m.repeats}};
    auto& single = j["instructions"] = nlohmann::ordered_json::object();
    for (const auto& [key, i] : instructions)
      single[key] = {{"milliseconds", i.ms}, {"flops", i.flops}, {"traffic", i.traffic}};
    if (!choices.empty()) j["choices"] = choices;
    write_file(path, j.dump(1));
  }
};

namespace detail {

class table_reader : json_reader<bad_input> {
 public:
  using json_reader::json_reader;

  [[nodiscard]] profile_table read(const profile_origin& wanted) const {
    const json all = parsed();
    if (!all.is_object()) refuse("it must be an object, got " + std::string(all.type_name()));
    check_version(all, "it", profile_table_version);
    only(all, "it", {"version", "machine", "model", "mesh", "milliseconds", "instructions", "choices"}, "tables");
    profile_table out;
    out.origin = {origin(all, "machine", wanted.machine), origin(all, "model", wanted.model),
                  origin(all, "mesh", wanted.mesh)};
    for (const auto& [key, e] : object(member(all, "it", "milliseconds"), "'milliseconds'").items())
      out.entries[key] = {number(e, key, "median"), number(e, key, "spread"),
                          static_cast<int>(number(e, key, "repeats"))};
    if (const auto single = all.find("instructions"); single != all.end())
      for (const auto& [key, e] : object(*single, "'instructions'").items())
        out.instructions[key] = {number(e, key, "milliseconds"), number(e, key, "flops"), number(e, key, "traffic")};
    if (const auto chosen = all.find("choices"); chosen != all.end())
      for (const auto& [key, e] : object(*chosen, "'choices'").items()) {
        if (!e.is_number_integer()) refuse("choice '" + key + "' must be a whole number, got " + e.dump());
        out.choices[key] = e.get<long>();
      }
    return out;
  }

 private:
  [[nodiscard]] std::string origin(const json& all, const char* what, const std::string& mine) const {
    const std::string theirs = text(member(all, "it", what), "'" + std::string(what) + "'");
    if (!mine.empty() && theirs != mine)
      refuse("its " + std::string(what) + " is '" + theirs + "', this is '" + mine + "'");
    return theirs;
  }
  [[nodiscard]] const json& object(const json& value, const std::string& owner) const {
    if (!value.is_object()) refuse(owner + " must be an object, got " + std::string(value.type_name()));
    return value;
  }
  [[nodiscard]] double number(const json& entry, const std::string& owner, const char* key) const {
    const json& x = member(object(entry, "'" + owner + "'"), "'" + owner + "'", key);
    if (!x.is_number() || x < 0)
      refuse("'" + owner + "' must have a number of at least 0 as '" + key + "', got " + x.dump());
    return x.get<double>();
  }
};

}  // namespace detail

inline std::string profile_table::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "it cannot be read";
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    *this = detail::table_reader(text, "").read(origin);
  } catch (const bad_input& e) {
    return std::string(e.what()).substr(2);  // behind ": "
  }
  return {};
}

}  // namespace cfp
