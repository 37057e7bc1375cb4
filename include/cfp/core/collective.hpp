// The collectives, and the bytes a device sends in each (ring algorithms).
#pragma once

#include <cfp/core/placement.hpp>

#include <array>
#include <string_view>

namespace cfp::inline v0_1 {

/// Beside those of MPI and NCCL: in a shift each device sends to the next one what lies at its border; in an all-scan
/// (ZeCO, arXiv 2507.01004) what it leaves of what it was sent itself.
enum class collective_kind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  shift,
  all_scan,
  send
};

inline constexpr std::array<std::string_view, 8> collective_names = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "shift", "all_scan", "send"};

/// Whether one sends and another receives; all else takes place among all members of a group.
constexpr bool is_between_two(collective_kind kind) {
  return kind >= collective_kind::shift && kind <= collective_kind::send;
}

/// Bytes sent per device. `whole` = bytes of the tensor as held before splitting over this axis, `n` = devices on it;
/// of a send, shift or all-scan all that the one sends to the other.
constexpr long bytes_sent(collective_kind kind, long whole, long n) {
  switch (kind) {
    case collective_kind::all_reduce: return 2 * (n - 1) * whole / n;
    case collective_kind::all_gather:
    case collective_kind::reduce_scatter:
    case collective_kind::broadcast: return (n - 1) * whole / n;
    case collective_kind::all_to_all: return (n - 1) * whole / (n * n);
    case collective_kind::shift:
    case collective_kind::all_scan:
    case collective_kind::send: return whole;
  }
  return 0;
}

/// Collectives of a program: how many of each kind, and the bytes a device sends in them.
struct collective_count {
  std::array<long, collective_names.size()> calls{}, bytes{};

  constexpr long total_bytes() const {
    long n = 0;
    for (long b : bytes) n += b;
    return n;
  }
  constexpr collective_count& operator+=(const collective_count& more) {
    for (std::size_t k = 0; k < calls.size(); ++k) calls[k] += more.calls[k], bytes[k] += more.bytes[k];
    return *this;
  }
  friend constexpr bool operator==(const collective_count&, const collective_count&) = default;
};

}  // namespace cfp
