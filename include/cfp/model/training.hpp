// How a model is trained.
#pragma once

#include <cfp/core/compression.hpp>
#include <cfp/op/element.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cfp::inline v0_1 {

/// What makes a weight's change of its gradients.
enum class optimizer_form : std::uint8_t {
  adamw_float32,   ///< two moments of 32 bits for each number of a weight
  adamw_bfloat16,  ///< the moments in 16 bits
  adamw_8bit,      ///< in 8 bits, and a scale for each block of 256
  adafactor,       ///< a mean square for each row and each column of a matrix, no momentum (arXiv 1804.04235)
};
inline constexpr std::array<std::string_view, 4> optimizer_names{"adamw", "adamw-bfloat16", "adamw-8bit", "adafactor"};
constexpr std::string_view name_of(optimizer_form f) { return optimizer_names[static_cast<std::size_t>(f)]; }
constexpr element moments_of(optimizer_form f) {
  return f == optimizer_form::adamw_bfloat16 ? element::bfloat16
         : f == optimizer_form::adamw_8bit   ? element::blocks8
                                             : element::wide;
}

/// On one batch per step. Adafactor has no use for the betas, and adds the square of epsilon to squares of gradients
/// (its paper 1e-30): so noise where a gradient is zero does not become whole steps.
struct training {
  optimizer_form optimizer = optimizer_form::adamw_float32;
  double rate = 3e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double decay = 0.1;  ///< of tensors with two dimensions or more; others do not decay
  long warmup = 0;     ///< steps over which the rate rises
  long steps = 0;      ///< after which the rate has fallen to `last_rate`; 0: it stays
  double last_rate = 0;
  double clip = 0;  ///< most the norm of all gradients together may be; 0: any
  /// What sums of gradients may be sent as between devices, where that takes less time. What is lost of a sum is added
  /// to the next one's gradients (error feedback, arXiv 1809.07599); it is no part of saved state.
  compression gradients = compression::none;
  /// A step's batch comes in so many pieces; their gradients are added up. The model is of one piece.
  int micro_batches = 1;
};

}  // namespace cfp
