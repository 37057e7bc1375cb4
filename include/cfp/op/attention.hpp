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
      {&info<detail::join_qkv_t>, detail::join_qkv_t::rule_source,
       {{{gradient_source::gradient, 0}, {gradient_source::gradient, 1}, {gradient_source::gradient, 2}}, 3}, {{0}, 1}},
  }};
} split_qkv;

inline constexpr struct scores_t : contraction<"b h q d, b h k d -> b h q k", scores_t> {} scores;
inline constexpr struct weighted_sum_t : contraction<"b h q k, b h k d -> b h q d", weighted_sum_t> {} weighted_sum;
inline constexpr struct merge_heads_t : movement<"b heads s d -> b s (heads d)", merge_heads_t> {} merge_heads;

}  // namespace cfp
