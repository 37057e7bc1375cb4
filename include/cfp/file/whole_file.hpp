// The text of a file that somebody named.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

namespace cfp::inline v0_1::detail {

/// Why there is nothing to read, to be put behind its name, or nothing.
inline std::string unreadable(const std::string& path) {
  if (path.empty()) return "the name of a file to read is empty";
  std::error_code failed;
  const std::filesystem::file_status is = std::filesystem::status(path, failed);
  if (is.type() == std::filesystem::file_type::not_found) return ": cannot be read: there is no such file";
  if (failed) return ": cannot be read: " + failed.message();
  if (std::filesystem::is_directory(is)) return ": cannot be read: it is a directory";
  if (!std::filesystem::is_regular_file(is)) return ": cannot be read: it is no file, but a pipe or a device";
  return std::ifstream(path) ? "" : ": cannot be read: it may not be opened";
}

/// What a file holds, or nothing: not of a device, which may have no end.
inline std::optional<std::string> whole_file(const std::string& path) {
  std::error_code none;
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path, none)) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace cfp
