// Dropout of a shard: random words belong to places in the whole tensor.
#pragma once

#include <cfp/backend/cuda/chain/run_chain.hpp>
#include <cfp/backend/cuda/kernel/step_state.hpp>
#include <cfp/op/dropout.hpp>
#include <cfp/program/loop_nest.hpp>

namespace cfp::inline v0_1::cuda {

template <class T, int V>
struct dropout_kernel {
  static constexpr int threads = 256;

  chain_call c;  // stride of result 1: in the whole tensor
  row_order order;
  divisor vectors;      // of a row
  long all, first;      // `first`: the shard's first element in the whole tensor
  std::uint32_t least;  // random word that is kept
  float scale;
  std::uint64_t seed;
  int which, passes;
  const step_state* state;

  dropout_kernel(const call& from, const chain_call& bound, long begins, const step_state* s)
      : c(bound), order(bound), vectors(bound.length / V), all(bound.rows() * vectors.by()), first(begins),
        least(dropout_t::least(from.op->scalars[0])), scale(static_cast<float>(1 / (1 - from.op->scalars[0]))),
        seed(from.seed), which(from.forward), passes(from.passes), state(s) {}

  long blocks() const { return pieces_of(all, threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long vector = t.block() * threads + t.thread();
    if (vector >= all) return;
    long k, row = vectors.divide(vector, k);
    k *= V;
    long in_at = k * c.input[0].along, out_at = k * c.result[0].along, place = first + k * c.result[1].along;
    for (int d = order.dims() - 1; d >= 0; --d) {
      const long i = order.index(d, row);
      in_at += i * c.input[0].stride[d];
      out_at += i * c.result[0].stride[d];
      place += i * c.result[1].stride[d];
    }
    fetched<V> f;
    float x[V];
    fetch<T, V>(c.input[0], in_at, f);
    widen<T>(c.input[0], f, x);
    const auto pass = static_cast<std::uint64_t>(state->step * passes + state->pass);
    CFP_UNROLL
    for (int j = 0; j < V; j += 4) {  // places of a vector are four by four
      const auto words = dropout_t::words(seed, which, pass, static_cast<std::uint64_t>((place + j) / 4));
      CFP_UNROLL
      for (int i = 0; i < 4 && j + i < V; ++i)
        x[j + i] = word(words.v, V == 1 ? static_cast<int>(place % 4) : i) >= least ? x[j + i] * scale : 0.0f;
    }
    store<T>(c.result[0], out_at, x);
  }

 private:
  // By comparison: what is indexed by a number known only now is not held in registers.
  template <class Words>
  CFP_DEVICE static std::uint32_t word(const Words& w, int i) {
    return i < 2 ? (i == 0 ? w[0] : w[1]) : (i == 2 ? w[2] : w[3]);
  }
};

template <class T, class Queue>
void run_dropout(const Queue& q, const call& c, const step_state* state) {
  const pattern& dims = c.r().operands[0];
  call_tensor whole;
  long step = 1, first = 0;
  for (int d = dims.factors.size() - 1; d >= 0; --d) {
    whole.stride[dims.factors[d]] = step;
    first += c.start[dims.factors[d]] * step;
    step *= c.op->whole_of(dims.factors[d]);
  }
  const call_tensor* all[3] = {&c.operand[0], &c.result[0], &whole};
  loop_nest<3> loops;
  for (signed char f : dims.factors)
    if (c.size[f] > 1) loops.add(c, f, all);
  loops.collapse(c.r());
  chain_call bound;
  chain_tensor* const to[3] = {&bound.input[0], &bound.result[0], &bound.result[1]};
  bound.dims = loops.depth > 0 ? loops.depth - 1 : 0;
  bound.length = loops.depth > 0 ? loops.size[loops.depth - 1] : 1;
  for (int t = 0; t < 3; ++t) {
    if (t < 2) to[t]->data = all[t]->data, to[t]->wide = all[t]->wide;
    for (int d = 0; d < bound.dims; ++d) to[t]->stride[d] = loops.stride[t][d];
    to[t]->along = loops.depth > 0 ? loops.stride[t][loops.depth - 1] : 1;
  }
  bool even = bound.length % full_width<T> == 0 && first % 4 == 0 && bound.result[1].along == 1;
  for (int d = 0; d < bound.dims; ++d) {
    bound.size[d] = loops.size[d];
    even = even && bound.result[1].stride[d] % 4 == 0;
  }
  if (even && detail::is_packed(bound.input[0], bound.dims, full_width<T>) &&
      detail::is_packed(bound.result[0], bound.dims, full_width<T>))
    detail::launch(q, dropout_kernel<T, full_width<T>>(c, bound, first, state));
  else detail::launch(q, dropout_kernel<T, 1>(c, bound, first, state));
}

}  // namespace cfp::cuda
