// How kernels read and write memory: V neighbouring numbers at a time, stored as T, or as float where the tensor is
// wide.
#pragma once

#include <cfp/backend/cuda/chain/chain_call.hpp>
#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>

#include <cstddef>
#include <cstdint>

namespace cfp::inline v0_1::cuda {

/// Numbers that fill 16 bytes, what one instruction moves at most.
template <class T>
inline constexpr int full_width = 16 / static_cast<int>(sizeof(T));

/// Numbers as they are stored: loaded early, converted late, so that many loads are on their way at a time.
template <int Words>
struct fetched {
  std::uint32_t word[static_cast<std::size_t>(Words)] = {};
};

namespace detail {

using word [[gnu::may_alias]] = std::uint32_t;
using half_word [[gnu::may_alias]] = std::uint16_t;
struct alignas(16) [[gnu::may_alias]] quad {
  std::uint32_t word[4];
};

template <int Words, int Room>
CFP_DEVICE void load_words(const void* at, fetched<Room>& out) {
  static_assert(Words % 4 == 0 && Words <= Room);
  CFP_UNROLL
  for (int i = 0; i < Words; i += 4) {
    const quad q = *reinterpret_cast<const quad*>(static_cast<const word*>(at) + i);
    CFP_UNROLL
    for (int k = 0; k < 4; ++k) out.word[i + k] = q.word[k];
  }
}
template <int Words, int V>
CFP_DEVICE void store_words(void* at, const fetched<V>& x) {
  CFP_UNROLL
  for (int i = 0; i < Words; i += 4) {
    quad q;
    CFP_UNROLL
    for (int k = 0; k < 4; ++k) q.word[k] = x.word[i + k];
    *reinterpret_cast<quad*>(static_cast<word*>(at) + i) = q;
  }
}

template <class T>
CFP_DEVICE float from_bits(std::uint32_t bits) {
  T x;
  x.bits = static_cast<std::uint16_t>(bits);
  return static_cast<float>(x);
}

}  // namespace detail

/// Numbers are stored in 32 bits.
template <class T>
CFP_HOST_DEVICE constexpr bool is_wide(const chain_tensor& t) {
  return sizeof(T) == 4 || t.wide;
}

/// What is known of a tensor when the kernel is compiled.
enum class layout {
  any,
  packed,   ///< neighbours along the row, stored as T
  per_row,  ///< one number for all of a row
};

/// V neighbours from element `at` on, or the one number there if the tensor lacks the row.
template <class T, int V, layout L = layout::any, int Words>
CFP_DEVICE void fetch(const chain_tensor& t, long at, fetched<Words>& out) {
  constexpr int narrow_words = V * static_cast<int>(sizeof(T)) / 4;
  if constexpr (L == layout::packed) {
    if constexpr (sizeof(T) == 4) detail::load_words<narrow_words>(static_cast<const detail::word*>(t.data) + at, out);
    else detail::load_words<narrow_words>(static_cast<const detail::half_word*>(t.data) + at, out);
  } else if (is_wide<T>(t)) {
    const detail::word* from = static_cast<const detail::word*>(t.data) + at;
    if constexpr (V > 1 && L == layout::any)
      if (t.along != 0) return detail::load_words<V>(from, out);
    out.word[0] = *from;
  } else {
    const detail::half_word* from = static_cast<const detail::half_word*>(t.data) + at;
    if constexpr (V > 1 && L == layout::any)
      if (t.along != 0) return detail::load_words<narrow_words>(from, out);
    out.word[0] = *from;
  }
}

/// The same as numbers. Of indices: their bits.
template <class T, layout L = layout::any, int Words, int V>
CFP_DEVICE void widen(const chain_tensor& t, const fetched<Words>& f, float (&x)[V]) {
  if (L == layout::per_row || (L == layout::any && V > 1 && t.along == 0)) {
    float one;
    if constexpr (sizeof(T) == 4) one = __builtin_bit_cast(float, f.word[0]);
    else one = t.wide ? __builtin_bit_cast(float, f.word[0]) : detail::from_bits<T>(f.word[0]);
    CFP_UNROLL
    for (int j = 0; j < V; ++j) x[j] = one;
  } else if (sizeof(T) == 4 || (L == layout::any && t.wide)) {
    if constexpr (Words >= V) {
      CFP_UNROLL
      for (int j = 0; j < V; ++j) x[j] = __builtin_bit_cast(float, f.word[j]);
    }
  } else {
    if constexpr (sizeof(T) == 2) {
      CFP_UNROLL
      for (int j = 0; j < V; ++j) x[j] = detail::from_bits<T>(f.word[j / 2] >> (j % 2 * 16));
    }
  }
}

/// V neighbours from element `at` on.
template <class T, int V>
CFP_DEVICE void store(const chain_tensor& t, long at, const float (&x)[V]) {
  fetched<V> f;
  if (is_wide<T>(t)) {
    detail::word* to = static_cast<detail::word*>(t.data) + at;
    CFP_UNROLL
    for (int j = 0; j < V; ++j) f.word[j] = __builtin_bit_cast(std::uint32_t, x[j]);
    if constexpr (V > 1) detail::store_words<V>(to, f);
    else *to = f.word[0];
  } else {
    if constexpr (sizeof(T) == 2) {
      detail::half_word* to = static_cast<detail::half_word*>(t.data) + at;
      if constexpr (V > 1) {
        CFP_UNROLL
        for (int j = 0; j < V; j += 2)
          f.word[j / 2] = T(x[j]).bits | static_cast<std::uint32_t>(T(x[j + 1]).bits) << 16;
        detail::store_words<V / 2>(to, f);
      } else {
        *to = T(x[0]).bits;
      }
    }
  }
}

/// One number, wherever it is.
template <class T>
CFP_DEVICE float load_one(const chain_tensor& t, long at) {
  fetched<1> f;
  float x[1];
  fetch<T, 1>(t, at, f);
  widen<T>(t, f, x);
  return x[0];
}
template <class T>
CFP_DEVICE void store_one(const chain_tensor& t, long at, float x) {
  const float one[1] = {x};
  store<T>(t, at, one);
}

/// What a number becomes when it is stored and read again.
template <class T>
CFP_DEVICE float as_stored(const chain_tensor& t, float x) {
  if constexpr (sizeof(T) == 4) return x;
  else return t.wide ? x : static_cast<float>(T(x));
}

}  // namespace cfp::cuda
