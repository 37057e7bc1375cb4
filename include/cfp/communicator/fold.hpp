// How the data of ranks are combined.
#pragma once

#include <cfp/core/placement.hpp>
#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>

#include <cstddef>
#include <type_traits>

namespace cfp::inline v0_1::detail {

inline constexpr std::size_t cache_line = 64;

/// A NaN of any rank stays: a maximum that hides it would hide the mistake behind it.
template <reduction Op, class T>
constexpr T combine(T a, T b) {
  if constexpr (Op == reduction::sum) {
    return static_cast<T>(a + b);
  } else {
    bool keep = Op == reduction::max ? a > b : a < b;
    if constexpr (std::is_floating_point_v<T>) keep = static_cast<bool>(keep | (a != a));
    return keep ? a : b;
  }
}

/// folded[i] = the members' elements first + i, combined in the order of the members; `of_member(m)` is where those of
/// one begin.
template <reduction Op, class T, class In>
inline void fold(const In& of_member, std::size_t members, std::size_t first, std::size_t length, wide_t<T>* folded) {
  using wide = wide_t<T>;
  const auto in = [&](std::size_t member) { return of_member(member) + first; };
  const T* const a = in(0);
  if (members == 1) {
    for (std::size_t i = 0; i < length; ++i) folded[i] = a[i];
    return;
  }
  const T* const b = in(1);
  for (std::size_t i = 0; i < length; ++i) folded[i] = combine<Op, wide>(a[i], b[i]);
  for (std::size_t member = 2; member < members; ++member) {
    const T* const c = in(member);
    for (std::size_t i = 0; i < length; ++i) folded[i] = combine<Op, wide>(folded[i], c[i]);
  }
}

/// Folds the elements from `first` on, a block at a time that stays in the first cache, and hands each to
/// store(block, offset, length). The block is local: it cannot overlap a buffer, so the loops vectorise, and
/// a result may replace an input.
template <reduction Op, class T, class In, class Store>
void fold_blocks(const In& in, std::size_t members, std::size_t first, std::size_t length, Store store) {
  constexpr std::size_t block = 2048 / sizeof(T);
  alignas(cache_line) wide_t<T> folded[block];
  const auto hand_over = [&](std::size_t at, std::size_t n) {
    if constexpr (std::is_same_v<T, wide_t<T>>) {
      store(folded, at, n);
    } else {
      alignas(cache_line) T narrow[block];
      for (std::size_t i = 0; i < n; ++i) narrow[i] = T(folded[i]);
      store(narrow, at, n);
    }
  };
  std::size_t done = 0;
  for (; done + block <= length; done += block) {  // a constant length: vectorised at -O2 too
    fold<Op, T>(in, members, first + done, block, folded);
    hand_over(done, block);
  }
  if (done == length) return;
  fold<Op, T>(in, members, first + done, length - done, folded);
  hand_over(done, length - done);
}

template <class T, class In, class Store>
void fold_blocks(reduction combine, const In& in, std::size_t members, std::size_t first, std::size_t length,
                 Store store) {
  switch (combine) {
    case reduction::sum: return fold_blocks<reduction::sum, T>(in, members, first, length, store);
    case reduction::max: return fold_blocks<reduction::max, T>(in, members, first, length, store);
    case reduction::min: return fold_blocks<reduction::min, T>(in, members, first, length, store);
  }
}

}  // namespace cfp::detail
