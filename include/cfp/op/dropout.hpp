// Dropout by counter-based random numbers: which elements fall out depends on the seed of the run, the step, and the
// element's place in the whole tensor, not on the mesh.
#pragma once

#include <cfp/op/op.hpp>

#include <Random123/philox.h>

#include <cstdint>

namespace cfp::inline v0_1 {

namespace detail {
struct dropout_input_t : op<"... -> ...", dropout_input_t> {
  static constexpr op_body body = op_body::routine;
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 1;
  static constexpr bool derived = true;
};
}  // namespace detail

/// Zeroes elements at random and scales the others so that the mean stays. Scalar: the share zeroed.
inline constexpr struct dropout_t : op<"... -> ...", dropout_t> {
  static constexpr op_body body = op_body::routine;
  static constexpr linearity linear = linearity::all;
  static constexpr int scalars = 1;
  static constexpr std::array<gradient_step, 1> gradient = {{
      {&info<detail::dropout_input_t>, "... -> ...", {{{gradient_source::gradient, 0}}, 1}, {{0}, 1}},
  }};

  /// Random words of four neighbouring elements, the first of them at global index 4 n; `which` of the model's
  /// dropouts.
  CFP_HOST_DEVICE static r123::Philox4x32::ctr_type words(std::uint64_t seed, int which, std::uint64_t pass,
                                                          std::uint64_t n) {
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    const r123::Philox4x32::ctr_type counter = {{low(n), low(n >> 32), low(pass), static_cast<std::uint32_t>(which)}};
    const r123::Philox4x32::key_type key = {{low(seed), low(seed >> 32)}};
    return r123::Philox4x32()(counter, key);
  }
  /// The least random word that is kept.
  CFP_HOST_DEVICE static std::uint32_t least(double share) { return static_cast<std::uint32_t>(share * 4294967296.0); }
} dropout;

}  // namespace cfp
