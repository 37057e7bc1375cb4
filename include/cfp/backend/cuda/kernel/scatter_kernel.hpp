// Adds rows to the rows of a table that indices name: sorted by index (stably), then the rows of each index are added
// in their order, so that sums are the same in every run. Many rows of one index (padding, say) are added in pieces,
// and then those. Rows that no index names are zero.
#pragma once

#include <cfp/backend/cuda/kernel/bind_map.hpp>

#include <bit>

namespace cfp::inline v0_1::cuda {

/// Table positions, and the numbers of the rows that name them; positions outside this piece of the table come last.
struct position_kernel {
  static constexpr int threads = 256;

  chain_call c;
  row_order order;
  std::int32_t *position, *number;
  long rows;

  long blocks() const { return pieces_of(rows, threads); }
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long n = t.block() * threads + t.thread();
    if (n >= rows) return;
    long at = 0, rest = n;
    for (int d = order.dims() - 1; d >= 0; --d) at += order.index(d, rest) * c.positions.stride[d];
    const long p = static_cast<const std::int32_t*>(c.positions.data)[at] - c.table_first;
    position[n] = static_cast<std::int32_t>(p >= 0 && p < c.table_size ? p : c.table_size);
    number[n] = static_cast<std::int32_t>(n);
  }
};

/// Sorted rows are added in pieces of so many. Of each piece two sums may be parts of one: its first, that goes on from
/// the piece before, and its last, that goes on in the next.
constexpr long scatter_piece = 128;

template <class Chain, class T, int V>
struct scatter_kernel {
  static constexpr int threads = 256;

  chain_call c;  // rows of the operands; the result's stride along the table is table_step
  row_order order;
  divisor vectors;
  const std::int32_t *position, *number;  // sorted
  long rows, table_step;
  float* parts;

  long blocks() const { return pieces_of(rows * vectors.by(), threads); }
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    long k;
    const long first = vectors.divide(t.block() * threads + t.thread(), k);
    if (first >= rows) return;
    k *= V;
    const std::int32_t here = position[first];
    const bool begins = first == 0 || position[first - 1] != here;
    if (here >= c.table_size || (!begins && first % scatter_piece != 0)) return;  // another thread begins with these
    const long next = (first / scatter_piece + 1) * scatter_piece, end = next < rows ? next : rows;
    float sum[V] = {};
    long n = first;
    for (; n + times <= end && position[n + times - 1] == here; n += times) add<times>(n, k, sum);
    for (; n < end && position[n] == here; ++n) add<1>(n, k, sum);
    const bool ends = n == rows || position[n] != here;
    if (begins && ends) return store<T>(c.result[0], here * table_step + k * c.result[0].along, sum);
    float* const part = parts + (first / scatter_piece * 2 + (begins ? 1 : 0)) * c.length + k;
    for (int j = 0; j < V; ++j) part[j] = sum[j];
  }

 private:
  static constexpr int times = 4;  // rows on their way at a time
  using values = chain_values<Chain, T, V>;

  template <int Times>
  CFP_DEVICE void add(long n, long k, float (&sum)[V]) const {
    typename values::fetched_inputs f[Times];
    CFP_UNROLL
    for (int i = 0; i < Times; ++i) fetch_all(values(c, order, number[n + i]), k, f[i], typename values::all_inputs{});
    CFP_UNROLL
    for (int i = 0; i < Times; ++i) {
      float x[V];
      values(c, order, number[n + i]).template values<0>(f[i], k, x);
      CFP_UNROLL
      for (int j = 0; j < V; ++j) sum[j] += x[j];
    }
  }
  template <std::size_t... I>
  CFP_DEVICE static void fetch_all(const values& v, long k, typename values::fetched_inputs& f,
                                   std::index_sequence<I...>) {
    (v.template fetch_input<static_cast<int>(I)>(k, f[I]), ...);
  }
};

/// Adds the parts of sums that went through several pieces, in their order.
template <class T, int V>
struct scatter_parts_kernel {
  static constexpr int threads = 256;

  chain_call c;
  divisor vectors;
  const std::int32_t* position;  // sorted
  long rows, table_step;
  const float* parts;

  long blocks() const { return pieces_of(pieces_of(rows, scatter_piece) * vectors.by(), threads); }
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    long k;
    const long piece = vectors.divide(t.block() * threads + t.thread(), k), from = piece * scatter_piece;
    long next = from + scatter_piece;
    if (next >= rows) return;
    k *= V;
    const std::int32_t here = position[next - 1];
    const bool begins = from == 0 || position[from - 1] != here;
    if (here >= c.table_size || !begins || position[next] != here) return;
    float sum[V];
    for (int j = 0; j < V; ++j) sum[j] = parts[(2 * piece + 1) * c.length + k + j];
    for (long p = piece + 1; next < rows && position[next] == here; ++p, next += scatter_piece)
      for (int j = 0; j < V; ++j) sum[j] += parts[2 * p * c.length + k + j];
    store<T>(c.result[0], here * table_step + k * c.result[0].along, sum);
  }
};

/// An operator whose result has the one-hot factor.
template <class Op>
struct bound_scatter {
  static constexpr int operands = signature<Op>::operands;

