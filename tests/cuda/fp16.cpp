// Numbers stored in 16 bits: every half, and what is nearest to every number between two.
#include "../catch.hpp"

#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>

#include <cmath>

namespace fp16_cases {

using namespace cfp;

static_assert(sizeof(fp16) == 2 && std::is_trivially_copyable_v<fp16>);
static_assert(std::is_same_v<wide_t<fp16>, float> && std::is_same_v<wide_t<bf16>, float> &&
              std::is_same_v<wide_t<double>, double>);
static_assert(is_narrow<fp16> && is_narrow<bf16> && !is_narrow<float>);
static_assert(fp16(1.0f).bits == 0x3c00 && static_cast<float>(fp16(-2.5f)) == -2.5f);

namespace {

fp16 of_bits(std::uint32_t bits) {
  fp16 x;
  x.bits = static_cast<std::uint16_t>(bits);
  return x;
}
// The value by the definition of the format.
float defined(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), rest = static_cast<int>(bits & 1023);
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(rest), -24)
                                   : std::ldexp(static_cast<float>(1024 + rest), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

}  // namespace

TEST_CASE("halves have the values of the format, and come back from them") {
  int wrong = 0;
  for (std::uint32_t u = 0; u < 0x10000; ++u) {
    const float x = of_bits(u);
    if ((u & 0x7fff) > 0x7c00) wrong += !std::isnan(x) || !std::isnan(static_cast<float>(fp16(x)));
    else if ((u & 0x7fff) == 0x7c00) wrong += !std::isinf(x) || std::signbit(x) != (u >= 0x8000) || fp16(x).bits != u;
    else wrong += x != defined(u) || std::signbit(x) != (u >= 0x8000) || fp16(x).bits != u;
  }
  CHECK(wrong == 0);
}

TEST_CASE("halves are the nearest to every number between two, ties to even") {
  int wrong = 0;
  for (std::uint32_t u = 0; u < 0x10000; ++u) {
    if ((u & 0x7fff) >= 0x7bff) continue;  // the largest, and what is not finite
    const float x = defined(u), next = defined(u + 1), middle = x + (next - x) / 2;
    wrong += fp16(middle).bits != (u % 2 == 0 ? u : u + 1);
    wrong += fp16(std::nextafter(middle, x)).bits != u;
    wrong += fp16(std::nextafter(middle, next)).bits != u + 1;
  }
  CHECK(wrong == 0);
  CHECK(fp16(65519.996f).bits == 0x7bff);
  CHECK(fp16(65520.0f).bits == 0x7c00);
  CHECK(fp16(-1e30f).bits == 0xfc00);
  CHECK(fp16(1e-30f).bits == 0);
  CHECK(fp16(-1e-30f).bits == 0x8000);
}

}  // namespace fp16_cases
