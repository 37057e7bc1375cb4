// Kernels for GPUs on numbers stored as one type: every operator and chain of the catalogue against the host's.
#pragma once

#include "../from_environment.hpp"
#include "kernel_cases.hpp"

namespace kernel_cases {

inline const auto repeats = static_cast<unsigned>(how_many(8, 8, 2));

template <class Op>
asked own(std::string_view kinds, int dots = 0, std::vector<double> scalars = {}, std::vector<sizes> fixed = {}) {
  return {&info<Op>, {}, dots, kinds, std::move(scalars), std::move(fixed)};
}
template <class Op>
asked with(std::string_view rule, std::string_view kinds, int dots = 0, std::vector<double> scalars = {},
           std::vector<sizes> fixed = {}) {
  return {&info<Op>, rule, dots, kinds, std::move(scalars), std::move(fixed)};
}

// Operators of a user's own.
inline constexpr struct row_min_t : op<"... width -> ...; min width", row_min_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} row_min;
inline constexpr struct weighted_square_t : op<"... width, width -> ...", weighted_square_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T weight, T shift) {
    return (x - shift) * (x - shift) * weight;
  }
} weighted_square;
using reordered = op<"b (h d) s -> h b s d">;
using summed = op<"a b c -> b c">;

template <class T>
void check_elements() {
  both_kernels<T> k;
  k.host.template add<reordered>();
  k.device.template add<reordered>();
  std::vector<asked> all;
  for (int dots = 0; dots <= 3; ++dots) {
    all.push_back(own<copy_t>("n", dots));
    all.push_back(own<add_t>("nn", dots));
    all.push_back(own<mul_t>("nn", dots));
    all.push_back(own<scaled_t>("n", dots, {0.3}));
    all.push_back(own<gelu_t>("n", dots));
    all.push_back(own<relu_t>("n", dots));
    all.push_back(own<gated_silu_t>("nn", dots));
    all.push_back(own<clip_factor_t>("p", dots, {0.7}));
    all.push_back(own<bias_t>("nn", dots));
    all.push_back(own<add_rows_t>("nn", dots));
    all.push_back(own<lookup_t>("ni", dots));
    all.push_back(with<slope<gelu_t, 0>>("..., ... -> ...", "nn", dots));
    all.push_back(with<slope<mul_t, 0>>("..., ..., ... -> ...", "nnn", dots));
    all.push_back(with<slope<mul_t, 1>>("..., ..., ... -> ...", "nnn", dots));
    all.push_back(with<slope<gated_silu_t, 0>>("..., ..., ... -> ...", "nnn", dots));
    all.push_back(with<slope<gated_silu_t, 1>>("..., ..., ... -> ...", "nnn", dots));
    all.push_back(own<layer_norm_t>("nnpnn", dots, {0.1, 1e-5}));
    all.push_back(own<cfp::detail::norm_input_t>("nnnpnnn", dots, {0.1, 1e-5}));
    all.push_back(own<rms_norm_t>("npn", dots, {0.1, 1e-5}));
    all.push_back(own<cfp::detail::rms_input_t>("nnpnn", dots, {0.1, 1e-5}));
    all.push_back(own<softmax_t>("npp", dots));
    all.push_back(own<cfp::detail::softmax_input_t>("nnn", dots));
    all.push_back(own<masked_softmax_t>("npp", dots, {0.7, 0.0}));
    all.push_back(own<cfp::detail::masked_input_t>("nnn", dots, {0.7, 0.0}));
    all.push_back(own<cfp::detail::cross_entropy_input_t>("nnipp", dots, {0.01}));
    all.push_back(own<cfp::detail::cross_entropy_input_t>("nntpp", dots, {0.01}));
    all.push_back(own<mean_of_t>("np", dots));
    all.push_back(own<mean_of_t>("nc", dots));
    all.push_back(with<slope<mean_of_t, 0>>("..., ..., ... -> ...", "nnp", dots));
    all.push_back(with<slope<mean_of_t, 1>>("..., ..., ... -> ...", "nnp", dots));
  }
  all.push_back(with<copy_t>("a b c -> c a b", "n"));
  all.push_back(with<copy_t>("a b -> b a", "n", 0, {}, {{"a", 70}, {"b", 130}}));
  all.push_back(with<copy_t>("a c -> a b c; whole b", "n"));
  all.push_back(own<reordered>("n"));
  all.push_back(own<split_heads_t>("n", 0, {}, {{"d", 64}}));
  all.push_back(own<split_heads_t>("n"));
  all.push_back(own<merge_heads_t>("n"));
  all.push_back(own<split_groups_t>("n"));
  all.push_back(own<merge_groups_t>("n"));
  all.push_back(own<add_positions_t>("nn"));
  all.push_back(own<split_qkv_t>("n", 0, {}, {{"three", 3}}));
  all.push_back(own<cfp::detail::join_qkv_t>("nnn", 0, {}, {{"three", 3}}));
  all.push_back(with<join_t>("a before b, a next b -> a all b; whole before next all", "nn"));
  all.push_back(with<piece_t>("a all b -> a next b; whole all next", "n"));
  all.push_back(own<dispatch_t>("c"));
  all.push_back(own<combine_t>("ncp"));
  all.push_back(own<first_replaced_t>("nn"));
  all.push_back(own<combine_gates_t>("nc"));
  all.push_back(own<of_chosen_sets_t>("nn"));
  all.push_back(own<queue_places_t>("n", 0, {2}, {{"experts", 5}}));
  all.push_back(own<queue_places_t>("n", 0, {1}, {{"s", 300}, {"experts", 8}}));
  for (int dots = 1; dots <= 3; ++dots) {
    all.push_back(own<join_t>("nn", dots - 1));
    all.push_back(own<piece_t>("n", dots - 1));
    all.push_back(own<dropout_t>("n", dots, {0.3}));
    all.push_back(own<cfp::detail::dropout_input_t>("n", dots, {0.3}));
  }
  for (int dots = 0; dots <= 2; ++dots) {
    all.push_back(own<rotary_t>("n", dots, {9.2, 1.0 / 12}, {{"half", 2}, {"out", 2}}));
    all.push_back(own<cfp::detail::rotary_input_t>("n", dots, {9.2, 1.0 / 12}, {{"half", 2}, {"out", 2}}));
    all.push_back(own<slowed_rotary_t>("n", dots, {9.2, 1.0 / 12, 0.1, 1.5, -0.2, 0.3}, {{"half", 2}, {"out", 2}}));
    all.push_back(own<cfp::detail::slowed_rotary_input_t>("n", dots, {9.2, 1.0 / 12, 0.1, 1.5, -0.2, 0.3},
                                                          {{"half", 2}, {"out", 2}}));
    all.push_back(own<adamw_t>("nnnp", dots, {0.01, 0.9, 0.95, 1e-8, 0.1, 2, 100, 0.001}));
    asked clipped = own<adamw_t>("nnnpp", dots, {0.01, 0.9, 0.95, 1e-8, 0.1, 2, 100, 0.001});
    clipped.rule = adamw_t::clipped;
    all.push_back(clipped);
    all.push_back(own<accumulate_t>("nn", dots));
    all.push_back(own<clipped_t>("np", dots));
    all.push_back(own<mean_square_t>("pp", dots, {7, 1e-30}));
    all.push_back(own<adafactor_t>("nnpp", dots, {30, 0.1, 0.01, 2, 100, 0.001}));
  }
  all.push_back(own<adafactor_of_matrix_t>("nnpppp", 0, {30, 0.1, 0.01, 2, 100, 0.001, 7}));
  for (asked& a : all) {
    a.same_order = true;
    for (unsigned n = 0; n < repeats; ++n) k.check(a, 100 + n);
  }
}

