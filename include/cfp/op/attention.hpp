// Heads: taking a fused query-key-value apart, scores, weighted sum, and putting heads together.
#pragma once

#include <cfp/op/catalogue.hpp>

namespace cfp::inline v0_1 {

namespace detail {
struct join_qkv_t : op<"b heads s d, b heads s d, b heads s d -> b s (three heads d); whole three", join_qkv_t> {
  static constexpr op_body body = op_body::stack;
  static constexpr linearity linear = linearity::all;
  static constexpr bool derived = true;
};
}  // namespace detail

/// Query, key and value from one fused projection, heads outside the sequence.
inline constexpr struct split_qkv_t
    : op<"b s (three heads d) -> b heads s d, b heads s d, b heads s d; whole three", split_qkv_t> {
  static constexpr op_body body = op_body::unstack;
  static constexpr linearity linear = linearity::all;
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::join_qkv_t>,
       detail::join_qkv_t::rule_source,
       {{{gradient_source::gradient, 0}, {gradient_source::gradient, 1}, {gradient_source::gradient, 2}}, 3},
       {{0}, 1}},
  }};
} split_qkv;

namespace detail {
struct join_qkv_by_head_t
    : op<"b heads s d, b heads s d, b heads s d -> b s (heads three d); whole three", join_qkv_by_head_t> {
  static constexpr op_body body = op_body::stack;
  static constexpr linearity linear = linearity::all;
  static constexpr bool derived = true;
};
}  // namespace detail

/// The same where each head's query, key and value lie together.
inline constexpr struct split_qkv_by_head_t
    : op<"b s (heads three d) -> b heads s d, b heads s d, b heads s d; whole three", split_qkv_by_head_t> {
  static constexpr op_body body = op_body::unstack;
  static constexpr linearity linear = linearity::all;
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::join_qkv_by_head_t>,
       detail::join_qkv_by_head_t::rule_source,
       {{{gradient_source::gradient, 0}, {gradient_source::gradient, 1}, {gradient_source::gradient, 2}}, 3},
       {{0}, 1}},
  }};
} split_qkv_by_head;

inline constexpr struct split_heads_t : movement<"b s (heads d) -> b heads s d", split_heads_t> {
} split_heads;
inline constexpr struct scores_t : contraction<"b h q d, b h k d -> b h q k", scores_t> {
} scores;
inline constexpr struct weighted_sum_t : contraction<"b h q k, b h k d -> b h q d", weighted_sum_t> {
} weighted_sum;
inline constexpr struct merge_heads_t : movement<"b heads s d -> b s (heads d)", merge_heads_t> {
} merge_heads;

/// The same with `group` queries to each head of keys and values (grouped-query attention).
inline constexpr struct split_groups_t : movement<"b s (heads group d) -> b heads group s d", split_groups_t> {
} split_groups;
inline constexpr struct grouped_scores_t : contraction<"b h group q d, b h k d -> b h group q k", grouped_scores_t> {
} grouped_scores;
inline constexpr struct grouped_sum_t : contraction<"b h group q k, b h k d -> b h group q d", grouped_sum_t> {
} grouped_sum;
inline constexpr struct merge_groups_t : movement<"b heads group s d -> b s (heads group d)", merge_groups_t> {
} merge_groups;

/// The same of keys that all heads share.
inline constexpr struct shared_scores_t : contraction<"b h q d, b k d -> b h q k", shared_scores_t> {
} shared_scores;

/// Adds a table of positions to the scores of every sequence.
inline constexpr struct add_positions_t : addition<"b h q k, q k h -> b h q k", add_positions_t> {
} add_positions;

namespace detail {
// By how much pair p turns from one position to the next, base^(-p/pairs), and of that what is left where it is slowed:
// `slow` of it where the share that is kept is 0, all where that is 1. The share is `kept` + `by_pair` p +
// `by_frequency` base^(-p/pairs), between these.
template <class T>
CFP_HOST_DEVICE T frequency(T log_base, T per_pair, T pair) {
  return exp(-log_base * per_pair * pair);
}
template <class T>
CFP_HOST_DEVICE T frequency(T log_base, T per_pair, T slow, T kept, T by_pair, T by_frequency, T pair) {
  const T whole = frequency(log_base, per_pair, pair), share = kept + by_pair * pair + by_frequency * whole;
  return whole * (slow + (T(1) - slow) * (share < T(0) ? T(0) : share > T(1) ? T(1) : share));
}
// One element of the rotation of (x0, x1) by an angle: that of row `out`, column `in`.
template <class T>
CFP_HOST_DEVICE T rotation(T angle, long in, long out) {
  if (in > 1 || out > 1) return in == out ? T(1) : T(0);
  return in == out ? cos(angle) : in == 0 ? sin(angle) : -sin(angle);
}
template <lit Rule, class Op>
struct rotary_op : op<Rule, Op> {
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T log_base, T per_pair, long position, long in, long pair, long out) {
    return x * rotation(static_cast<T>(position) * frequency(log_base, per_pair, static_cast<T>(pair)), in, out);
  }
};
template <lit Rule, class Op>
struct slowed_rotary_op : op<Rule, Op> {
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 6;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T log_base, T per_pair, T slow, T kept, T by_pair, T by_frequency, long position,
                                 long in, long pair, long out) {
    const T turn = frequency(log_base, per_pair, slow, kept, by_pair, by_frequency, static_cast<T>(pair));
    return x * rotation(static_cast<T>(position) * turn, in, out);
  }
};
struct rotary_input_t
    : rotary_op<"... s (out pair) -> ... s (half pair); whole half out; index s half pair out", rotary_input_t> {
  static constexpr bool derived = true;
};
struct slowed_rotary_input_t
    : slowed_rotary_op<"... s (out pair) -> ... s (half pair); whole half out; index s half pair out",
                       slowed_rotary_input_t> {
  static constexpr bool derived = true;
};
}  // namespace detail

