// The profile table: measured times by name, as a readable JSON file that later runs reuse and extend.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/file/json_reader.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/file/whole_file.hpp>
#include <cfp/profile/summary.hpp>

#include <nlohmann/json.hpp>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// A plan that was found with a table: what it chose, among what has this identity.
struct remembered_plan {
  std::string among;
  std::vector<int> choices;
  friend bool operator==(const remembered_plan&, const remembered_plan&) = default;
};

inline constexpr int profile_table_version = 1;

class profile_table {
 public:
  profile_origin origin;
  std::map<std::string, measurement> entries;
  std::map<std::string, instruction_time> instructions;  ///< of the programs measured, by kind and size
  std::map<std::string, long> choices;                   ///< as `rank::choices` names them
  std::vector<remembered_plan> plans;                    ///< the last ones found, the newest first

  void remember(remembered_plan p) {
    std::erase(plans, p);
    plans.insert(plans.begin(), std::move(p));
    if (plans.size() > most_plans) plans.resize(most_plans);
  }

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
    for (const remembered_plan& p : plans) j["plans"].push_back({{"among", p.among}, {"choices", p.choices}});
    write_file(path, j.dump(1));
  }

 private:
  static constexpr std::size_t most_plans = 16;
};

namespace detail {

class table_reader : json_reader<bad_input> {
 public:
  using json_reader::json_reader;

  /// Throws bad_input for a table of another origin, and for what is no table.
  [[nodiscard]] profile_table read(const profile_origin& mine) const {
    const json all = parsed();
    check_version(object(all, "it"), "it", profile_table_version);
    only(all, "it", {"version", "machine", "model", "mesh", "milliseconds", "instructions", "choices", "plans"},
         "tables");
    profile_table out;
    out.origin = {same(all, "machine", mine.machine), same(all, "model", mine.model), same(all, "mesh", mine.mesh)};
    for (const auto& [key, e] : object(member(all, "it", "milliseconds"), "'milliseconds'").items())
      out.entries[key] = {number(e, key, "median"), number(e, key, "spread"),
                          whole<int>(member(e, "'" + key + "'", "repeats"), key + ".repeats")};
    if (const auto single = all.find("instructions"); single != all.end())
      for (const auto& [key, e] : object(*single, "'instructions'").items())
        out.instructions[key] = {number(e, key, "milliseconds"), number(e, key, "flops"), number(e, key, "traffic")};
    if (const auto chosen = all.find("choices"); chosen != all.end())
      for (const auto& [key, e] : object(*chosen, "'choices'").items()) out.choices[key] = whole<long>(e, key);
    if (const auto found = all.find("plans"); found != all.end()) {
      if (!found->is_array()) refuse("'plans' must be a list, got " + shown(*found));
      for (const json& p : *found) out.plans.push_back(plan(object(p, "a plan")));
    }
    return out;
  }

 private:
  static constexpr double most = 1e24;  // operations, bytes, milliseconds

  remembered_plan plan(const json& p) const {
    remembered_plan out{text(member(p, "a plan", "among"), "a plan's among"), {}};
    const json& choices = member(p, "a plan", "choices");
    if (!choices.is_array()) refuse("a plan's choices must be a list, got " + shown(choices));
    for (const json& c : choices) out.choices.push_back(whole<int>(c, "a plan's choices"));
    return out;
  }
  std::string same(const json& all, const char* what, const std::string& mine) const {
    const std::string theirs = text(member(all, "it", what), std::string("its ") + what);
    if (!mine.empty() && theirs != mine)
      refuse(std::string("its ").append(what).append(" is '").append(theirs).append("', this is '").append(mine) + "'");
    return theirs;
  }
  double number(const json& entry, const std::string& key, const char* what) const {
    const std::string owner = "'" + key + "'";
    const json& value = member(object(entry, owner), owner, what);
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= most))
      refuse(owner + " has a " + what + " that is " + shown(value) + ", it must be from 0 to 1e24");
    return value.get<double>();
  }
  template <class Whole>
  Whole whole(const json& value, const std::string& owner) const {
    if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<Whole>::max())
      refuse("'" + owner + "' must be a whole number, got " + shown(value));
    return value.get<Whole>();
  }
};

}  // namespace detail

inline std::string profile_table::load(const std::string& path) {
  const std::optional<std::string> text = detail::whole_file(path);
  if (!text) return "it cannot be read";
  try {
    *this = detail::table_reader(*text, "").read(origin);
  } catch (const bad_input& e) {
    return e.what();
  }
  return {};
}

}  // namespace cfp
