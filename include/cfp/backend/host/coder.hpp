// Numbers compressed and read again on the processor.
#pragma once

#include <cfp/op/compressed_block.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace cfp::inline v0_1::host {

/// That of a GPU launches kernels which do the same (`cuda::coder`).
class coder {
 public:
  /// What `pieces` pieces of `piece` numbers are sent as, one behind the other: those of `in`, zero after the first
  /// `count`, and of `left_over`, which from then on is what was lost.
  template <class T>
  void encode(compression form, const T* in, long count, T* left_over, long piece, long pieces, void* out) const {
    using wide = wide_t<T>;
    auto* at = static_cast<std::byte*>(out);
    const long block_bytes = compressed_bytes(form, compressed_numbers);
    for (long p = 0; p < pieces; ++p)
      for (long from = 0; from < piece; from += compressed_numbers, at += block_bytes) {
        const long n = std::min(piece - from, compressed_numbers), first = p * piece + from;
        std::array<wide, compressed_numbers> x{};
        for (long i = 0; i < n; ++i) {
          const long k = first + i;
          x[static_cast<std::size_t>(i)] =
              static_cast<wide>(left_over[k]) + (k < count ? static_cast<wide>(in[k]) : wide(0));
        }
        put(form, x, at);
        for (long i = 0; i < n; ++i)
          left_over[first + i] =
              T(cfp::left_over(x[static_cast<std::size_t>(i)], static_cast<wide>(get_compressed(form, at, i))));
      }
  }
  /// out = pieces that were sent by `sources`, one behind the other, added up; the first `count` numbers.
  template <class T>
  void decode(compression form, const void* in, long piece, long pieces, long sources, T* out, long count) const {
    using wide = wide_t<T>;
    const long bytes = compressed_bytes(form, piece), block_bytes = compressed_bytes(form, compressed_numbers);
    for (long k = 0; k < std::min(count, piece * pieces); ++k) {
      const long p = k / piece, i = k % piece;
      const auto* at = static_cast<const std::byte*>(in) + p * bytes + i / compressed_numbers * block_bytes;
      wide sum = 0;
      for (long s = 0; s < sources; ++s, at += pieces * bytes)
        sum += static_cast<wide>(get_compressed(form, at, i % compressed_numbers));
      out[k] = T(sum);
    }
  }

 private:
  template <class Wide>
  static void put(compression form, const std::array<Wide, compressed_numbers>& x, std::byte* block) {
    std::array<std::uint32_t, compressed_numbers> magnitude{};
    std::array<int, compressed_numbers> order{}, before{};
    for (std::size_t i = 0; i < x.size(); ++i) {
      magnitude[i] = magnitude_of(static_cast<float>(x[i]));
      order[i] = before[i] = static_cast<int>(i);
    }
    if (form == compression::largest) {
      const auto is_before = [&](int a, int b) {
        const std::uint32_t ma = magnitude[static_cast<std::size_t>(a)], mb = magnitude[static_cast<std::size_t>(b)];
        return ma != mb ? ma > mb : a < b;
      };
      std::partial_sort(order.begin(), order.begin() + largest_numbers, order.end(), is_before);
      before.fill(static_cast<int>(largest_numbers));
      for (int k = 0; k < largest_numbers; ++k)
        before[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])] = k;
    }
    const std::uint32_t largest = *std::max_element(magnitude.begin(), magnitude.end());
    for (std::size_t i = 0; i < x.size(); ++i)
      put_compressed(form, block, static_cast<long>(i), static_cast<float>(x[i]), largest, before[i]);
  }
};

}  // namespace cfp::host
