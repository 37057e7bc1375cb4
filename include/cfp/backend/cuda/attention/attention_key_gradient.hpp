// The gradients of attention's keys and values: a block keeps some of both, and passes over the queries that see them,
// of all heads of their group. Scores are computed transposed, keys by queries, so that they are at once the left
// operand of the next product.
#pragma once

#include <cfp/backend/cuda/attention/attention_tile.hpp>

namespace cfp::inline v0_1::cuda {

/// Writes dk and dv. The workspace has been filled by attention_rows. Two tiles of queries, gradients of their results
/// and what the workspace has of them take turns.
template <class T, int D, int Keys = 128, int Queries = 64, int Rows = 16>
struct attention_key_gradient {
  static_assert(attention_padding % Queries == 0);
  static constexpr int threads = Keys / Rows * warp_size;
  static constexpr long shared_bytes = (2 * Keys + 4 * Queries) * D * static_cast<long>(sizeof(T)) +
                                       2 * Queries * static_cast<long>(sizeof(pack<float, 2>));
  using tile = attention_tile<T, D>;
  static constexpr int M = Rows / 16, N = Queries / 8;

  attention_view v;

  CFP_HOST_DEVICE long tiles() const { return (v.keys + Keys - 1) / Keys; }
  long blocks() const { return v.c.batch * v.c.heads * tiles(); }

  // (long: what is loaded while what is multiplied is the kernel)
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const auto [h, index] = part_of(t, v, tiles(), v.group);
    const int first = index * Keys, own = Rows * uniform(t, t.warp());
    T* const keys = reinterpret_cast<T*>(t.shared());
    T* const values = keys + Keys * D;
    T* const pairs = values + Keys * D;  // queries, gradients, queries, gradients
    auto* const rows =
        reinterpret_cast<pack<float, 4>*>(pairs + 4 * Queries * D);  // what the workspace has of two queries

    // The pass: tiles of queries that see any of the keys, from `start` on, of one head of the group after the other.
    const int start = (first > v.ahead ? first - v.ahead : 0) / Queries * Queries;
    const bool seen = start < v.queries;

    tile::template load<Keys>(t, v, keys, v.c.k, h, first, v.keys);
    tile::template load<Keys>(t, v, values, v.c.v, h, first, v.keys);
    if (seen) load_step(t, pairs, rows, h, 0, start);
    t.commit();
    float dk[M][tile::chunks][4] = {}, dv[M][tile::chunks][4] = {};

    for (int now = 0, group = 0, query = start; seen && group < v.group; now = 1 - now) {
      t.template wait<0>();
      t.sync();  // this step's tiles have come, and the others are no longer needed
      const bool last = query + Queries >= v.queries;  // of the head
      if (!last || group + 1 < v.group)
        load_step(t, pairs + (1 - now) * (2 * Queries * D), rows + (1 - now) * (Queries / 2), h,
                  last ? group + 1 : group, last ? start : query + Queries);
      t.commit();
      if (first + own <= query + Queries - 1 + v.ahead) {
        const T* const queries = pairs + now * (2 * Queries * D);
        const T* const d_out = queries + Queries * D;
        const pack<float, 4>* const of_queries =
            rows + now * (Queries / 2) + t.lane() % 4;  // of those of this lane's columns
        float x[M][N][4], dx[M][N][4];
        tile::multiply_rows(t, x, keys + own * D, queries);
        hide_queries(t, x, first + own, query);
        CFP_UNROLL
        for (int n = 0; n < N; ++n) {
          const pack<float, 4> row = of_queries[4 * n];
          CFP_UNROLL
          for (int m = 0; m < M; ++m) CFP_UNROLL
          for (int i = 0; i < 4; ++i) x[m][n][i] = t.exp2(x[m][n][i] * v.power - row.at[i % 2 * 2]);
        }
        tile::add_product(t, dv, x, d_out);
        tile::multiply_rows(t, dx, values + own * D, d_out);
        CFP_UNROLL
        for (int n = 0; n < N; ++n) {
          const pack<float, 4> row = of_queries[4 * n];
          CFP_UNROLL
          for (int m = 0; m < M; ++m) CFP_UNROLL
          for (int i = 0; i < 4; ++i) dx[m][n][i] = x[m][n][i] * (dx[m][n][i] - row.at[i % 2 * 2 + 1]);
        }
        tile::add_product(t, dk, dx, queries);
      }
      query += Queries;
      if (query >= v.queries) {
        query = start;
        ++group;
      }
    }
    if (!seen) {  // the keys' place is written to next
      t.template wait<0>();
      t.sync();
    }
    tile::scale(dk, v.scale);
    store(t, dk, keys, v.c.dk);
    store(t, dv, values, v.c.dv);
  }

 private:
  // The warp's rows, by way of the tile of what they are the gradient of.
  template <class Thread>
  CFP_DEVICE void store(const Thread& t, const float (&x)[M][tile::chunks][4], T* of,
                        const attention_tensor& to) const {
    const attention_part part = part_of(t, v, tiles(), v.group);
    const int own = Rows * uniform(t, t.warp()), key = part.index * Keys + own;
    tile::store(t, x, of + own * D, v.rows<T>(to, part.head) + key * to.row, to.row, v.keys - key, v.depth);
  }

  template <class Thread>
  CFP_DEVICE void load_step(const Thread& t, T* pair, pack<float, 4>* rows, attention_head h, int group,
                            int query) const {
    h.group = group;
    tile::template load<Queries>(t, v, pair, v.c.q, h, query, v.queries);
    tile::template load<Queries>(t, v, pair + Queries * D, v.c.d_out, h, query, v.queries);
    for (int i = t.thread(); i < Queries / 2; i += threads) t.copy_async(rows + i, v.workspace(h) + query + 2 * i);
  }

  // As hide_keys, where keys are rows. Keys past the end are not stored, and queries past the end have shares of 0.
  template <class Thread>
  CFP_DEVICE void hide_queries(const Thread& t, float (&x)[M][N][4], int key, int query) const {
    if (key + Rows - 1 <= query + v.ahead) return;
    CFP_UNROLL
    for (int m = 0; m < M; ++m) CFP_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int from = key + 16 * m + t.lane() / 4 + i / 2 * 8 - v.ahead - query - t.lane() % 4 * 2 -
                       i % 2;  // columns from here on see it
      CFP_UNROLL
      for (int n = 0; n < N; ++n)
        if (8 * n < from) x[m][n][i] = -infinite;
    }
  }
};

}  // namespace cfp::cuda
