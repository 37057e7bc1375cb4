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

/// Adds a table of positions to the scores of every sequence.
inline constexpr struct add_positions_t : addition<"b h q k, q k h -> b h q k", add_positions_t> {
} add_positions;

namespace detail {
// One element of the rotation of (x0, x1) by position * base^(-pair/pairs): that of row `out`, column `in`.
template <class T>
CFP_HOST_DEVICE T rotation(T log_base, T per_pair, long position, long in, long pair, long out) {
  const T angle = static_cast<T>(position) * exp(-log_base * per_pair * static_cast<T>(pair));
  return in == out ? cos(angle) : in == 0 ? sin(angle) : -sin(angle);
}
struct rotary_input_t
    : op<"... s (out pair) -> ... s (half pair); whole half out; index s half pair out", rotary_input_t> {
  static constexpr bool derived = true;
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T dz, T log_base, T per_pair, long position, long in, long pair, long out) {
    return dz * rotation(log_base, per_pair, position, in, pair, out);
  }
};
}  // namespace detail

/// Rotary position embedding: of every vector of 2 `pair` numbers, number p and number p + pair turn by the angle
/// position * base^(-p/pair). Scalars: log(base), 1/pair; sizes of the factors `half` and `out` are 2. (RoFormer, arXiv
/// 2104.09864; the halves lie as in public checkpoints of LLaMA.)
inline constexpr struct rotary_t
    : op<"... s (half pair) -> ... s (out pair); whole half out; index s half pair out", rotary_t> {
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 2;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T log_base, T per_pair, long position, long in, long pair, long out) {
    return x * detail::rotation(log_base, per_pair, position, in, pair, out);
  }
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::rotary_input_t>,
       detail::rotary_input_t::rule_source,
       {{{gradient_source::gradient, 0}}, 1},
       {{0}, 1}},
  }};
} rotary;

}  // namespace cfp
