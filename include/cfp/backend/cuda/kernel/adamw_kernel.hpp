// AdamW in place, once through all elements, many tensors in a launch; moments as wide numbers or in fewer bits.
#pragma once

#include <cfp/backend/cuda/kernel/accumulate_kernel.hpp>
#include <cfp/op/lean_moments.hpp>
#include <cfp/op/optimizer.hpp>

#include <cmath>
#include <cstdint>

namespace cfp::inline v0_1::cuda {

struct adamw_factors {
  float rate, correct1, correct2, clip;
};

/// What is the same for all numbers of a tensor.
struct adamw_numbers {
  static constexpr long shared_bytes = sizeof(float) * 4;

  const float* clip = nullptr;  ///< what gradients are multiplied by, or null
  const step_state* state = nullptr;
  double given[8] = {};  ///< the operator's scalars

  adamw_numbers() = default;
  adamw_numbers(const call& c, const step_state* now)
      : clip(c.op->operands.size() > 4 ? static_cast<const float*>(c.operand[4].data) : nullptr), state(now) {
    for (int i = 0; i < 8; ++i) given[i] = c.op->scalars[i];
  }

  /// Some threads of a block compute them, in double, for all.
  template <class Thread>
  CFP_DEVICE adamw_factors factors(const Thread& t) const {
    auto* shared = reinterpret_cast<float*>(t.shared());
    const auto step = static_cast<double>(state->step);
    if (t.thread() == 0) shared[0] = static_cast<float>(adamw_t::rate_at(step, given[0], given[5], given[6], given[7]));
    if (t.thread() == warp_size) shared[1] = static_cast<float>(1.0 / (1.0 - std::pow(given[1], step)));
    if (t.thread() == 2 * warp_size) shared[2] = static_cast<float>(1.0 / (1.0 - std::pow(given[2], step)));
    if (t.thread() == 3 * warp_size) shared[3] = clip != nullptr ? *clip : 1.0f;
    t.sync();
    return {shared[0], shared[1], shared[2], shared[3]};
  }
  CFP_DEVICE float updated(float w, float g, float& m, float& v, const adamw_factors& f) const {
    return adamw_t::apply(w, g * f.clip, m, v, f.rate, static_cast<float>(given[1]), static_cast<float>(given[2]),
                          static_cast<float>(given[3]), static_cast<float>(given[4]), f.correct1, f.correct2);
  }
};

template <class T, int V>
struct adamw_kernel {
  static constexpr int threads = 256;
  static constexpr long shared_bytes = adamw_numbers::shared_bytes;

  adamw_numbers numbers;
  chain_tensor weight, gradient, first, second;
  long n = 0;

  long blocks() const { return pieces_of(pieces_of(n, V) + (V > 1 ? n % V : 0), threads); }

  // Numbers are on their way while some threads compute what is the same for all.
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long packs = n / V, thread = t.block() * threads + t.thread(), rest = packs * V + thread - packs;
    fetched<V> raw[4];
    if (thread < packs) load(thread * V, raw);
    const adamw_factors f = numbers.factors(t);
    if (thread < packs) {
      update(thread * V, raw, f);
    } else if (rest < n) {
      fetched<1> one[4];
      load(rest, one);
      update(rest, one, f);
    }
  }

 private:
  template <int N>
  CFP_DEVICE void load(long i, fetched<N> (&raw)[4]) const {
    fetch<T, N>(weight, i, raw[0]);
    fetch<T, N>(gradient, i, raw[1]);
    fetch<T, N>(first, i, raw[2]);
    fetch<T, N>(second, i, raw[3]);
  }
  template <int N>
  CFP_DEVICE void update(long i, const fetched<N> (&raw)[4], const adamw_factors& f) const {
    float w[N], g[N], m[N], v[N];
    widen<T>(weight, raw[0], w);
    widen<T>(gradient, raw[1], g);
    widen<T>(first, raw[2], m);
    widen<T>(second, raw[3], v);
    CFP_UNROLL
    for (int j = 0; j < N; ++j) w[j] = numbers.updated(w[j], g[j], m[j], v[j], f);
    store<T>(weight, i, w);
    store<T>(first, i, m);
    store<T>(second, i, v);
  }
};

