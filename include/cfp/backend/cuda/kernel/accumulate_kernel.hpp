// Gradients added up over micro-batches, in place, once through all their elements, many tensors in a launch.
#pragma once

#include <cfp/backend/cuda/chain/run_chain.hpp>
#include <cfp/backend/cuda/kernel/many_kernel.hpp>
#include <cfp/backend/cuda/kernel/step_state.hpp>
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
struct accumulate_kernel {
  static constexpr int threads = 256;

  chain_tensor sum, gradient;
  const step_state* state;
  long n;

  long blocks() const { return pieces_of(pieces_of(n, V) + (V > 1 ? n % V : 0), threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long packs = n / V, thread = t.block() * threads + t.thread(), rest = packs * V + thread - packs;
    if (thread < packs) add<V>(thread * V, state->first);
    else if (rest < n) add<1>(rest, state->first);
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
