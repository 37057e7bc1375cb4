// A group of the stand-in for NCCL whose members are processes: what each has come to stands in a file that all of them
// map, and what it brings to a collective in a file of its own, which the others read.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stand_in {

class group_file {
 public:
  /// Members open the same path. `gpu` is where this one is; `alone` says that it pretends a host of its own.
  group_file(std::string path, int rank, int size, std::uint64_t gpu, bool alone);
  group_file(const group_file&) = delete;
  ~group_file();

  const std::string& path() const { return path_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  bool all_started() const;
  /// NCCL refuses two members on one GPU unless their hosts have other names.
  bool one_gpu_twice() const;

  /// What this member asks of the group's nth split, and what all have asked, once they have.
  void ask_split(std::size_t n, int color, int key);
  std::vector<std::pair<int, int>> split(std::size_t n) const;

  /// This member comes to a turn with so many bytes: false while others still read what it brought to the one before.
  bool bring(std::uint64_t turn, const std::string& bytes);
  /// What the members brought to a turn, once all have.
  std::vector<std::vector<char>> brought(std::uint64_t turn) const;
  /// This member has read it.
  void end(std::uint64_t turn);

 private:
  struct member {
    std::atomic<std::uint64_t> gpu, started, turns_brought, bytes, turns_ended;
    struct asked {
      std::atomic<std::int64_t> color, key, there;
    } splits[16];
  };
  std::string of(int rank) const { return path_ + "." + std::to_string(rank); }

  std::string path_;
  int rank_, size_;
  member* all_ = nullptr;
};

}  // namespace stand_in