/// The same where moments are stored in fewer bits: a block of threads takes a block of numbers at a time.
template <class T>
struct lean_adamw_kernel {
  static constexpr int threads = block8_numbers, times = 4;

  adamw_numbers numbers;
  chain_tensor weight, gradient;
  void *first, *second;
  bool blocks8;          // or bfloat16
  std::uint32_t tensor;  // that they are of
  long n;

  lean_adamw_kernel() = default;
  lean_adamw_kernel(const call& c, const step_state* state)
      : numbers(c, state), weight(detail::in_line(c.result[0], true)),
        gradient(detail::in_line(c.operand[1], c.operand[1].wide)), first(c.result[1].data), second(c.result[2].data),
        blocks8(c.result[1].lean == element::blocks8), tensor(static_cast<std::uint32_t>(c.forward)),
        n(detail::elements_of(c)) {}

  long blocks() const { return pieces_of(n, static_cast<long>(threads) * times); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const adamw_factors f = numbers.factors(t);
    for (int k = 0; k < times; ++k) {
      const long i = (t.block() * times + k) * threads + t.thread();
      float w = 0, m = 0, v = 0;
      if (i < n) {
        w = load_one<T>(weight, i);
        m = load(first, i);
        v = load(second, i);
        w = numbers.updated(w, load_one<T>(gradient, i), m, v, f);
        store_one<T>(weight, i, w);
      }
      const std::uint32_t bits =
          rounding_bits(tensor, static_cast<std::uint64_t>(numbers.state->step), static_cast<std::uint64_t>(i));
      store(t, first, i, m, bits & 0xffff);
      store(t, second, i, v, bits >> 16);
    }
  }

 private:
  CFP_DEVICE float load(void* at, long i) const {
    if (!blocks8) return static_cast<float>(static_cast<const bf16*>(at)[i]);
    const blocks_of_8_bits all(at, n);
    return block8_code::decode(all.code[i], all.scale[i / block8_numbers]);
  }
  template <class Thread>
  CFP_DEVICE void store(const Thread& t, void* at, long i, float x, std::uint32_t bits) const {
    if (!blocks8) {
      if (i < n) static_cast<bf16*>(at)[i] = rounded_bf16(x, bits);
      return;
    }
    const float scale = t.template reduce<reduction::max>(x < 0 ? -x : x);
    if (i >= n) return;
    const blocks_of_8_bits all(at, n);
    if (t.thread() == 0) all.scale[i / block8_numbers] = scale;
    all.code[i] = block8_code::encode(x, scale, bits);
  }
};

namespace detail {
template <class T, int V>
adamw_kernel<T, V> bind_adamw(const call& c, const step_state* state) {
  return {adamw_numbers(c, state),    in_line(c.result[0], true), in_line(c.operand[1], c.operand[1].wide),
          in_line(c.result[1], true), in_line(c.result[2], true), elements_of(c)};
}
}  // namespace detail

/// The updates of any number of weights. Those whose memory is not aligned take a launch each.
template <class T, class Queue>
void run_adamw(const Queue& q, std::span<const call> all, const step_state* state) {
  constexpr int width = full_width<T>;
  std::vector<adamw_kernel<T, width>> packed;
  std::vector<lean_adamw_kernel<T>> lean;
  for (const call& c : all) {
    if (is_lean(c.result[1].lean)) {
      lean.push_back(lean_adamw_kernel<T>(c, state));
      continue;
    }
    const auto k = detail::bind_adamw<T, width>(c, state);
    if (detail::are_packed<width>({&k.weight, &k.gradient, &k.first, &k.second})) packed.push_back(k);
    else detail::launch(q, detail::bind_adamw<T, 1>(c, state), k.shared_bytes);
  }
  launch_many(q, packed, adamw_numbers::shared_bytes);
  launch_many(q, lean, adamw_numbers::shared_bytes);
}

}  // namespace cfp::cuda
