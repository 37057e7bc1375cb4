// Files that are carried along (configurations of public models, descriptions of machines), by name.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace cfp::inline v0_1::families {

struct carried_file {
  std::string path;
  bool by_name = false;  ///< else somebody's own
};

/// Of all files of a folder, sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const auto& f : std::filesystem::directory_iterator(folder)) out.push_back(f.path().stem());
  std::sort(out.begin(), out.end());
  return out;
}

/// "gpt2": gpt2.json of the first of the folders that has it; else a path, of a file or of a directory with a
/// config.json. Throws bad_input for what is neither, with the names there are; `wanted` says of what: "give --model".
inline carried_file find_carried(const std::vector<std::filesystem::path>& folders, const std::string& asked,
                                 const std::string& wanted = "give") {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) continue;
    const fs::path named = folder / (asked + ".json");
    if (asked.find('/') == std::string::npos && fs::is_regular_file(named)) return {named, true};
    if (names.empty()) names = names_in(folder);
  }
  if (fs::is_regular_file(asked) || fs::is_regular_file(fs::path(asked) / "config.json")) return {asked, false};
  std::string list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  throw bad_input(asked + ": cannot be read; " + wanted + " a file or one of " + list);
}

}  // namespace cfp::families
