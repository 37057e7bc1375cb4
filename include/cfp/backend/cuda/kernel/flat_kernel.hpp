// Chains without a reduction: every thread computes V neighbouring elements, a few times.
#pragma once

#include <cfp/backend/cuda/chain/chain_values.hpp>

namespace cfp::inline v0_1::cuda {

/// `Selects`: inputs are taken from the table positions that indices name; those outside this piece of the table give
/// zero.
template <class Chain, class T, int V, bool Selects = false>
struct flat_kernel {
  static constexpr int threads = 256;
  static constexpr int times = inputs_of<Chain> <= 2 ? 2 : 1;  // more loads on their way where registers allow it

  chain_call c;
  row_order order;
  divisor vectors;  // of a row
  long all = 0;

  explicit flat_kernel(const chain_call& from)
      : c(from), order(from), vectors(from.length / V), all(from.rows() * vectors.by()) {}

  long blocks() const { return pieces_of(all, threads * times); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long first = t.block() * threads * times + t.thread();
    if (first + (times - 1) * threads < all) {
      run<times>(first);
    } else {
      for (int n = 0; n < times; ++n)
        if (first + n * threads < all) run<1>(first + n * threads);
    }
  }

 private:
  using values = chain_values<Chain, T, V>;

  template <int Times>
  CFP_DEVICE void run(long first) const {
    typename values::fetched_inputs f[Times];
    values v[Times];
    long at[Times];
    bool held[Times];
    CFP_UNROLL
    for (int n = 0; n < Times; ++n) {
      v[n] = find(first + n * threads, at[n]);
      held[n] = select(v[n], first + n * threads, at[n]);
      if (held[n]) fetch_all(v[n], at[n], f[n], typename values::all_inputs{});
    }
    CFP_UNROLL
    for (int n = 0; n < Times; ++n) keep_all(v[n], at[n], f[n], held[n], typename values::all_steps{});
  }
  CFP_DEVICE values find(long vector, long& k) const {
    const long row = vectors.divide(vector, k);
    k *= V;
    return values(c, order, row);
  }
  CFP_DEVICE bool select(values& v, long vector, long k) const {
    if constexpr (Selects) {
      long left, at = k * c.positions.along, row = vectors.divide(vector, left);
      for (int d = order.dims() - 1; d >= 0; --d) at += order.index(d, row) * c.positions.stride[d];
      const long position = static_cast<const std::int32_t*>(c.positions.data)[at] - c.table_first;
      if (position < 0 || position >= c.table_size) return false;
      CFP_UNROLL
      for (int i = 0; i < values::inputs; ++i) v.move_input(i, position * c.table_stride[i]);
    }
    return true;
  }
  template <std::size_t... I>
  CFP_DEVICE static void fetch_all(const values& v, long k, typename values::fetched_inputs& f,
                                   std::index_sequence<I...>) {
    (v.template fetch_input<static_cast<int>(I)>(k, f[I]), ...);
  }
  template <std::size_t... S>
  CFP_DEVICE static void keep_all(const values& v, long k, const typename values::fetched_inputs& f, bool held,
                                  std::index_sequence<S...>) {
    (keep<static_cast<int>(S)>(v, k, f, held), ...);
  }
  template <int S>
  CFP_DEVICE static void keep(const values& v, long k, const typename values::fetched_inputs& f,
                              [[maybe_unused]] bool held) {
    float x[V] = {};
    if (!Selects || held) v.template values<S>(f, k, x);
    v.template keep<S>(k, x);
  }
};

}  // namespace cfp::cuda
