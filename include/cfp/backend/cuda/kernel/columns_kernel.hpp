// Chains whose steps reduce all rows to one. Blocks sum parts of the rows, V columns a thread; `fold_kernel` sums the
// parts. How many parts there are depends on sizes alone, and each sum has one order: results do not change from run to
// run.
#pragma once

#include <cfp/backend/cuda/chain/chain_values.hpp>

namespace cfp::inline v0_1::cuda {

template <class Chain, class T, int V>
struct columns_kernel {
  static constexpr int threads = 256;
  static constexpr int groups = threads / warp_size;  // of rows; within one, lanes stand for columns
  static constexpr int wide = warp_size * V;          // columns of a block

  chain_call c;  // results are not written
  row_order order;
  float* partial;  // [step][part][column]
  long rows = 0, parts = 1, part_rows = 0;

  columns_kernel(const chain_call& from, float* memory)
      : c(from), order(from), partial(memory), rows(from.rows()), parts(parts_of(from)),
        part_rows(pieces_of(rows, parts)) {}

  /// Enough blocks to fill a GPU, each with rows enough that writing its sums is a small part of the work.
  static long parts_of(const chain_call& from) {
    const long rows = from.rows(), column_blocks = pieces_of(from.length, wide);
    const long wanted = pieces_of(1056, column_blocks), most = pieces_of(rows, 4 * groups);
    return wanted < most ? wanted : most;
  }
  long blocks() const { return pieces_of(c.length, wide) * parts; }
  static constexpr long shared_bytes = static_cast<long>(groups) * wide * static_cast<long>(sizeof(float));

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long column = (t.block() / parts * warp_size + t.lane()) * V, part = t.block() % parts;
    const long end = (part + 1) * part_rows < rows ? (part + 1) * part_rows : rows;
    float sum[static_cast<std::size_t>(values::steps)][V];
    start(sum, typename values::all_steps{});
    if (column < c.length) {
      long row = part * part_rows + t.warp();
      for (; row + (times - 1) * groups < end; row += times * groups) add_rows<times>(row, column, sum);
      for (; row < end; row += groups) add_rows<1>(row, column, sum);
    }
    finish(t, column, part, sum, typename values::all_steps{});
  }

 private:
  using values = chain_values<Chain, T, V>;
  using sums = float[static_cast<std::size_t>(values::steps)][V];
  static constexpr int times = 2;  // rows on their way at a time

  template <int S>
  static constexpr reduction combine_of = signature<typename Chain::template step<S>::op>::combine;

  template <std::size_t... S>
  CFP_DEVICE static void start(sums& sum, std::index_sequence<S...>) {
    (start_step<static_cast<int>(S)>(sum), ...);
  }
  template <int S>
  CFP_DEVICE static void start_step(sums& sum) {
    CFP_UNROLL
    for (int j = 0; j < V; ++j) sum[S][j] = identity<combine_of<S>>;
  }

  template <int Times>
  CFP_DEVICE void add_rows(long row, long column, sums& sum) const {
    typename values::fetched_inputs f[Times];
    CFP_UNROLL
    for (int n = 0; n < Times; ++n)
      fetch_all(values(c, order, row + n * groups), column, f[n], typename values::all_inputs{});
    CFP_UNROLL
    for (int n = 0; n < Times; ++n)
      add_row(values(c, order, row + n * groups), column, f[n], sum, typename values::all_steps{});
  }
  template <std::size_t... I>
  CFP_DEVICE static void fetch_all(const values& v, long k, typename values::fetched_inputs& f,
                                   std::index_sequence<I...>) {
    (v.template fetch_input<static_cast<int>(I)>(k, f[I]), ...);
  }
  template <std::size_t... S>
  CFP_DEVICE static void add_row(const values& v, long k, const typename values::fetched_inputs& f, sums& sum,
                                 std::index_sequence<S...>) {
    (add_step<static_cast<int>(S)>(v, k, f, sum), ...);
  }
  template <int S>
  CFP_DEVICE static void add_step(const values& v, long k, const typename values::fetched_inputs& f, sums& sum) {
    float x[V];
    v.template values<S>(f, k, x);
    CFP_UNROLL
    for (int j = 0; j < V; ++j) sum[S][j] = combine<combine_of<S>>(sum[S][j], x[j]);
  }

  template <class Thread, std::size_t... S>
  CFP_DEVICE void finish(const Thread& t, long column, long part, const sums& sum, std::index_sequence<S...>) const {
    (finish_step<static_cast<int>(S)>(t, column, part, sum), ...);
  }
  template <int S, class Thread>
  CFP_DEVICE void finish_step(const Thread& t, long column, long part, const sums& sum) const {
    float* memory = reinterpret_cast<float*>(t.shared());  // [group][element of a vector][lane]
    CFP_UNROLL
    for (int j = 0; j < V; ++j) memory[(t.warp() * V + j) * warp_size + t.lane()] = sum[S][j];
    t.sync();
    for (int j = t.warp(); j < V && column < c.length; j += groups) {
      float all = memory[j * warp_size + t.lane()];
      for (int g = 1; g < groups; ++g) all = combine<combine_of<S>>(all, memory[(g * V + j) * warp_size + t.lane()]);
      partial[(S * parts + part) * c.length + column + j] = all;
    }
    t.sync();
  }
};

}  // namespace cfp::cuda
