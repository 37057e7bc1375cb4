// A file that takes its name once it is whole, so that an interrupted write leaves the old one.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cfp::inline v0_1 {

/// Where to write what is to be the file `path`. A link stays one: the file it leads to is replaced. What has not taken
/// its name is removed. Of several that write one file, threads or programs, one does at a time: the others wait.
class new_file {
 public:
  /// Throws bad_input where what is there is no file (a directory, a device), where none can be made, and where another
  /// has been writing it for a minute.
  explicit new_file(const std::string& path) : path_(path) {
    if (path.empty()) throw bad_input("the name of a file to write is empty");
    std::error_code none;
    for (int links = 0; links < 40 && std::filesystem::is_symlink(path_, none); ++links)  // also one that leads nowhere
      path_ = (std::filesystem::path(path_).parent_path() / std::filesystem::read_symlink(path_, none)).string();
    if (std::filesystem::exists(path_, none) && !std::filesystem::is_regular_file(path_, none))
      throw bad_input(path + ": cannot be written: what is there is no file");
    beside_ = path_ + ".new";
    lock();
  }
  new_file(new_file&& from) noexcept
      : path_(std::move(from.path_)), beside_(std::move(from.beside_)), taken_(std::exchange(from.taken_, true)),
        lock_(std::exchange(from.lock_, -1)) {}
  new_file& operator=(new_file&&) = delete;
  ~new_file() {
    std::error_code none;
    if (!taken_ && std::filesystem::is_regular_file(beside_, none)) std::filesystem::remove(beside_, none);
    if (lock_ >= 0) ::close(lock_);
  }

  const std::string& beside() const { return beside_; }

  /// Gives what stands beside its name, once the disk has it. Throws bad_input, which says why it cannot.
  void take_name() {
    const int file = ::open(beside_.c_str(), O_RDONLY | O_CLOEXEC);
    const bool kept = file >= 0 && ::fsync(file) == 0;
    const int why = errno;
    if (file >= 0) ::close(file);
    if (!kept) throw bad_input(path_ + ": cannot be written: " + std::strerror(why));
    std::error_code failed;
    std::filesystem::rename(beside_, path_, failed);
    if (failed) throw bad_input(path_ + ": cannot be written: " + failed.message());
    taken_ = true;
  }

 private:
  // What is written is locked, unless the file system has no locks. The lock is worth nothing where what was locked has
  // taken its name meanwhile, or was removed.
  void lock() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      lock_ = ::open(beside_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
      if (lock_ < 0) throw bad_input(path_ + ": cannot be written: " + std::strerror(errno));
      const bool locked = ::flock(lock_, LOCK_EX | LOCK_NB) == 0;
      if (!locked && errno != EWOULDBLOCK) return;
      if (locked && is_named()) return;
      ::close(std::exchange(lock_, -1));
      if (std::chrono::steady_clock::now() >= until)
        throw bad_input(path_ + ": another program has been writing it for a minute, into " + beside_);
    }
  }

  bool is_named() const {
    struct stat mine = {}, named = {};
    return ::fstat(lock_, &mine) == 0 && ::stat(beside_.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
           mine.st_dev == named.st_dev;
  }

  std::string path_, beside_;
  bool taken_ = false;
  int lock_ = -1;
};

/// Writes a text and an end of line. Throws bad_input, which says why it cannot; what was there before then stays.
inline void write_file(const std::string& path, std::string_view text) {
  new_file file(path);
  errno = 0;
  std::ofstream out(file.beside(), std::ios::binary);
  out << text << (text.ends_with('\n') ? "" : "\n");
  out.close();
  if (!out)
    throw bad_input(path + ": cannot be written" + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
  file.take_name();
}

}  // namespace cfp