  bool usual = false;  ///< the result is a table of rows, and indices are those of whole rows
  chain_call chain;
  long table_step = 0, results = 1;

  explicit bound_scatter(const call& c) {
    const map_loops<operands> loops(c);
    loop_nest<operands + 1> rows;  // of the result, without the table
    const call_tensor* all[operands + 1];
    for (int i = 0; i < operands; ++i) all[i] = &c.operand[i];
    all[operands] = &c.result[0];
    bool whole_rows = signature<Op>::coordinates == 0;  // and the table is the result
    for (signed char f : c.r().results[0].factors) {
      results *= c.size[f];
      if (c.r().factors[f].one_hot) {
        chain.table_first = c.start[f];
        chain.table_size = c.size[f];
        table_step = c.result[0].stride[f];
      } else if (c.size[f] > 1) {
        rows.add(c, f, all);
        whole_rows = whole_rows && c.operand[Op::index_operand].stride[f] == 0;
      }
    }
    rows.collapse(c.r());
    usual = whole_rows && rows.depth <= 1 && loops.inner.depth <= max_rows && chain.table_size > 0;
    if (!usual) return;
    chain.dims = loops.inner.depth;
    chain.length = rows.depth > 0 ? rows.size[0] : 1;
    for (int d = 0; d < chain.dims; ++d)
      chain.size[d] = loops.inner.size[d], chain.positions.stride[d] = loops.inner.stride[Op::index_operand][d];
    chain.positions.data = c.operand[Op::index_operand].data;
    for (int i = 0; i + 1 < operands; ++i) {
      const int from = i + (i >= Op::index_operand ? 1 : 0);
      chain.input[i].data = c.operand[from].data;
      chain.input[i].wide = c.operand[from].wide;
      for (int d = 0; d < chain.dims; ++d) chain.input[i].stride[d] = loops.inner.stride[from][d];
      chain.input[i].along = rows.depth > 0 ? rows.stride[from][0] : 0;
    }
    chain.result[0].data = c.result[0].data;
    chain.result[0].wide = c.result[0].wide;
    chain.result[0].along = rows.depth > 0 ? rows.stride[operands][0] : 1;
    for (int s = 0; s < Op::scalars; ++s) chain.scalar[0][s] = static_cast<float>(c.op->scalars[s]);
  }

  /// Bytes of a list of positions or numbers, and of the parts of sums.
  long list_bytes() const { return pieces_of(chain.rows() * static_cast<long>(sizeof(std::int32_t)), 256) * 256; }
  long parts_bytes() const {
    const long pieces = pieces_of(chain.rows(), scatter_piece);
    return pieces > 1 ? pieces_of(2 * pieces * chain.length * static_cast<long>(sizeof(float)), 256) * 256 : 0;
  }
  /// Of a position, which is at most the table's size.
  int bits() const { return static_cast<int>(std::bit_width(static_cast<unsigned long>(chain.table_size))); }
  template <class Queue>
  long workspace(const Queue& q) const {
    return 4 * list_bytes() + parts_bytes() + q.sort_bytes(chain.rows(), bits());
  }
};

template <class Chain, class T, int V, class Queue, class Op>
void scatter_sorted(const Queue& q, const bound_scatter<Op>& b, const std::int32_t* position,
                    const std::int32_t* number, float* parts) {
  const long rows = b.chain.rows();
  const divisor vectors(b.chain.length / V);
  detail::launch(q, scatter_kernel<Chain, T, V>{b.chain, row_order(b.chain), vectors, position, number, rows,
                                                b.table_step, parts});
  if (rows > scatter_piece)
    detail::launch(q, scatter_parts_kernel<T, V>{b.chain, vectors, position, rows, b.table_step, parts});
}

/// `b` is usual.
template <class Op, class T, class Queue>
void run_scatter(const Queue& q, const bound_scatter<Op>& b, void* workspace) {
  using one = chain_of_one<Op, false>;
  auto* memory = static_cast<std::byte*>(workspace);
  const auto list = [&](int i) { return reinterpret_cast<std::int32_t*>(memory + i * b.list_bytes()); };
  auto* const parts = reinterpret_cast<float*>(memory + 4 * b.list_bytes());
  const long rows = b.chain.rows();
  q.zero(b.chain.result[0].data, b.results * (is_wide<T>(b.chain.result[0]) ? 4 : static_cast<long>(sizeof(T))));
  detail::launch(q, position_kernel{b.chain, row_order(b.chain), list(0), list(1), rows});
  q.sort_pairs(list(0), list(2), list(1), list(3), rows, b.bits(), memory + 4 * b.list_bytes() + b.parts_bytes());
  constexpr int width = full_width<T>;
  chain_call packed = b.chain;  // positions are read a row at a time
  packed.positions.along = 0;
  if (detail::is_packed<one, T>(packed, mapping::flat) && b.table_step % width == 0)
    scatter_sorted<one, T, width>(q, b, list(2), list(3), parts);
  else scatter_sorted<one, T, 1>(q, b, list(2), list(3), parts);
}

}  // namespace cfp::cuda
