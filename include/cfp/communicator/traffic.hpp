// What a communicator has moved.
#pragma once

#include <cfp/core/collective.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace cfp::inline v0_1 {

/// Calls made, and bytes a ring algorithm would send per device, indexed by `collective_kind`.
struct traffic {
  std::array<std::int64_t, collective_names.size()> calls{}, bytes{};

  traffic& operator+=(const traffic& more) {
    for (std::size_t k = 0; k < calls.size(); ++k) calls[k] += more.calls[k], bytes[k] += more.bytes[k];
    return *this;
  }
  friend bool operator==(const traffic&, const traffic&) = default;
  traffic& operator-=(const traffic& less) {
    for (std::size_t k = 0; k < calls.size(); ++k) calls[k] -= less.calls[k], bytes[k] -= less.bytes[k];
    return *this;
  }

  /// Counts a call among `members`, `given` its count in bytes: of the whole, of a member's part of it, or of what a
  /// member has for another; who receives what another sends sends nothing. Returns the bytes sent.
  std::int64_t count(collective_kind kind, std::size_t given, std::size_t members, bool is_root = true) {
    std::size_t all = is_between_two(kind) && !is_root ? 0 : given;
    if (kind == collective_kind::all_gather || kind == collective_kind::reduce_scatter) all *= members;
    if (kind == collective_kind::all_to_all) all *= members * members;
    const std::int64_t sent = bytes_sent(kind, static_cast<long>(all), static_cast<long>(members));
    ++calls[static_cast<std::size_t>(kind)];
    bytes[static_cast<std::size_t>(kind)] += sent;
    return sent;
  }
};

}  // namespace cfp
