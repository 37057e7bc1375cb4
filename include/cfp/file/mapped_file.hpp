// A file as memory, of which is read what is asked for.
#pragma once

#include <cfp/file/whole_file.hpp>

#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace cfp::inline v0_1 {

class mapped_file {
 public:
  mapped_file() = default;
  /// Throws `Error`: a sentence that begins with `said`, what the file is called.
  template <class Error>
  static mapped_file of(const std::string& path, const std::string& said, bool written = false) {
    if (const std::string why = detail::unreadable(path); !why.empty()) throw Error(said + why);
    if (std::filesystem::file_size(path) == 0) throw Error(said + ": is empty");
    const auto mode = written ? boost::interprocess::read_write : boost::interprocess::read_only;
    mapped_file out;
    try {
      const boost::interprocess::file_mapping mapping(path.c_str(), mode);
      out.region_ = boost::interprocess::mapped_region(mapping, mode);
    } catch (const boost::interprocess::interprocess_exception& e) {
      throw Error(said + ": cannot be read: " + e.what());
    }
    return out;
  }

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(region_.get_address()), region_.get_size()}; }
  /// Whether the disk has all that was written.
  bool flush() { return region_.flush(0, 0, false); }

 private:
  boost::interprocess::mapped_region region_;
};

}  // namespace cfp
