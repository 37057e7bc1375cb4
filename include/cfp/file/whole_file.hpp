// The text of a file that somebody named.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

namespace cfp::inline v0_1::detail {

/// What a file holds, or nothing: not of a device, which may have no end.
inline std::optional<std::string> whole_file(const std::string& path) {
  std::error_code none;
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path, none)) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace cfp
