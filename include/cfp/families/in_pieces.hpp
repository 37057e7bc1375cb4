// Attention of a sequence in pieces, which an axis may split without gathering keys and values.
#pragma once

#include <cfp/model/trace.hpp>
#include <cfp/op/rounds.hpp>

#include <algorithm>

namespace cfp::inline v0_1::families {

/// Causal attention of queries, keys and values "batch heads pieces s depth", of which each query sees `window` keys
/// from its own backwards. Between pieces keys and values go `rounds_of(pieces, s, window)` - 1 times from neighbour to
/// neighbour: with as many rounds as pieces it is ring attention, with fewer the halo of a window.
constexpr long rounds_of(long pieces, long length, double window) {
  const double reached = (window + static_cast<double>(length) - 2) / static_cast<double>(length);
  return reached < static_cast<double>(pieces) ? 1 + static_cast<long>(reached) : pieces;
}
constexpr tensor attention_in_pieces(tensor q, tensor k, tensor v, double scale, double window = everywhere) {
  const model& net = *q.net;
  const long pieces = net.size(q, 2), length = net.size(q, 3),
             rounds = std::min(pieces, rounds_of(pieces, length, window));
  std::vector<tensor> scores, values;
  for (long round = 0; round < rounds; ++round) {
    if (round > 0) k = from_before(k), v = from_before(v);
    scores.push_back(
        seen_in_round(piece_scores(q, k), scale, static_cast<double>(round), static_cast<double>(length), window));
    values.push_back(v);
  }
  tensor largest = largest_score(scores[0]);
  for (std::size_t r = 1; r < scores.size(); ++r) largest = larger_score(largest, largest_score(scores[r]));
  tensor sum{}, out{};
  for (std::size_t r = 0; r < scores.size(); ++r) {
    const tensor shares = exponentials(scores[r], largest), total = total_of_rows(shares),
                 y = piece_sum(shares, values[r]);
    sum = r == 0 ? total : add(sum, total);
    out = r == 0 ? y : add(out, y);
  }
  return divided_rows(out, sum);
}

/// Causal linear attention of the same: a query reads the sum of key times value of all that precede it. Pieces hand on
/// their states alone, depth times depth numbers of each head, however long they are.
constexpr tensor linear_attention(tensor q, tensor k, tensor v) {
  const tensor within = piece_sum(seen_before(piece_scores(q, k)), v);
  return add(within, read_state(q, summed_before(piece_state(k, v))));
}

}  // namespace cfp::families
