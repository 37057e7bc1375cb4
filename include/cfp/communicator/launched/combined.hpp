// The data of ranks combined by one who knows their type only as a call says it.
#pragma once

#include <cfp/communicator/communicator.hpp>
#include <cfp/communicator/launched/message.hpp>
#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Elements a hub can combine.
enum class arithmetic : std::int64_t { none, f32, f64, f80, bf16, fp16, i8, i16, i32, i64, u8, u16, u32, u64, truth };

template <class T>
constexpr arithmetic arithmetic_of() {
  if constexpr (std::is_same_v<T, bool>) return arithmetic::truth;
  else if constexpr (std::is_same_v<T, bf16>) return arithmetic::bf16;
  else if constexpr (std::is_same_v<T, fp16>) return arithmetic::fp16;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? arithmetic::f32 : sizeof(T) == 8 ? arithmetic::f64 : arithmetic::f80;
  else if constexpr (std::is_integral_v<T>) {
    constexpr int log = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<arithmetic>(static_cast<int>(std::is_signed_v<T> ? arithmetic::i8 : arithmetic::u8) + log);
  } else return arithmetic::none;
}

template <class T>
message_bytes combined_as(reduction by, const std::vector<message_bytes>& members) {
  const std::shared_ptr<std::byte[]> out = std::make_shared_for_overwrite<std::byte[]>(members.front().count);
  T* const to = reinterpret_cast<T*>(out.get());
  fold_blocks<T>(
      by, [&](std::size_t member) { return reinterpret_cast<const T*>(members[member].data()); }, members.size(), 0,
      members.front().count / sizeof(T),
      [&](const T* folded, std::size_t at, std::size_t length) { std::copy_n(folded, length, to + at); });
  return {out, 0, members.front().count};
}

/// The members' data, of equal sizes, combined in the order of the members. Throws bad_input for elements that
/// are no numbers.
inline message_bytes combined(arithmetic in, reduction by, const std::vector<message_bytes>& members) {
  switch (in) {
    case arithmetic::f32: return combined_as<float>(by, members);
    case arithmetic::f64: return combined_as<double>(by, members);
    case arithmetic::f80: return combined_as<long double>(by, members);
    case arithmetic::bf16: return combined_as<bf16>(by, members);
    case arithmetic::fp16: return combined_as<fp16>(by, members);
    case arithmetic::i8: return combined_as<std::int8_t>(by, members);
    case arithmetic::i16: return combined_as<std::int16_t>(by, members);
    case arithmetic::i32: return combined_as<std::int32_t>(by, members);
    case arithmetic::i64: return combined_as<std::int64_t>(by, members);
    case arithmetic::u8: return combined_as<std::uint8_t>(by, members);
    case arithmetic::u16: return combined_as<std::uint16_t>(by, members);
    case arithmetic::u32: return combined_as<std::uint32_t>(by, members);
    case arithmetic::u64: return combined_as<std::uint64_t>(by, members);
    case arithmetic::truth: return combined_as<bool>(by, members);
    case arithmetic::none: break;
  }
  throw bad_input("elements that are no numbers cannot be combined");
}

}  // namespace cfp::detail