template <class T>
void check_sums() {
  both_kernels<T> k;
  k.host.template add<row_min_t, weighted_square_t, summed>();
  k.device.template add<row_min_t, weighted_square_t, summed>();
  std::vector<asked> all;
  for (int dots = 0; dots <= 2; ++dots) {
    all.push_back(own<norm_sum_t>("n", dots));
    all.push_back(own<norm_square_t>("nn", dots, {0.1}));
    all.push_back(own<cfp::detail::norm_dot_t>("nn", dots, {0.1, 1.0}));
    all.push_back(own<cfp::detail::norm_dot_normal_t>("nnnpn", dots, {0.1, 1.0}));
    all.push_back(own<cfp::detail::norm_weight_t>("nnnp", dots, {0.1, 1.0}));
    all.push_back(own<rms_square_t>("n", dots));
    all.push_back(own<cfp::detail::rms_dot_t>("nnn", dots, {0.1, 1.0}));
    all.push_back(own<cfp::detail::rms_weight_t>("nnp", dots, {0.1, 1.0}));
    all.push_back(own<masked_max_t>("n", dots, {0.7, 0.0}));
    all.push_back(own<masked_sum_t>("np", dots, {0.7, 0.0}));
    all.push_back(own<cfp::detail::softmax_dot_t>("nn", dots));
    all.push_back(own<logits_max_t>("n", dots));
    all.push_back(own<logits_sum_t>("np", dots));
    all.push_back(own<cross_entropy_t>("nipp", dots, {0.01}));
    all.push_back(own<cross_entropy_t>("ntpp", dots, {0.01}));
    all.push_back(own<counted_targets_t>("nt", dots));
    all.push_back(own<square_norm_t>("n", dots));
    all.push_back(own<square_sum_t>("n", dots));
    all.push_back(with<square_sum_t>("... width -> width", "n", dots));
    all.push_back(own<relative_square_t>("np", dots));
    all.push_back(own<row_min_t>("n", dots));
    all.push_back(own<weighted_square_t>("nn", dots, {0.4}));
    all.push_back(with<slope<weighted_square_t, 1>>("..., ... width, width -> width", "nnn", dots, {0.4}));
    all.push_back(with<slope<weighted_square_t, 0>>("..., ... width, width -> ... width", "nnn", dots, {0.4}));
    all.push_back(with<copy_t>("... width -> width", "n", dots));
    all.push_back(with<copy_t>("batch ... -> ...", "n", dots));
    all.push_back(own<chosen_sum_t>("nc", dots));
    all.push_back(own<scatter_add_t>("ni", dots));
    all.push_back(with<slope<chosen_sum_t, 0>>("..., ... experts, ... experts -> ... experts", "nnc", dots));
  }
  all.push_back(own<relative_square_of_matrix_t>("nppp", 0, {7}));
  all.push_back(own<summed>("n"));
  all.push_back(with<copy_t>("b h q k -> q k h", "n"));
  all.push_back(with<copy_t>("a b c -> b", "n"));
  all.push_back(with<copy_t>("a b c -> a c", "n"));
  all.push_back(with<copy_t>("a b -> ", "n"));
  all.push_back(own<first_choices_t>("c"));
  all.push_back(own<gate_mass_t>("n"));
  for (int operand = 0; operand <= 1; ++operand)
    all.push_back(
        operand == 0
            ? with<slope<combine_t, 0>>("groups s experts capacity, groups s experts, groups s experts, groups s -> "
                                        "groups s experts; index capacity",
                                        "nncp")
            : with<slope<combine_t, 2>>(
                  "groups s experts capacity, groups s experts, groups s experts, groups s -> groups s; index capacity",
                  "nncp"));
  // Long ones: rows that no registers hold, many rows, many elements, many rows of one index.
  all.push_back(own<scatter_add_t>("ni", 1, {}, {{"vocabulary", 3}, {"..0", 90}}));
  for (const long vocabulary : {1, 2, 7})
    for (const long width : {5, 16})
      all.push_back(own<scatter_add_t>("ni", 1, {}, {{"vocabulary", vocabulary}, {"..0", 700}, {"width", width}}));
  all.push_back(own<norm_sum_t>("n", 1, {}, {{"..0", 3}, {"width", 9000}}));
  all.push_back(own<square_norm_t>("n", 1, {}, {{"..0", 40000}}));
  all.push_back(own<square_norm_t>("n", 1, {}, {{"..0", 40001}}));
  all.push_back(with<copy_t>("... width -> width", "n", 1, {}, {{"..0", 700}, {"width", 24}}));
  all.push_back(own<cfp::detail::norm_weight_t>("nnnp", 1, {0.1, 1.0}, {{"..0", 600}, {"width", 40}}));
  all.push_back(own<cross_entropy_t>("nipp", 1, {0.01}, {{"..0", 3000}, {"vocabulary", 7}}));
  all.push_back(with<copy_t>("a b c -> b", "n", 0, {}, {{"a", 60}, {"b", 3}, {"c", 50}}));
  all.push_back(with<copy_t>("a b c -> a c", "n", 0, {}, {{"a", 3}, {"b", 900}, {"c", 5}}));
  for (const asked& a : all)
    for (unsigned n = 0; n < repeats; ++n) k.check(a, 300 + n);
}

