// What changes tensors in place, once through all their elements, many tensors in a launch: AdamW, and gradients added
// up over micro-batches.
#pragma once

#include <cfp/backend/cuda/chain/run_chain.hpp>
#include <cfp/backend/cuda/kernel/many_kernel.hpp>
#include <cfp/backend/cuda/kernel/step_state.hpp>
#include <cfp/op/optimizer.hpp>
#include <cfp/program/call.hpp>

#include <initializer_list>
#include <span>

namespace cfp::inline v0_1::cuda {

namespace detail {

inline chain_tensor in_line(const call_tensor& t, bool wide) {
  chain_tensor out;
  out.data = t.data;
  out.wide = wide;
  out.along = 1;
  return out;
}
inline long elements_of(const call& c) {
  long n = 1;
  for (int f = 0; f < c.factors; ++f) n *= c.size[f];
  return n;
}
template <int Width>
bool are_packed(std::initializer_list<const chain_tensor*> all) {
  return std::all_of(all.begin(), all.end(), [](const chain_tensor* t) { return is_packed(*t, 0, Width); });
}

}  // namespace detail

template <class T, int V>
struct adamw_kernel {
  static constexpr int threads = 256;
  static constexpr long shared_bytes = sizeof(float) * 4;

  chain_tensor weight, gradient, first, second;
  const float* clip;  // what gradients are multiplied by, or null
  const step_state* state;
  double given[8];  // the operator's scalars
  long n = 0;

  long blocks() const { return pieces_of(pieces_of(n, V) + (V > 1 ? n % V : 0), threads); }

  struct factors {
    float rate, correct1, correct2, clip;
  };
  // Numbers are on their way while some threads compute, in double, what is the same for all.
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long packs = n / V, thread = t.block() * threads + t.thread(), rest = packs * V + thread - packs;
    fetched<V> raw[4];
    if (thread < packs) load(thread * V, raw);
    auto* shared = reinterpret_cast<float*>(t.shared());
    const auto step = static_cast<double>(state->step);
    if (t.thread() == 0) shared[0] = static_cast<float>(adamw_t::rate_at(step, given[0], given[5], given[6], given[7]));
    if (t.thread() == warp_size) shared[1] = static_cast<float>(1.0 / (1.0 - std::pow(given[1], step)));
    if (t.thread() == 2 * warp_size) shared[2] = static_cast<float>(1.0 / (1.0 - std::pow(given[2], step)));
    if (t.thread() == 3 * warp_size) shared[3] = clip != nullptr ? *clip : 1.0f;
    t.sync();
    const factors f{shared[0], shared[1], shared[2], shared[3]};
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
  CFP_DEVICE void update(long i, const fetched<N> (&raw)[4], const factors& f) const {
    float w[N], g[N], m[N], v[N];
    widen<T>(weight, raw[0], w);
    widen<T>(gradient, raw[1], g);
    widen<T>(first, raw[2], m);
    widen<T>(second, raw[3], v);
    const float beta1 = static_cast<float>(given[1]), beta2 = static_cast<float>(given[2]),
                epsilon = static_cast<float>(given[3]), decay = static_cast<float>(given[4]);
    CFP_UNROLL
    for (int j = 0; j < N; ++j)
      w[j] =
          adamw_t::apply(w[j], g[j] * f.clip, m[j], v[j], f.rate, beta1, beta2, epsilon, decay, f.correct1, f.correct2);
    store<T>(weight, i, w);
    store<T>(first, i, m);
    store<T>(second, i, v);
  }
};

namespace detail {
template <class T, int V>
adamw_kernel<T, V> bind_adamw(const call& c, const step_state* state) {
  adamw_kernel<T, V> k{in_line(c.result[0], true),
                       in_line(c.operand[1], c.operand[1].wide),
                       in_line(c.result[1], true),
                       in_line(c.result[2], true),
                       nullptr,
                       state,
                       {},
                       elements_of(c)};
  if (c.op->operands.size() > 4) k.clip = static_cast<const float*>(c.operand[4].data);
  for (int i = 0; i < 8; ++i) k.given[i] = c.op->scalars[i];
  return k;
}
}  // namespace detail

/// The updates of any number of weights. Those whose memory is not aligned take a launch each.
template <class T, class Queue>
void run_adamw(const Queue& q, std::span<const call> all, const step_state* state) {
  constexpr int width = full_width<T>;
  std::vector<adamw_kernel<T, width>> packed;
  for (const call& c : all) {
    const auto k = detail::bind_adamw<T, width>(c, state);
    if (detail::are_packed<width>({&k.weight, &k.gradient, &k.first, &k.second})) packed.push_back(k);
    else detail::launch(q, detail::bind_adamw<T, 1>(c, state), k.shared_bytes);
  }
  launch_many(q, packed, adamw_kernel<T, width>::shared_bytes);
}

template <class T, int V>
struct accumulate_kernel {
  static constexpr int threads = 256;

  chain_tensor sum, gradient;
  const step_state* state;
  long n;

  long blocks() const { return pieces_of(pieces_of(n, V) + (V > 1 ? n % V : 0), threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long packs = n / V, thread = t.block() * threads + t.thread(), rest = packs * V + thread - packs;
    if (thread < packs) add<V>(thread * V, state->pass == 0);
    else if (rest < n) add<1>(rest, state->pass == 0);
  }

 private:
  template <int N>
  CFP_DEVICE void add(long i, bool begins) const {
    fetched<N> raw[2];
    fetch<T, N>(gradient, i, raw[0]);
    if (!begins) fetch<T, N>(sum, i, raw[1]);
    float g[N], s[N];
    widen<T>(gradient, raw[0], g);
    widen<T>(sum, raw[1], s);
    CFP_UNROLL
    for (int j = 0; j < N; ++j) s[j] = begins ? g[j] : s[j] + g[j];
    store<T>(sum, i, s);
  }
};

template <class T, class Queue>
void run_accumulate(const Queue& q, std::span<const call> all, const step_state* state) {
  constexpr int width = full_width<T>;
  std::vector<accumulate_kernel<T, width>> packed;
  for (const call& c : all) {
    const chain_tensor sum = detail::in_line(c.result[0], true),
                       gradient = detail::in_line(c.operand[1], c.operand[1].wide);
    const long n = detail::elements_of(c);
    if (detail::are_packed<width>({&sum, &gradient})) packed.push_back({sum, gradient, state, n});
    else detail::launch(q, accumulate_kernel<T, 1>{sum, gradient, state, n});
  }
  launch_many(q, packed);
}

}  // namespace cfp::cuda
