// A group of ranks that are threads of one process: where its members meet and say what they call.
#pragma once

#include <cfp/communicator/communicator.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// What joins the ranks of a group, where it is to be slower than the memory they share: another network, tried out on
/// one machine. A collective takes at least as long as over it.
struct rank_link {
  double latency = 0;                                          ///< seconds of a collective
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per second a rank sends, by a ring algorithm

  double seconds(std::int64_t sent) const { return latency + static_cast<double>(sent) / bandwidth; }
};

namespace detail {

/// A member's place in its group: the others read it between entering and finishing.
struct alignas(cache_line) thread_slot {
  collective_call call;
  const void* in = nullptr;
  void* out = nullptr;
  std::atomic<std::uint64_t> round{0};  // collectives begun; written by its owner
  alignas(cache_line) traffic counted;  // its owner's
};

struct thread_group {
  static constexpr std::uint64_t frozen = std::uint64_t{1} << 63;

  std::string where;                                           // after a call in a message: "" or " on axis 1"
  std::vector<int> ranks;                                      // of the members, in the world
  std::vector<thread_slot> slots;                              // one per member
  rank_link joined_by{};                                       // not while ranks run
  alignas(cache_line) std::atomic<std::uint64_t> entered{0};   // arrivals since the start, and `frozen`
  alignas(cache_line) std::atomic<std::uint64_t> finished{0};  // ranks that have copied, since the start

  thread_group(std::string in_messages, std::vector<int> members)
      : where(std::move(in_messages)), ranks(std::move(members)), slots(ranks.size()) {}

  bool complete(std::uint64_t word, std::uint64_t round) const { return (word & ~frozen) >= round * slots.size(); }
};

inline void relax_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace detail

}  // namespace cfp