/// Rotary position embedding: of every vector of 2 `pair` numbers, number p and number p + pair turn by the angle
/// position * base^(-p/pair). Scalars: log(base), 1/pair; sizes of the factors `half` and `out` are 2, or more: then
/// what lies behind the first 2 `pair` numbers stays as it is. (RoFormer, arXiv 2104.09864; the halves lie as in public
/// checkpoints of LLaMA.)
inline constexpr struct rotary_t
    : detail::rotary_op<"... s (half pair) -> ... s (out pair); whole half out; index s half pair out", rotary_t> {
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::rotary_input_t>,
       detail::rotary_input_t::rule_source,
       {{{gradient_source::gradient, 0}}, 1},
       {{0}, 1}},
  }};
} rotary;

/// The same of frequencies that are slowed for longer sequences. Four more scalars: what the slowest are multiplied by,
/// and which share of each is kept: a number, so much more with every pair, so much times the frequency, between 0 and
/// 1. (Llama 3.1; YaRN, arXiv 2309.00071.)
inline constexpr struct slowed_rotary_t
    : detail::slowed_rotary_op<"... s (half pair) -> ... s (out pair); whole half out; index s half pair out",
                               slowed_rotary_t> {
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::slowed_rotary_input_t>,
       detail::slowed_rotary_input_t::rule_source,
       {{{gradient_source::gradient, 0}}, 1},
       {{0}, 1}},
  }};
} slowed_rotary;

namespace detail {
struct rotary_pairs_input_t
    : op<"... s (pair out) -> ... s (pair half); whole half out; index s half pair out", rotary_pairs_input_t> {
  static constexpr bool derived = true;
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 7;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T log_base, T per_pair, T slow, T kept, T by_pair, T by_frequency, T turned,
                                 long position, long in, long pair, long out) {
    if (!(static_cast<T>(pair) < turned)) return in == out ? dz : T(0);
    const T turn = frequency(log_base, per_pair, slow, kept, by_pair, by_frequency, static_cast<T>(pair));
    return dz * rotation(static_cast<T>(position) * turn, in, out);
  }
};
}  // namespace detail

/// The same of neighbouring numbers, of the first `turned` pairs of each vector. Scalars: log(base), 1/turned, the four
/// of slowed frequencies (1, 0, 0, 0: as they are), turned.
inline constexpr struct rotary_pairs_t
    : op<"... s (pair half) -> ... s (pair out); whole half out; index s half pair out", rotary_pairs_t> {
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 7;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T log_base, T per_pair, T slow, T kept, T by_pair, T by_frequency, T turned,
                                 long position, long in, long pair, long out) {
    return detail::rotary_pairs_input_t::apply(x, log_base, per_pair, slow, kept, by_pair, by_frequency, turned,
                                               position, in, pair, out);
  }
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::rotary_pairs_input_t>,
       detail::rotary_pairs_input_t::rule_source,
       {{{gradient_source::gradient, 0}}, 1},
       {{0}, 1}},
  }};
} rotary_pairs;

/// Adds to each score how far its key is behind its query, times a slope of the head (ALiBi, arXiv 2108.12409): of the
/// first n heads 2^(-8(h+1)/n), of others those between them. Scalars: n, the largest power of two that is not
/// above the number of heads; what the slopes are multiplied by.
inline constexpr struct add_slopes_t : op<"b h q k -> b h q k; index h q k", add_slopes_t> {
  static constexpr int scalars = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T n, T by, long h, long q, long k) {
    const T head = static_cast<T>(static_cast<double>(h)), eighths = T(-5.545177444479562) / n;  // of log 2
    const T slope = head < n ? exp(eighths * (head + T(1))) : exp(eighths * (head - n + T(0.5)));
    return x + by * slope * static_cast<T>(static_cast<double>(k - q));
  }
} add_slopes;

/// Scores of keys that lie less than `window` behind their query; others are as if they were hidden. Scalar: window.
inline constexpr struct windowed_t : op<"... q k -> ... q k; index q k", windowed_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T window, long q, long k) {
    return static_cast<T>(static_cast<double>(q - k)) < window ? x : T(-infinity<double>);
  }
} windowed;

/// Scores of keys that are of the same document as their query, where several lie in one row; others are as if they
/// were hidden. Behind the scores: the number of each query's document, and of each key's.
inline constexpr struct same_document_t : op<"b ... q k, b q, b k -> b ... q k", same_document_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T of_query, T of_key) {
    return of_query < of_key || of_key < of_query ? T(-infinity<double>) : x;
  }
} same_document;

}  // namespace cfp
