// Attention of a sequence in pieces: each piece of queries meets its own keys, then those of the piece before it, and
// so on, round by round, while keys and values go on from piece to piece (`scan.hpp`). Of rounds as many as there are
// pieces it is ring attention (arXiv 2310.01889); of a window's length its halo; of linear attention what pieces leave
// is added up. Softmax over all rounds is exponentials relative to the largest score of any, over their sum.
#pragma once

#include <cfp/op/catalogue.hpp>
#include <cfp/op/scan.hpp>
#include <cfp/op/softmax.hpp>

namespace cfp::inline v0_1 {

/// A sequence in pieces, and back. Give the number of pieces as `size_of{"pieces", n}`.
inline constexpr op<"b h (pieces s) d -> b h pieces s d"> in_pieces;
inline constexpr op<"b h pieces s d -> b h (pieces s) d"> of_pieces;

inline constexpr op<"b h group (pieces s) d -> b h group pieces s d"> in_pieces_of_group;
inline constexpr op<"b h group pieces s d -> b h group (pieces s) d"> of_pieces_of_group;

inline constexpr struct piece_scores_t : contraction<"b h p q d, b h p k d -> b h p q k", piece_scores_t> {
} piece_scores;
inline constexpr struct piece_sum_t : contraction<"b h p q k, b h p k d -> b h p q d", piece_sum_t> {
} piece_sum;

/// The same with `group` queries to each head of keys and values.
inline constexpr struct group_piece_scores_t
    : contraction<"b h group p q d, b h p k d -> b h group p q k", group_piece_scores_t> {
} group_piece_scores;
inline constexpr struct group_piece_sum_t
    : contraction<"b h group p q k, b h p k d -> b h group p q d", group_piece_sum_t> {
} group_piece_sum;

/// Scores of a round, scaled; of keys that a query does not see, -infinity. Scalars: the scale, the round, the length
/// of a piece, and how many keys from its own backwards a query sees. Piece p has the keys of piece p - round, of which
/// there must be one.
inline constexpr struct seen_in_round_t : op<"... p q k -> ... p q k; index p q k", seen_in_round_t> {
  static constexpr int scalars = 4;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T scale, T round, T length, T window, long p, long q, long k) {
    const T behind = round * length + static_cast<T>(static_cast<double>(q - k));
    return static_cast<T>(static_cast<double>(p)) < round || behind < T(0) || !(behind < window) ? -infinity<T>
                                                                                                 : x * scale;
  }
} seen_in_round;

/// The largest score of each query in a round, ...
inline constexpr struct largest_score_t : op<"... k -> ...; max k", largest_score_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} largest_score;

/// ... of two rounds, ...
inline constexpr struct larger_score_t : op<"..., ... -> ...", larger_score_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x < y ? y : x;
  }
} larger_score;

/// ... exponentials relative to it, which what is added up of them is divided by at the end.
inline constexpr struct exponentials_t : op<"... k, ... -> ... k", exponentials_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T largest) {
    return exp(x - largest);
  }
} exponentials;
inline constexpr op<"... k -> ..."> total_of_rows;
inline constexpr struct divided_rows_t : op<"... d, ... -> ... d", divided_rows_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T by) {
    return x / by;
  }
} divided_rows;

/// Scores as they are where a query sees the key, and 0 elsewhere: linear attention within a piece.
inline constexpr struct seen_before_t : op<"... q k -> ... q k; index q k", seen_before_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, long q, long k) {
    return k <= q ? x : T(0);
  }
} seen_before;

/// What a piece adds to the state of linear attention, and what its queries read there.
inline constexpr struct piece_state_t : contraction<"b h p s k, b h p s v -> b h p k v", piece_state_t> {
} piece_state;
inline constexpr struct read_state_t : contraction<"b h p s k, b h p k v -> b h p s v", read_state_t> {
} read_state;

}  // namespace cfp
