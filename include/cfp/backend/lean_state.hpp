// Optimizer state in fewer bytes, as the numbers it stands for.
#pragma once

#include <cfp/op/lean_moments.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cfp::inline v0_1 {

/// n numbers that are stored so.
inline std::vector<float> read_lean(element form, const void* at, long n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  const blocks_of_8_bits blocks(const_cast<void*>(at), n);
  for (long i = 0; i < n; ++i)
    out[static_cast<std::size_t>(i)] = form == element::bfloat16
                                           ? static_cast<float>(static_cast<const bf16*>(at)[i])
                                           : block8_code::decode(blocks.code[i], blocks.scale[i / block8_numbers]);
  return out;
}

/// Numbers of a block, from a given place on among those a device holds; `bits(number)`: random ones that they are
/// rounded by.
template <class Bits>
void write_lean_block(element form, void* at, long n, long from, const float* x, const Bits& bits) {
  const long count = std::min(n - from, block8_numbers);
  if (form == element::bfloat16) {
    for (long i = 0; i < count; ++i) static_cast<bf16*>(at)[from + i] = rounded_bf16(x[i], bits(from + i));
    return;
  }
  const blocks_of_8_bits blocks(at, n);
  float scale = 0;
  for (long i = 0; i < count; ++i)
    if (!(std::abs(x[i]) <= scale)) scale = std::abs(x[i]);  // what is no number too
  blocks.scale[from / block8_numbers] = scale;
  for (long i = 0; i < count; ++i) blocks.code[from + i] = block8_code::encode(x[i], scale, bits(from + i));
}

/// All of them, to the nearest: what was read is written as it was.
inline void write_lean(element form, void* at, const std::vector<float>& x) {
  const auto n = static_cast<long>(x.size());
  for (long from = 0; from < n; from += block8_numbers)
    write_lean_block(form, at, n, from, x.data() + from, [](long) { return rounds_to_nearest; });
}

}  // namespace cfp
