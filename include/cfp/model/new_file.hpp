// A file that takes its name once it is whole, so that an interrupted write leaves the old one.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <filesystem>
#include <string>
#include <system_error>

namespace cfp::inline v0_1 {

/// Where to write what is to be the file `path`. A link stays one: the file it leads to is replaced.
class new_file {
 public:
  /// Throws bad_input where what is there is no file (a directory, a device).
  explicit new_file(const std::string& path) : path_(path) {
    std::error_code none;
    if (std::filesystem::is_symlink(path, none)) path_ = std::filesystem::weakly_canonical(path, none).string();
    if (std::filesystem::exists(path_, none) && !std::filesystem::is_regular_file(path_, none))
      throw bad_input(path + ": cannot be written: what is there is no file");
    beside_ = path_ + ".new";
  }

  const std::string& beside() const { return beside_; }

  /// Gives what stands beside its name. Throws bad_input, which says why it cannot.
  void take_name() const {
    std::error_code failed;
    std::filesystem::rename(beside_, path_, failed);
    if (failed) throw bad_input(path_ + ": cannot be written: " + failed.message());
  }

 private:
  std::string path_, beside_;
};

}  // namespace cfp
