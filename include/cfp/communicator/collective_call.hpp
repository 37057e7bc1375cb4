// The call of a collective, as members of a group must agree on it.
#pragma once

#include <cfp/core/collective.hpp>
#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace cfp::inline v0_1::detail {

inline constexpr int barrier_kind = static_cast<int>(collective_names.size());  // follows the collective kinds

/// One rank's view of a collective. The members of a group must make equal calls.
struct collective_call {
  int kind = barrier_kind;
  std::size_t count = 0;               ///< elements, per rank or pair as the collective counts them
  std::uint32_t bits = 0;              ///< of an element
  char type = ' ';                     ///< 'f'loat, 'i'nteger, 'u'nsigned or 'b'its
  reduction combine = reduction::sum;  ///< for all_reduce and reduce_scatter
  int root = -1;                       ///< for broadcast and send: the member that sends

  friend bool operator==(const collective_call&, const collective_call&) = default;

  std::string text() const {
    if (kind == barrier_kind) return "barrier";
    std::string s(collective_names[static_cast<std::size_t>(kind)]);
    return s + " of " + std::to_string(count) + (count == 1 ? " element" : " elements");
  }
  std::string details() const {
    constexpr const char* combines[] = {"sum", "max", "min"};
    const char* element = type == 'f' ? "float" : type == 'i' ? "int" : type == 'u' ? "uint" : "bits";
    std::string s = " (" + (element + std::to_string(bits));
    if (kind == static_cast<int>(collective_kind::broadcast)) s += ", root " + std::to_string(root);
    if (kind < barrier_kind && is_between_two(static_cast<collective_kind>(kind)))
      s += ", by member " + std::to_string(root);
    if (kind == static_cast<int>(collective_kind::all_reduce) ||
        kind == static_cast<int>(collective_kind::reduce_scatter))
      s += std::string(", ") + combines[static_cast<int>(combine)];
    return s + ")";
  }
};

template <class T>
constexpr collective_call call_of(collective_kind kind, std::size_t count, reduction combine, int root) {
  constexpr char integer = std::is_signed_v<T> ? 'i' : 'u';
  constexpr char type = std::is_floating_point_v<wide_t<T>> ? 'f' : std::is_integral_v<T> ? integer : 'b';
  return {static_cast<int>(kind), count, sizeof(T) * CHAR_BIT, type, combine, root};
}

}  // namespace cfp::detail
