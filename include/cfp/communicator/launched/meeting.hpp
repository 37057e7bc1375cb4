// A group of launched ranks as the hub sees it: who has called what, and what each is answered once all have.
#pragma once

#include <cfp/communicator/launched/combined.hpp>
#include <cfp/communicator/launched/message.hpp>
#include <cfp/communicator/launched/socket.hpp>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Whether the root of a call, if it needs one, is among so many members.
inline bool has_root(const collective_call& c, std::size_t members) {
  return (c.kind != static_cast<int>(collective_kind::broadcast) &&
          !is_between_two(static_cast<collective_kind>(c.kind))) ||
         (c.root >= 0 && static_cast<std::size_t>(c.root) < members);
}

/// A call of a member that waits for the others.
struct waiting_call {
  bool here = false;
  message says;
  message_bytes data;
  steady_clock::time_point since;
};

struct meeting {
  int number = 0;
  std::string where;                // after a call in a message: "" or " on axis 1"
  std::vector<int> ranks;           // of the members, in the world
  std::vector<waiting_call> calls;  // one per member

  std::size_t index(int rank) const {
    return static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  }
  bool complete() const {
    return std::all_of(calls.begin(), calls.end(), [](const waiting_call& c) { return c.here; });
  }
  /// Who has not called: "rank 1, rank 2".
  std::string missing() const {
    std::string out;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (!calls[i].here) out += (out.empty() ? "rank " : ", rank ") + std::to_string(ranks[i]);
    return out;
  }
  /// All calls are answered, or none will be as it wanted.
  std::vector<waiting_call> take() { return std::exchange(calls, std::vector<waiting_call>(ranks.size())); }

  /// The first call that differs from that of the first member; as many as there are members: none.
  std::size_t different() const {
    std::size_t i = 0;
    while (i < calls.size() && calls[i].says.call == calls.front().says.call) ++i;
    return i;
  }
};

/// "2 x 2"
inline std::string shape(const std::vector<int>& mesh) {
  std::string s;
  for (const int n : mesh) s += (s.empty() ? "" : " x ") + std::to_string(n);
  return s;
}

inline std::size_t piece_bytes(const message& m) {
  return static_cast<std::size_t>(m.length) * (m.call.bits / static_cast<std::uint32_t>(CHAR_BIT));
}

/// What a member sends with a call.
inline std::size_t bytes_given(const message& m, std::size_t members, std::size_t index) {
  if (m.call.kind == barrier_kind) return 0;
  switch (static_cast<collective_kind>(m.call.kind)) {
    case collective_kind::all_reduce:
    case collective_kind::all_gather: return piece_bytes(m);
    case collective_kind::reduce_scatter:
    case collective_kind::all_to_all: return piece_bytes(m) * members;
    case collective_kind::broadcast:
    case collective_kind::shift:
    case collective_kind::all_scan:
    case collective_kind::send: return m.call.root == static_cast<int>(index) ? piece_bytes(m) : 0;
  }
  return 0;
}

/// What each member is answered. All have made the same call.
inline std::vector<std::vector<message_bytes>> results(const std::vector<waiting_call>& calls) {
  const std::size_t n = calls.size();
  const message& m = calls.front().says;
  std::vector<std::vector<message_bytes>> out(n);
  if (m.call.kind == barrier_kind) return out;
  const std::size_t piece = piece_bytes(m);
  std::vector<message_bytes> given;
  for (const waiting_call& c : calls) given.push_back(c.data);
  const auto folded = [&] { return combined(static_cast<arithmetic>(m.arithmetic), m.call.combine, given); };
  switch (static_cast<collective_kind>(m.call.kind)) {
    case collective_kind::all_reduce: out.assign(n, {folded()}); break;
    case collective_kind::all_gather: out.assign(n, given); break;
    case collective_kind::reduce_scatter: {
      const message_bytes whole = folded();
      for (std::size_t i = 0; i < n; ++i) out[i] = {whole.part(i * piece, piece)};
      break;
    }
    case collective_kind::all_to_all:
      for (std::size_t i = 0; i < n; ++i)
        for (const message_bytes& one : given) out[i].push_back(one.part(i * piece, piece));
      break;
    case collective_kind::broadcast:
    case collective_kind::shift:
    case collective_kind::all_scan:
    case collective_kind::send:
      for (std::size_t i = 0; i < n; ++i)
        if (static_cast<int>(i) != m.call.root) out[i] = {given[static_cast<std::size_t>(m.call.root)]};
      break;
  }
  return out;
}

}  // namespace cfp::detail