template <class T>
void check_chains() {
  both_kernels<T> k;
  k.host.template add<row_min_t>();
  using cuda::mapping;
  const std::vector<double> norm = {0.5, 1.0}, mask = {0.7, 0.0};
  const long lengths[] = {1, 7, 8, 24, 64, 100, 768, 1000, 1024},
             long_ones[] = {4096, 8184, 20000};  // nvcc 13.0 loses lists that loops of templates name in place
  unsigned seed = 500;
  const auto rows_of = [&](long rows, long length, bool even) {
    ++seed;
    const std::vector<double> per = {1.0 / static_cast<double>(length), 1.0};
    k.template check_chain<cuda::layer_norm_forward, mapping::rows>(rows, length, "nnn", per, seed, even);
    k.template check_chain<cuda::add_layer_norm_forward, mapping::rows>(rows, length, "nnnn", per, seed, even);
    k.template check_chain<cuda::layer_norm_backward, mapping::rows>(rows, length, "nnnpn", per, seed, even);
    k.template check_chain<cuda::rms_norm_forward, mapping::rows>(rows, length, "nn", per, seed, even);
    k.template check_chain<cuda::add_rms_norm_forward, mapping::rows>(rows, length, "nnn", per, seed, even);
    k.template check_chain<cuda::rms_norm_backward, mapping::rows>(rows, length, "nnpn", per, seed, even);
    k.template check_chain<cuda::softmax_forward, mapping::rows>(rows, length, "n", {}, seed, even);
    k.template check_chain<cuda::masked_softmax_forward, mapping::rows>(rows, length, "n",
                                                                        {0.7, static_cast<double>(length)}, seed, even);
    k.template check_chain<cuda::softmax_backward, mapping::rows>(rows, length, "np", {}, seed, even);
    k.template check_chain<cuda::masked_softmax_backward, mapping::rows>(rows, length, "np", mask, seed, even);
    k.template check_chain<cuda::cross_entropy_statistics, mapping::rows>(rows, length, "n", {}, seed, even);
    if (!even || length % cuda::full_width<T> != 0 || length > cuda::longest_gathered(cuda::full_width<T>)) return;
    k.template check_chain<cuda::layer_norm_gradients, mapping::rows>(14 * rows, length, "nnnpnn", per, seed);
    k.template check_chain<cuda::rms_norm_gradients, mapping::rows>(14 * rows, length, "nnpnn", per, seed);
  };
  for (const long length : lengths) {
    for (int odd = 0; odd <= 1; ++odd) {
      const bool even = odd == 0;
      rows_of(5, length, even);
      ++seed;
      k.template check_chain<cuda::layer_norm_weights, mapping::columns>(50, length, "nnnp", norm, seed, even);
      k.template check_chain<cuda::bias_gelu, mapping::flat>(5, length, "nn", {}, seed, even);
      k.template check_chain<cuda::bias_add, mapping::flat>(5, length, "nnn", {}, seed, even);
      k.template check_chain<cuda::gated_silu_backward, mapping::flat>(5, length, "nnn", {}, seed, even);
    }
  }
  for (const long length : long_ones) rows_of(2, length, true);  // by a block, by a large one, read again
  rows_of(1, 70000, true);
}

}  // namespace kernel_cases
