// Tiles of attention in shared memory, and their products on tensor cores.
//
// Accumulators of a warp, float x[M][N][4], are 16 M rows and 8 N columns: with g = lane / 4 and c = 2 (lane % 4),
// x[m][n][i] is row 16 m + g + 8 (i / 2), column 8 n + c + i % 2.
#pragma once

#include <cfp/backend/cuda/attention/attention_call.hpp>

#include <cstdint>

namespace cfp::inline v0_1::cuda {

/// A number that is the same on all lanes of a warp; the compiler then knows. What is computed from it is computed anew
/// wherever it is asked for, and takes no registers in between.
template <class Thread>
CFP_DEVICE int uniform(const Thread& t, long x) {
  return t.shuffle(static_cast<int>(x), 0);
}

/// What a block of a kernel has: tile `index` of a head.
struct attention_part {
  attention_head head;
  int index;
};
/// Blocks go over the tiles of a head of queries, or of the first of every `group`, and then to the next.
template <class Thread>
CFP_DEVICE attention_part part_of(const Thread& t, const attention_view& v, long tiles, int group = 1) {
  const int block = uniform(t, t.block()), all = static_cast<int>(tiles);
  return {v.head(block / all * group), block % all};
}

/// Rows of D numbers. Their 16-byte chunks change places within a row so that the same chunk of 8 neighbouring rows,
/// which load_matrices reads at once, lies in all 32 banks. Places are counted in numbers.
template <class T, int D>
struct attention_tile {
  static_assert(sizeof(T) == 2 && D % 32 == 0, "rows are of 64 bytes or a multiple");
  static constexpr int chunks = D / 8,
                       turning = chunks % 8 == 0 ? 8 : 4;  ///< so many neighbouring chunks change places

  /// Where a chunk of a row begins.
  CFP_HOST_DEVICE static int place(int row, int chunk) {
    return row * D + 8 * (chunk ^ (turning == 8 ? row & 7 : row >> 1 & 3));
  }
  /// Where one begins that lies `rows`, a multiple of 8, and `more` chunks further. For an even chunk, or a place that
  /// is 1 past an even one, and an even `more`.
  CFP_HOST_DEVICE static int further(int place, int rows, int more) {
    return (place ^ 8 * (more % turning)) + 8 * (more - more % turning) + rows * D;
  }

  /// Begins to copy `Rows` rows of a head, from `first` on. Rows from `rows` on, and columns past the depth, become 0.
  /// A thread has one chunk of every `at_once`th row.
  template <int Rows, class Thread>
  CFP_DEVICE static void load(const Thread& t, const attention_view& v, T* tile, const attention_tensor& x,
                              const attention_head& h, int first, int rows) {
    constexpr int at_once = Thread::threads / chunks / 8 * 8;
    static_assert(at_once > 0 && Rows % at_once == 0);
    const int row = t.thread() / chunks, chunk = t.thread() % chunks;
    if (Thread::threads > at_once * chunks && row >= at_once) return;
    T* const to = tile + place(row, chunk);
    const int left = chunk * 8 < v.depth ? rows - first - row : 0;
    const T* from = v.rows<const T>(x, h) + first * x.row +
                    (row * static_cast<int>(x.row) + chunk * 8);  // within a tile, 32 bits save registers
    CFP_UNROLL
    for (int n = 0; n < Rows; n += at_once) {
      t.copy_or_clear_async(to + n * D, from, n < left);
      from += at_once * x.row;
    }
  }

  template <int M>
  CFP_DEVICE static void scale(float (&x)[M][chunks][4], float by) {
    CFP_UNROLL
    for (int m = 0; m < M; ++m) CFP_UNROLL
    for (int n = 0; n < chunks; ++n) CFP_UNROLL
    for (int i = 0; i < 4; ++i) x[m][n][i] *= by;
  }

