// Chains of the catalogue: what is worth running in one kernel. Inputs in the order of the numbers.
#pragma once

#include <cfp/backend/cuda/chain/chain.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>

#include <vector>

namespace cfp::inline v0_1::cuda {

// Along rows.

/// x, weight, shift
using layer_norm_forward = chain<step<norm_sum_t, in<0>>, step<norm_square_t, in<0>, from<0>>,
                                 step<layer_norm_t, in<0>, from<0>, from<1>, in<1>, in<2>>>;
/// x, y, weight, shift: the norm of x + y
using add_layer_norm_forward =
    chain<step<add_t, in<0>, in<1>>, step<norm_sum_t, from<0>>, step<norm_square_t, from<0>, from<1>>,
          step<layer_norm_t, from<0>, from<1>, from<2>, in<2>, in<3>>>;
/// gradient, x, sum, square, weight
using layer_norm_backward = chain<step<cfp::detail::norm_dot_t, in<0>, in<4>>,
                                  step<cfp::detail::norm_dot_normal_t, in<0>, in<1>, in<2>, in<3>, in<4>>,
                                  step<cfp::detail::norm_input_t, in<0>, in<1>, in<2>, in<3>, in<4>, from<0>, from<1>>>;
/// gradient, x, sum, square, weight, y: the gradient of x added to y, those of the weight and the shift
using layer_norm_gradients = chain<step<cfp::detail::norm_dot_t, in<0>, in<4>>,
                                   step<cfp::detail::norm_dot_normal_t, in<0>, in<1>, in<2>, in<3>, in<4>>,
                                   step<cfp::detail::norm_input_t, in<0>, in<1>, in<2>, in<3>, in<4>, from<0>, from<1>>,
                                   gathering_step<cfp::detail::norm_weight_t, in<0>, in<1>, in<2>, in<3>>,
                                   gathering_step<copy_t, in<0>>, step<add_t, in<5>, from<2>>>;
/// x, weight
using rms_norm_forward = chain<step<rms_square_t, in<0>>, step<rms_norm_t, in<0>, from<0>, in<1>>>;
/// x, y, weight: the norm of x + y
using add_rms_norm_forward =
    chain<step<add_t, in<0>, in<1>>, step<rms_square_t, from<0>>, step<rms_norm_t, from<0>, from<1>, in<2>>>;
/// gradient, x, square, weight
using rms_norm_backward = chain<step<cfp::detail::rms_dot_t, in<0>, in<1>, in<3>>,
                                step<cfp::detail::rms_input_t, in<0>, in<1>, in<2>, in<3>, from<0>>>;
/// gradient, x, square, weight, y: the gradient of x added to y, and that of the weight
using rms_norm_gradients =
    chain<step<cfp::detail::rms_dot_t, in<0>, in<1>, in<3>>,
          step<cfp::detail::rms_input_t, in<0>, in<1>, in<2>, in<3>, from<0>>,
          gathering_step<cfp::detail::rms_weight_t, in<0>, in<1>, in<2>>, step<add_t, in<4>, from<1>>>;
/// x
using softmax_forward =
    chain<step<logits_max_t, in<0>>, step<logits_sum_t, in<0>, from<0>>, step<softmax_t, in<0>, from<0>, from<1>>>;
/// x
using masked_softmax_forward = chain<step<masked_max_t, in<0>>, step<masked_sum_t, in<0>, from<0>>,
                                     step<masked_softmax_t, in<0>, from<0>, from<1>>>;
/// gradient, result
using softmax_backward =
    chain<step<cfp::detail::softmax_dot_t, in<0>, in<1>>, step<cfp::detail::softmax_input_t, in<0>, in<1>, from<0>>>;
/// gradient, result
using masked_softmax_backward =
    chain<step<cfp::detail::softmax_dot_t, in<0>, in<1>>, step<cfp::detail::masked_input_t, in<0>, in<1>, from<0>>>;
/// logits
using cross_entropy_statistics = chain<step<logits_max_t, in<0>>, step<logits_sum_t, in<0>, from<0>>>;

// Along columns, all rows to one.

/// gradient, x, sum, square: gradients of the weight and the shift
using layer_norm_weights =
    chain<step<cfp::detail::norm_weight_t, in<0>, in<1>, in<2>, in<3>>, reduced_step<copy_t, in<0>>>;

// Element by element.

/// x, bias
using bias_gelu = chain<step<bias_t, in<0>, in<1>>, step<gelu_t, from<0>>>;
/// x, bias, y: y + (x + bias)
using bias_add = chain<step<bias_t, in<0>, in<1>>, step<add_t, in<2>, from<0>>>;
/// gradient, x: after a product
using gelu_backward = chain<step<slope<gelu_t, 0>, in<0>, in<1>>>;
/// x, y: x + y and y + x, after a product
using add_to = chain<step<add_t, in<0>, in<1>>>;
using added_to = chain<step<add_t, in<1>, in<0>>>;
/// gradient, gate, up: both gradients
using gated_silu_backward =
    chain<step<slope<gated_silu_t, 0>, in<0>, in<1>, in<2>>, step<slope<gated_silu_t, 1>, in<0>, in<1>, in<2>>>;
/// Three slices of a tensor, or to slices of it.
using three_copies = chain<step<copy_t, in<0>>, step<copy_t, in<1>>, step<copy_t, in<2>>>;

/// Chains that are walked alike.
template <mapping How, class... Chain>
struct chain_list {};

// All that there are kernels for, in the order in which they are looked for.
using row_chains =
    chain_list<mapping::rows, layer_norm_gradients, rms_norm_gradients, layer_norm_forward, add_layer_norm_forward,
               layer_norm_backward, rms_norm_forward, add_rms_norm_forward, rms_norm_backward, softmax_forward,
               masked_softmax_forward, softmax_backward, masked_softmax_backward, cross_entropy_statistics>;
using column_chains = chain_list<mapping::columns, layer_norm_weights>;
using flat_chains =
    chain_list<mapping::flat, bias_gelu, bias_add, gelu_backward, add_to, added_to, gated_silu_backward>;

/// A chain that there are kernels for.
struct known_chain {
  const chain_info* info = nullptr;
  mapping how = mapping::flat;
};

template <mapping How, class... Chain>
void list_chains(std::vector<known_chain>& out, chain_list<How, Chain...>) {
  (out.push_back({&info_of<Chain>, How}), ...);
}
inline std::vector<known_chain> catalogue_chains() {
  std::vector<known_chain> out;
  list_chains(out, row_chains{});
  list_chains(out, column_chains{});
  list_chains(out, flat_chains{});
  return out;
}

}  // namespace cfp::cuda
