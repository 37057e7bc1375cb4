// The profile table: measured times by name, as a readable JSON file that later runs reuse and extend.
#pragma once

#include <cfp/model/new_file.hpp>
#include <cfp/profile/summary.hpp>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
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

class profile_table {
 public:
  profile_origin origin;
  std::map<std::string, measurement> entries;
  std::map<std::string, instruction_time> instructions;  ///< of the programs measured, by kind and size
  std::map<std::string, long> choices;                   ///< as `rank::choices` names them

  /// Reads a table. Returns why it cannot be used, or nothing.
  std::string load(const std::string& path) {
    std::ifstream file(path);
    if (!file) return "it cannot be read";
    try {
      const nlohmann::json j = nlohmann::json::parse(file);
      const auto differs = [&](const char* what, const std::string& mine) -> std::string {
        const std::string theirs = j.at(what);
        return mine.empty() || theirs == mine ? std::string()
                                              : std::string("its ")
                                                    .append(what)
                                                    .append(" is '")
                                                    .append(theirs)
                                                    .append("', this is '")
                                                    .append(mine)
                                                    .append("'");
      };
      for (const auto& [what, mine] : {std::pair<const char*, const std::string&>{"machine", origin.machine},
                                       {"model", origin.model},
                                       {"mesh", origin.mesh}})
        if (const std::string why = differs(what, mine); !why.empty()) return why;
      std::map<std::string, measurement> read;
      for (const auto& [key, e] : j.at("milliseconds").items()) {
        const measurement m{e.at("median"), e.at("spread"), e.at("repeats")};
        if (!(m.median >= 0)) return "entry '" + key + "' is no time";
        read[key] = m;
      }
      std::map<std::string, instruction_time> single;
      if (j.contains("instructions"))
        for (const auto& [key, e] : j["instructions"].items())
          single[key] = {e.at("milliseconds"), e.at("flops"), e.at("traffic")};
      std::map<std::string, long> chosen;
      if (j.contains("choices")) chosen = j["choices"].get<std::map<std::string, long>>();
      origin = {j.at("machine"), j.at("model"), j.at("mesh")};
      entries = std::move(read);
      instructions = std::move(single);
      choices = std::move(chosen);
    } catch (const nlohmann::json::exception& e) {
      return e.what();
    }
    return {};
  }

  /// Writes the table beside `path` and renames it, so that an interrupted write loses nothing.
  void save(const std::string& path) const {
    nlohmann::ordered_json j;
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

  static void write_file(const std::string& path, const std::string& content) {
    const new_file file(path);
    {
      std::ofstream out(file.beside());
      out << content << '\n';
      if (!out.flush()) throw bad_input(path + ": cannot be written");
    }
    file.take_name();
  }
};

}  // namespace cfp