  /// A warp's accumulators to memory, by way of rows of a tile that only this warp still uses.
  template <int M, class Thread>
  CFP_DEVICE static void store(const Thread& t, const float (&x)[M][chunks][4], T* tile, T* to, long step, int rows,
                               int depth) {
    using chunk_t = pack<T, 8>;
    t.sync_warp();
    CFP_UNROLL
    for (int m = 0; m < M; ++m) CFP_UNROLL
    for (int n = 0; n < chunks; ++n) CFP_UNROLL
    for (int h = 0; h < 2; ++h)
      *reinterpret_cast<pack<T, 2>*>(tile + place(16 * m + 8 * h + t.lane() / 4, n) + t.lane() % 4 * 2) =
          __builtin_bit_cast(pack<T, 2>, t.template narrow<T>(x[m][n][2 * h], x[m][n][2 * h + 1]));
    t.sync_warp();
    for (int i = t.lane(); i < 16 * M * chunks; i += warp_size) {
      const int row = i / chunks, chunk = i % chunks;
      if (row < rows && chunk * 8 < depth)
        *reinterpret_cast<chunk_t*>(to + row * step + chunk * 8) =
            *reinterpret_cast<const chunk_t*>(tile + place(row, chunk));
    }
  }

  /// x = a b^T: 16 M rows of a tile by 8 N rows of another.
  template <int M, int N, class Thread>
  CFP_DEVICE static void multiply_rows(const Thread& t, float (&x)[M][N][4], const T* a, const T* b) {
    static_assert(N % 2 == 0);
    CFP_UNROLL
    for (int m = 0; m < M; ++m) CFP_UNROLL
    for (int n = 0; n < N; ++n) CFP_UNROLL
    for (int i = 0; i < 4; ++i) x[m][n][i] = 0;
    const int of_a = place(t.lane() % 16, t.lane() / 16),
              of_b = place(t.lane() / 16 * 8 + t.lane() % 8, t.lane() / 8 % 2);
    CFP_UNROLL
    for (int k = 0; k < chunks; k += 2) {
      std::uint32_t left[M][4];
      CFP_UNROLL
      for (int m = 0; m < M; ++m) t.load_matrices(left[m], a + further(of_a, 16 * m, k));
      CFP_UNROLL
      for (int n = 0; n < N; n += 2) {
        std::uint32_t right[4];
        t.load_matrices(right, b + further(of_b, 8 * n, k));
        multiply_pair(t, x, n, left, right);
      }
    }
  }

  /// x += p b: accumulators, rounded to T, by 8 K rows of a tile.
  template <int M, int K, class Thread>
  CFP_DEVICE static void add_product(const Thread& t, float (&x)[M][chunks][4], const float (&p)[M][K][4], const T* b) {
    static_assert(K % 2 == 0);
    const int of_b = place(t.lane() % 16, t.lane() / 16);
    CFP_UNROLL
    for (int k = 0; k < K; k += 2) {
      std::uint32_t left[M][4];
      CFP_UNROLL
      for (int m = 0; m < M; ++m) CFP_UNROLL
      for (int i = 0; i < 4; ++i)
        left[m][i] = t.template narrow<T>(p[m][k + i / 2][i % 2 * 2], p[m][k + i / 2][i % 2 * 2 + 1]);
      CFP_UNROLL
      for (int n = 0; n < chunks; n += 2) {
        std::uint32_t right[4];
        t.load_matrices_transposed(right, b + further(of_b, 8 * k, n));
        multiply_pair(t, x, n, left, right);
      }
    }
  }

 private:
  // Columns n and n + 1 (of 8) += left right.
  template <int M, int N, class Thread>
  CFP_DEVICE static void multiply_pair(const Thread& t, float (&x)[M][N][4], int n, const std::uint32_t (&left)[M][4],
                                       const std::uint32_t (&right)[4]) {
    const std::uint32_t one[2] = {right[0], right[1]}, two[2] = {right[2], right[3]};
    CFP_UNROLL
    for (int m = 0; m < M; ++m) {
      t.template multiply_add<T>(x[m][n], left[m], one);
      t.template multiply_add<T>(x[m][n + 1], left[m], two);
    }
  }
};

/// Scores of keys that a query does not see become -infinity; `query` and `key` are those of row and column 0.
template <int M, int N, class Thread>
CFP_DEVICE void hide_keys(const Thread& t, const attention_view& v, float (&x)[M][N][4], int query, int key) {
  if (key + 8 * N <= v.seen(query)) return;  // the first query sees all of them, so others do
  CFP_UNROLL
  for (int m = 0; m < M; ++m) CFP_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int seen = v.seen(query + 16 * m + t.lane() / 4 + i / 2 * 8) - key - t.lane() % 4 * 2 - i % 2;
    CFP_UNROLL
    for (int n = 0; n < N; ++n)
      if (8 * n >= seen) x[m][n][i] = -infinite;
  }
}

}  // namespace cfp::cuda
