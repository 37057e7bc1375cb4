// Attention of a sequence in pieces, which an axis may split without gathering keys and values.
#pragma once

#include <cfp/model/trace.hpp>
#include <cfp/op/activation.hpp>
#include <cfp/op/dropout.hpp>
#include <cfp/op/rounds.hpp>

#include <vector>

namespace cfp::inline v0_1::families {

/// Rounds in which queries that see `window` keys from their own backwards have met them all.
constexpr long rounds_of(long pieces, long length, double window) {
  for (long n = 1; n < pieces; ++n)
    if (window <= static_cast<double>((n - 1) * length) + 1) return n;
  return pieces;
}

/// Beside queries, keys and values.
struct pieces_form {
  double scale = 1;            ///< of scores
  double window = everywhere;  ///< keys that a query sees, from its own backwards
  double cap = 0;              ///< the soft limit of scores; 0: none
  double dropout = 0;          ///< share of what queries see that falls out
};

/// Causal attention of queries "batch heads pieces s depth" (or "batch heads group pieces s depth", of which `group`
/// share a head of keys), keys and values "batch heads pieces s depth". Keys and values go from piece to piece, once
/// less than there are rounds: of all pieces it is ring attention, of a window that is shorter its halo.
constexpr tensor attention_in_pieces(tensor q, tensor k, tensor v, const pieces_form& form) {
  const model& net = *q.net;
  const bool grouped = net.recorded[q.id].rank() == 6;
  const long pieces = net.size(k, 2), length = net.size(k, 3), rounds = rounds_of(pieces, length, form.window);
  std::vector<tensor> scores, values;
  for (long round = 0; round < rounds; ++round) {
    if (round > 0) k = from_before(k), v = from_before(v);
    tensor score = grouped ? group_piece_scores(q, k) : piece_scores(q, k);
    if (form.cap > 0) score = soft_cap(score, form.cap / form.scale);
    scores.push_back(
        seen_in_round(score, form.scale, static_cast<double>(round), static_cast<double>(length), form.window));
    values.push_back(v);
  }
  tensor largest = largest_score(scores[0]);
  for (std::size_t r = 1; r < scores.size(); ++r) largest = larger_score(largest, largest_score(scores[r]));
  tensor sum{}, out{};
  for (std::size_t r = 0; r < scores.size(); ++r) {
    const tensor shares = exponentials(scores[r], largest), total = total_of_rows(shares);
    const tensor left = form.dropout > 0 ? dropout(shares, form.dropout) : shares;
    const tensor y = grouped ? group_piece_sum(left, values[r]) : piece_sum(left, values[r]);
    sum = r == 0 ? total : add(sum, total);
    out = r == 0 ? y : add(out, y);
  }
  return divided_rows(out, sum);
}

/// Causal linear attention of "batch heads pieces s depth": a query reads the sum of key times value of all that
/// precede it, and its own. Pieces hand on their states alone, depth times depth numbers of each head, however long
/// they are.
constexpr tensor linear_attention(tensor q, tensor k, tensor v) {
  const tensor within = piece_sum(seen_before(piece_scores(q, k)), v);
  return add(within, read_state(q, summed_before(piece_state(k, v))));
}

/// A convolution of "batch rows columns in" images by 3 x 3 weights, zero beyond their borders: `weight(dy, dx)` is
/// that of the neighbour so far down and right, "in out". Where an axis splits rows, those at the borders go to
/// neighbours.
template <class Weight>
constexpr tensor convolution_3x3(tensor x, const Weight& weight) {
  const tensor rows[] = {from_before(x), x, from_behind(x)};
  tensor out{};
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      const tensor row = rows[dy + 1], at = dx == 0 ? row : dx < 0 ? left_of(row) : right_of(row);
      const tensor y = linear(at, weight(dy, dx));
      out = out.net == nullptr ? y : add(out, y);
    }
  return out;
}

}  // namespace cfp::families
