// The sums of the squares of many tensors: blocks sum pieces, and one block for each tensor what they found, in order.
#pragma once

#include <cfp/backend/cuda/kernel/accumulate_kernel.hpp>
#include <cfp/backend/cuda/kernel/many_kernel.hpp>
#include <cfp/core/bad_input.hpp>

#include <unordered_map>

namespace cfp::inline v0_1::cuda {

template <class T, int V>
struct square_kernel {
  static constexpr int threads = 256;
  static constexpr int times = 16;                                       // vectors of a thread
  static constexpr long piece = static_cast<long>(threads) * V * times;  // of a block

  chain_tensor x;
  float* partial = nullptr;
  long n = 0;

  long blocks() const { return pieces_of(n, piece); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    float sum = 0;
    CFP_UNROLL4
    for (int k = 0; k < times; ++k) {
      const long i = t.block() * piece + (k * threads + t.thread()) * static_cast<long>(V);
      if (i + V <= n) sum += squares<V>(i);
      else
        for (long j = i; j < n; ++j) sum += squares<1>(j);
    }
    const float all = t.template reduce<reduction::sum>(sum);
    if (t.thread() == 0) partial[t.block()] = all;
  }

 private:
  template <int N>
  CFP_DEVICE float squares(long i) const {
    fetched<N> raw;
    fetch<T, N>(x, i, raw);
    float v[N], sum = 0;
    widen<T>(x, raw, v);
    CFP_UNROLL
    for (int j = 0; j < N; ++j) sum += v[j] * v[j];
    return sum;
  }
};

/// The sum of numbers in a line, by one block.
struct sum_kernel {
  static constexpr int threads = 256;

  const float* from = nullptr;
  float* to = nullptr;
  long n = 0;

  long blocks() const { return 1; }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    float sum = 0;
    for (long i = t.thread(); i < n; i += threads) sum += from[i];
    const float all = t.template reduce<reduction::sum>(sum);
    if (t.thread() == 0) *to = all;
  }
};

/// Sums of two numbers, one after another: a sum may be an operand of a later one.
struct scalar_sums_kernel {
  static constexpr int threads = 256;
  static constexpr int most = 640;

  struct operand {
    const float* at = nullptr;  // or null:
    int sum = -1;               // the sum of that number
  };
  struct entry {
    operand a, b;
    float* to = nullptr;
  };
  entry each[most];
  int count = 0;

  static constexpr long blocks() { return 1; }
  long shared_bytes() const { return 3L * count * static_cast<long>(sizeof(float)); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    auto* const shared = reinterpret_cast<float*>(t.shared());  // a, b and the sum of each
    for (int i = t.thread(); i < count; i += threads) {
      if (each[i].a.at != nullptr) shared[3 * i] = *each[i].a.at;
      if (each[i].b.at != nullptr) shared[3 * i + 1] = *each[i].b.at;
    }
    t.sync();
    if (t.thread() == 0)
      for (int i = 0; i < count; ++i) {
        const int a = each[i].a.at != nullptr ? 3 * i : 3 * each[i].a.sum + 2;
        const int b = each[i].b.at != nullptr ? 3 * i + 1 : 3 * each[i].b.sum + 2;
        shared[3 * i + 2] = shared[a] + shared[b];
      }
    t.sync();
    for (int i = t.thread(); i < count; i += threads) *each[i].to = shared[3 * i + 2];
  }
};

namespace detail {
template <class T>
square_kernel<T, full_width<T>> bind_squares(const call& c, float* partial) {
  square_kernel<T, full_width<T>> k{in_line(c.operand[0], c.operand[0].wide), partial, elements_of(c)};
  if (!are_packed<full_width<T>>({&k.x})) throw bad_input("a gradient does not begin at 16 bytes");
  return k;
}
}  // namespace detail

/// Bytes of workspace for run_squares.
template <class T>
long squares_workspace(std::span<const call> all) {
  long parts = 0;
  for (const call& c : all) parts += detail::bind_squares<T>(c, nullptr).blocks();
  return parts * static_cast<long>(sizeof(float));
}
/// Of each operand the sum of its squares.
template <class T, class Queue>
void run_squares(const Queue& q, std::span<const call> all, void* workspace) {
  auto* partial = static_cast<float*>(workspace);
  std::vector<square_kernel<T, full_width<T>>> pieces;
  std::vector<sum_kernel> sums;
  for (const call& c : all) {
    pieces.push_back(detail::bind_squares<T>(c, partial));
    sums.push_back({partial, static_cast<float*>(c.result[0].data), pieces.back().blocks()});
    partial += sums.back().n;
  }
  launch_many(q, pieces);
  launch_many(q, sums);
}

/// Sums of two single numbers each, in order.
template <class Queue>
void run_scalar_sums(const Queue& q, std::span<const call> all) {
  scalar_sums_kernel k;
  std::unordered_map<const void*, int> made;
  const auto operand = [&](const call_tensor& t) {
    const auto at = made.find(t.data);
    return at == made.end() ? scalar_sums_kernel::operand{static_cast<const float*>(t.data), -1}
                            : scalar_sums_kernel::operand{nullptr, at->second};
  };
  const auto go = [&] {
    if (k.count > 0) q.launch(k, k.blocks(), k.shared_bytes());
    k.count = 0;
    made.clear();
  };
  for (const call& c : all) {
    k.each[k.count] = {operand(c.operand[0]), operand(c.operand[1]), static_cast<float*>(c.result[0].data)};
    made[c.result[0].data] = k.count++;
    if (k.count == scalar_sums_kernel::most) go();
  }
  go();
}

}  // namespace cfp::cuda
