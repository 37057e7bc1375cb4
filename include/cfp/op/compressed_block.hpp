// A block of numbers as it is sent (`compression`): every number of it by itself, so that threads share the work.
#pragma once

#include <cfp/core/compression.hpp>
#include <cfp/op/lean_moments.hpp>

namespace cfp::inline v0_1 {

/// Magnitudes as integers, in the same order; what is no number is above all.
CFP_HOST_DEVICE constexpr std::uint32_t magnitude_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x) & 0x7fffffffu;
}

/// Writes number i into the memory of its block. `largest`: the magnitude that is the largest of the block; `before`:
/// how many others are larger than this one, or as large and ahead of it. Each form asks for one of them.
CFP_HOST_DEVICE inline void put_compressed(compression form, void* block, long i, float x, std::uint32_t largest,
                                           long before) {
  switch (form) {
    case compression::none: break;
    case compression::bfloat16: static_cast<bf16*>(block)[i] = rounded_bf16(x, rounds_to_nearest); break;
    case compression::blocks8: {
      const blocks_of_8_bits all(block, compressed_numbers);
      const float scale = __builtin_bit_cast(float, largest);
      if (i == 0) all.scale[0] = scale;
      all.code[i] = block8_code::encode(x, scale, rounds_to_nearest);
      break;
    }
    case compression::largest:
      if (before >= largest_numbers) break;
      static_cast<bf16*>(block)[before] = rounded_bf16(x, rounds_to_nearest);
      reinterpret_cast<std::uint8_t*>(static_cast<bf16*>(block) + largest_numbers)[before] =
          static_cast<std::uint8_t>(i);
      break;
  }
}

/// Number i of a block that was sent.
CFP_HOST_DEVICE inline float get_compressed(compression form, const void* block, long i) {
  switch (form) {
    case compression::none: break;
    case compression::bfloat16: return static_cast<float>(static_cast<const bf16*>(block)[i]);
    case compression::blocks8: {
      const blocks_of_8_bits all(const_cast<void*>(block), compressed_numbers);
      return block8_code::decode(all.code[i], all.scale[0]);
    }
    case compression::largest: {
      const bf16* const values = static_cast<const bf16*>(block);
      const auto* const places = reinterpret_cast<const std::uint8_t*>(values + largest_numbers);
      for (long k = 0; k < largest_numbers; ++k)
        if (places[k] == i) return static_cast<float>(values[k]);
      break;
    }
  }
  return 0;
}

/// What is left to be sent next time: nothing of what is no number, or it would stay for ever.
template <class T>
CFP_HOST_DEVICE T left_over(T x, T sent) {
  const T rest = x - sent;
  return rest - rest == T(0) ? rest : T(0);
}

}  // namespace cfp
