#include "stand_in_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace stand_in {

namespace {

[[noreturn]] void failed(const std::string& what) { throw std::runtime_error("the stand-in for NCCL: " + what); }

constexpr std::uint64_t on_its_own = std::uint64_t{1} << 63;

}  // namespace

group_file::group_file(std::string path, int rank, int size, std::uint64_t gpu, bool alone)
    : path_(std::move(path)), rank_(rank), size_(size) {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT, 0600);
  const std::size_t bytes = sizeof(member) * static_cast<std::size_t>(size_);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) failed("cannot make " + path_);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) failed("cannot map " + path_);
  all_ = static_cast<member*>(at);
  member& mine = all_[rank_];
  mine.gpu = gpu | (alone ? on_its_own : 0);
  mine.started = 1;
}

group_file::~group_file() { munmap(all_, sizeof(member) * static_cast<std::size_t>(size_)); }

bool group_file::all_started() const {
  return std::all_of(all_, all_ + size_, [](const member& m) { return m.started == 1; });
}

bool group_file::one_gpu_twice() const {
  for (const member* a = all_; a < all_ + size_; ++a)
    for (const member* b = all_; b < a; ++b)
      if (a->started == 1 && b->started == 1 && a->gpu == b->gpu && (a->gpu & on_its_own) == 0) return true;
  return false;
}

void group_file::ask_split(std::size_t n, int color, int key) {
  if (n >= 16) failed("more than 16 splits of a group");
  member::asked& mine = all_[rank_].splits[n];
  mine.color = color;
  mine.key = key;
  mine.there = 1;
}

std::vector<std::pair<int, int>> group_file::split(std::size_t n) const {
  std::vector<std::pair<int, int>> out;
  for (int m = 0; m < size_; ++m) {
    const member::asked& one = all_[m].splits[n];
    if (one.there == 0) return {};
    out.push_back({static_cast<int>(one.color), static_cast<int>(one.key)});
  }
  return out;
}

bool group_file::bring(std::uint64_t turn, const std::string& bytes) {
  member& mine = all_[rank_];
  if (mine.turns_brought > turn) return true;
  if (!std::all_of(all_, all_ + size_, [&](const member& m) { return m.turns_ended >= turn; })) return false;
  std::FILE* const file = std::fopen(of(rank_).c_str(), "w");
  if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || std::fclose(file) != 0)
    failed("cannot write " + of(rank_));
  mine.bytes = bytes.size();
  mine.turns_brought = turn + 1;
  return true;
}

std::vector<std::vector<char>> group_file::brought(std::uint64_t turn) const {
  std::vector<std::vector<char>> out;
  if (!std::all_of(all_, all_ + size_, [&](const member& m) { return m.turns_brought > turn; })) return out;
  for (int m = 0; m < size_; ++m) {
    out.emplace_back(all_[m].bytes);
    std::FILE* const file = std::fopen(of(m).c_str(), "r");
    if (file == nullptr || std::fread(out.back().data(), 1, out.back().size(), file) != out.back().size())
      failed("cannot read " + of(m));
    std::fclose(file);
  }
  return out;
}

void group_file::end(std::uint64_t turn) { all_[rank_].turns_ended = turn + 1; }

}  // namespace stand_in
