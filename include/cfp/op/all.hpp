// The catalogue as one list of types: what every kind of device instantiates its kernels for.
#pragma once

#include <cfp/op/activation.hpp>
#include <cfp/op/adafactor.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/dropout.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/optimizer.hpp>
#include <cfp/op/pieces.hpp>
#include <cfp/op/rounds.hpp>
#include <cfp/op/routing.hpp>
#include <cfp/op/softmax.hpp>

namespace cfp::inline v0_1 {

template <class... Op>
struct op_list {};

/// Operators that are a rule and a functor. Contractions, slices, updates and sums over micro-batches need no entry;
/// `queue_places` and `dropout` are routines of their own.
using catalogue =
    op_list<copy_t, add_t, bias_t, add_rows_t, mul_t, scaled_t, gelu_t, relu_t, gated_silu_t, gelu_exact_t,
            gated_gelu_t, soft_cap_t, plus_one_t, clamped_t, logistic_t, gated_rows_t, first_replaced_t, first_row_t,
            lookup_t, scatter_add_t, norm_sum_t, norm_square_t, detail::norm_dot_t, detail::norm_dot_normal_t,
            detail::norm_input_t, detail::norm_weight_t, layer_norm_t, layer_norm_unbiased_t, rms_square_t,
            detail::rms_dot_t, detail::rms_input_t, detail::rms_weight_t, rms_norm_t, masked_max_t, masked_sum_t,
            detail::softmax_dot_t, detail::softmax_input_t, detail::masked_input_t, masked_softmax_t, softmax_t,
            logits_max_t, logits_sum_t, detail::cross_entropy_input_t, cross_entropy_t, counted_targets_t, mean_of_t,
            split_heads_t, merge_heads_t, split_groups_t, merge_groups_t, add_positions_t, rotary_t,
            detail::rotary_input_t, slowed_rotary_t, detail::slowed_rotary_input_t, rotary_pairs_t,
            detail::rotary_pairs_input_t, add_slopes_t, windowed_t, same_document_t, chosen_sum_t, dispatch_t,
            combine_t, combine_gates_t, set_max_t, set_second_t, of_chosen_sets_t, first_choices_t, gate_mass_t,
            seen_in_round_t, largest_score_t, larger_score_t, exponentials_t, divided_rows_t, seen_before_t,
            square_norm_t, clip_factor_t, square_sum_t, clipped_t, relative_square_t, relative_square_of_matrix_t>;

}  // namespace cfp
