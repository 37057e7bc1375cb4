// A thread of a GPU on a CPU: all that cuda::gpu_thread can do, and what it must not do is an exception.
#pragma once

#include <cfp/backend/emulated/block.hpp>
#include <cfp/op/bf16.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace cfp::inline v0_1::emulated {

/// As cuda::gpu_thread; what each call means is said there.
template <int Threads>
class cpu_thread {
 public:
  static constexpr int threads = Threads;

  cpu_thread(running_block& b, long number, long blocks, int index)
      : b_(&b), number_(number), blocks_(blocks), index_(index) {}

  long block() const { return number_; }
  long blocks() const { return blocks_; }
  int thread() const { return index_; }
  int lane() const { return index_ % warp_size; }
  int warp() const { return index_ / warp_size; }

  void sync() const { b_->meet_block(index_, "sync"); }
  void sync_warp() const { b_->meet_warp(index_, "sync_warp"); }
  std::byte* shared() const { return b_->shared(); }

  template <class T>
  T shuffle(T x, int from) const {
    static_assert(sizeof(T) == 4);
    return b_->exchange(index_, x, "shuffle")[static_cast<std::size_t>(from % warp_size)];
  }
  template <class T>
  T shuffle_xor(T x, int lanes) const {
    static_assert(sizeof(T) == 4);
    return b_->exchange(index_, x, "shuffle_xor")[static_cast<std::size_t>(lane() ^ lanes)];
  }

  template <reduction R>
  float reduce_warp(float x) const {
    return fold<R>(b_->exchange(index_, x, "reduce_warp"));
  }
  template <reduction R>
  float reduce(float x) const {
    return b_->reduce_block(index_, x, fold<R>);
  }

  // Done when waited for, as late as can be: reading too early shows.
  void copy_async(void* to, const void* from) const {
    b_->check_shared(to, 16);
    if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
      throw std::logic_error("copy_async: an address is not a multiple of 16");
    open_.push_back({to, from});
  }
  void copy_or_clear_async(void* to, const void* from, bool there) const { copy_async(to, there ? from : cleared()); }
  void commit() const {
    batches_.push_back(std::move(open_));
    open_.clear();
  }
  template <int N>
  void wait() const {
    while (batches_.size() > N) {
      for (const auto& [to, from] : batches_.front()) std::memcpy(to, from, 16);
      batches_.erase(batches_.begin());
    }
  }

  float exp2(float x) const { return std::exp2(x); }
  template <class T>
  std::uint32_t narrow(float low, float high) const {
    return std::bit_cast<std::uint16_t>(T(low)) | static_cast<std::uint32_t>(std::bit_cast<std::uint16_t>(T(high)))
                                                      << 16;
  }

  void load_matrices(std::uint32_t (&out)[4], const void* row) const { load(out, row, false); }
  void load_matrices_transposed(std::uint32_t (&out)[4], const void* row) const { load(out, row, true); }

  template <class T>
  void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) const {
    struct operands {
      float a[4][2], b[2][2];
    };
    const auto number = [](std::uint32_t two, int which) {
      return static_cast<float>(std::bit_cast<T>(static_cast<std::uint16_t>(two >> (16 * which))));
    };
    operands mine;
    for (int which = 0; which < 2; ++which) {
      for (int i = 0; i < 4; ++i) mine.a[i][which] = number(a[i], which);
      for (int i = 0; i < 2; ++i) mine.b[i][which] = number(b[i], which);
    }
    const auto all = b_->exchange(index_, mine, "multiply_add");
    for (int i = 0; i < 4; ++i) {
      const int row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
      for (int k = 0; k < 16; ++k)
        d[i] += all[static_cast<std::size_t>(row % 8 * 4 + k % 8 / 2)].a[row / 8 + k / 8 * 2][k % 2] *
                all[static_cast<std::size_t>(column * 4 + k % 8 / 2)].b[k / 8][k % 2];
    }
  }

 private:
  template <reduction R>
  static float fold(std::span<const float> x) {
    float out = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) out = cuda::combine<R>(out, x[i]);
    return out;
  }
  void load(std::uint32_t (&out)[4], const void* row, bool transposed) const {
    b_->check_shared(row, 16);
    if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0)
      throw std::logic_error("load_matrices: an address is not a multiple of 16");
    const auto rows = b_->exchange(index_, row, "load_matrices");
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
      const auto element = [&](int r, int c) {
        std::uint16_t x;
        std::memcpy(&x, static_cast<const std::byte*>(rows[matrix * 8 + static_cast<std::size_t>(r)]) + 2 * c, 2);
        return static_cast<std::uint32_t>(x);
      };
      const int outer = lane() / 4, inner = lane() % 4 * 2;
      out[matrix] = transposed ? element(inner, outer) | element(inner + 1, outer) << 16
                               : element(outer, inner) | element(outer, inner + 1) << 16;
    }
    b_->meet_warp(index_, "load_matrices");  // before the rows are written again
  }

  static const void* cleared() {
    alignas(16) static constexpr std::byte zero[16] = {};
    return zero;
  }
  struct copy {
    void* to;
    const void* from;
  };
  running_block* b_;
  long number_, blocks_;
  int index_;
  mutable std::vector<copy> open_;
  mutable std::vector<std::vector<copy>> batches_;
};

}  // namespace cfp::emulated
