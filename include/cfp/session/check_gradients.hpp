// Whether derived gradients are those of the loss: compared with central differences in float64, on threads.
//
//   const cfp::gradient_check c = cfp::check_gradients(my_op, {.kernels = cfp::kernels_of<my_op_t>()});
//   std::cout << c;                   // or it names the worst element
//   return c.holds() ? 0 : 1;
#pragma once

#include <cfp/backend/own_kernels.hpp>
#include <cfp/core/config.hpp>
#include <cfp/model/batch.hpp>
#include <cfp/model/operator_model.hpp>
#include <cfp/session/values.hpp>

#include <cstdint>
#include <string>

namespace cfp::inline v0_1 {

struct gradient_options {
  std::string mesh{};      ///< "data=2": also as ranks of it derive them, each choice of a plan drawn at random
  int plans = 3;           ///< so many such plans; the first one takes parts of sums into operators, where any may
  batch_source data{};     ///< the batch of pass 0; none: inputs are filled with random numbers
  bool of_inputs = true;   ///< gradients along inputs that are real numbers too, not of weights alone
  int elements = 24;       ///< of a tensor that has more so many are tried: half at random, half among the largest
  own_kernels kernels{};   ///< of operators that are not in the catalogue: cfp::kernels_of<my_op_t>()
  std::uint64_t seed = 1;  ///< of weights, of what is tried, of plans
};

/// A forward graph whose loss is set. Throws bad_input for options or data that do not fit, cfp::error for a model that
/// has no gradient, rank_failure where it cannot run.
gradient_check check_gradients(const graph& forward, const gradient_options& options = {});
inline gradient_check check_gradients(const model& traced, const gradient_options& options = {}) {
  return check_gradients(traced.recorded, options);
}
/// An operator by itself, on random operands: `check_gradients(operator_model(mine, {.sizes = {{"width", 5}}}))` for
/// others. What owns the gradient of row statistics is checked with them, as a model.
template <operator_object Op>
gradient_check check_gradients(const Op& mine, const gradient_options& options = {}) {
  return check_gradients(operator_model(mine), options);
}

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/session/check_gradients_implementation.hpp>
#include <cfp/session/print.hpp>
#endif
