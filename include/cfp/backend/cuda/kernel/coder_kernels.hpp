// Numbers compressed, a block of them by a block of threads, and read again.
#pragma once

#include <cfp/backend/cuda/kernel/kernel.hpp>
#include <cfp/op/compressed_block.hpp>
#include <cfp/op/fp16.hpp>

#include <algorithm>
#include <cstddef>

namespace cfp::inline v0_1::cuda {

template <class T>
struct encode_kernel {
  static constexpr int threads = compressed_numbers;
  static constexpr long shared_bytes = threads * static_cast<long>(sizeof(std::uint32_t));

  compression form = compression::none;
  const T* in = nullptr;
  long count = 0;
  T* left_over = nullptr;
  long piece = 0, pieces = 0;
  void* out = nullptr;

  CFP_HOST_DEVICE long blocks_of_piece() const { return pieces_of(piece, threads); }
  long blocks() const { return pieces * blocks_of_piece(); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long from = t.block() % blocks_of_piece() * threads;  // in the piece
    const long i = t.block() / blocks_of_piece() * piece + from + t.thread();
    const bool there = from + t.thread() < piece;
    float x = 0;
    if (there) x = static_cast<float>(left_over[i]) + (i < count ? static_cast<float>(in[i]) : 0.0f);
    void* const block = static_cast<std::byte*>(out) + t.block() * compressed_bytes(form, threads);
    std::uint32_t largest = 0;
    long before = 0;
    if (form == compression::blocks8)
      largest = __builtin_bit_cast(std::uint32_t, t.template reduce<reduction::max>(x < 0 ? -x : x));
    else if (form == compression::largest) before = larger_ones(t, magnitude_of(x));
    put_compressed(form, block, t.thread(), x, largest, before);
    t.sync();
    if (there) left_over[i] = T(cfp::left_over(x, get_compressed(form, block, t.thread())));
  }

 private:
  template <class Thread>
  CFP_DEVICE static long larger_ones(const Thread& t, std::uint32_t mine) {
    auto* const all = reinterpret_cast<std::uint32_t*>(t.shared());
    all[t.thread()] = mine;
    t.sync();
    long n = 0;
    for (int k = 0; k < threads; ++k) n += all[k] > mine || (all[k] == mine && k < t.thread());
    return n;
  }
};

template <class T>
struct decode_kernel {
  static constexpr int threads = 256;

  compression form = compression::none;
  const void* in = nullptr;
  long piece = 0, pieces = 0, sources = 0;
  T* out = nullptr;
  long count = 0;

  long blocks() const { return pieces_of(count, threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long k = t.block() * threads + t.thread();
    if (k >= count) return;
    const long i = k % piece, bytes = compressed_bytes(form, piece);
    const auto* at = static_cast<const std::byte*>(in) + k / piece * bytes +
                     i / compressed_numbers * compressed_bytes(form, compressed_numbers);
    float sum = 0;
    for (long s = 0; s < sources; ++s, at += pieces * bytes) sum += get_compressed(form, at, i % compressed_numbers);
    out[k] = T(sum);
  }
};

/// Does in a queue what `host::coder` does.
template <class Queue>
class coder {
 public:
  explicit coder(const Queue& q) : queue_(q) {}

  template <class T>
  void encode(compression form, const T* in, long count, T* left_over, long piece, long pieces, void* out) const {
    const encode_kernel<T> k{form, in, count, left_over, piece, pieces, out};
    queue_.launch(k, k.blocks(), encode_kernel<T>::shared_bytes);
  }
  template <class T>
  void decode(compression form, const void* in, long piece, long pieces, long sources, T* out, long count) const {
    const decode_kernel<T> k{form, in, piece, pieces, sources, out, std::min(count, piece * pieces)};
    queue_.launch(k, k.blocks());
  }

 private:
  const Queue& queue_;
};

}  // namespace cfp::cuda
