// Gradients equal central differences, in double precision: every weight of a small GPT, elements at random, on one
// rank and under plans.
#include "../catch.hpp"

#include "small.hpp"

#include <cfp/op/math.hpp>
#include <cfp/session/check_gradients.hpp>

#include <cmath>
#include <sstream>

namespace gradients_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

TEST_CASE("gradients of a GPT equal central differences") {
  transformer c = read_decoder(tiny("gpt"));
  c.layers = 1;
  c.width = 16;
  c.heads = 2;
  c.vocabulary = 256;
  c.batch = 2;
  c.sequence = 6;
  graph g = decoder(c);
  for (value& v : g.values)
    if (v.role == value_role::weight) v.fill.deviation = 0.3;
  gradient_options o;
  o.data = byte_text(std::string("the quick brown fox jumps over the lazy dog and sleeps"), c.batch, c.sequence, 1);
  o.elements = 12;
  o.seed = 9;
  o.mesh = "data=2";
  const gradient_check checked = check_gradients(g, o);
  std::ostringstream said;
  said << checked;
  INFO(said.str());
  CHECK(checked.holds());
  CHECK(checked.left_out() == 0);
  CHECK(checked.tried() > 150);
}

namespace {

// Values and slopes of an elementwise operator far from zero, in float.
template <class Op, std::size_t... I>
void check_far(const char* label, std::index_sequence<I...>) {
  INFO(label);
  for (const float far : {1.0f, 5.0f, 9.0f, 11.0f, 50.0f, 90.0f, 1e3f, 1e6f})
    for (unsigned signs = 0; signs < 1u << sizeof...(I); ++signs) {
      INFO("at +-" << far << ", signs " << signs);
      const float x[] = {((signs >> I) % 2 ? -far : far)...};
      CHECK(std::isfinite(Op::template apply<float>(x[I]...)));
      const auto slope = [&](std::size_t of) {
        return Op::template apply<dual<float>>(dual<float>(x[I], I == of ? 1.0f : 0.0f)...).slope;
      };
      const auto exact = [&](std::size_t of) {
        return Op::template apply<dual<double>>(dual<double>(static_cast<double>(x[I]), I == of ? 1.0 : 0.0)...).slope;
      };
      for (std::size_t of = 0; of < sizeof...(I); ++of) {
        CHECK(std::isfinite(slope(of)));
        CHECK(static_cast<double>(slope(of)) == Approx(exact(of)).epsilon(1e-4).margin(1e-4));
      }
    }
}

}  // namespace

TEST_CASE("activations have values and slopes far from zero too") {
  check_far<gelu_t>("gelu", std::make_index_sequence<1>());
  check_far<relu_t>("relu", std::make_index_sequence<1>());
  check_far<gated_silu_t>("gated_silu", std::make_index_sequence<2>());
}

TEST_CASE("relu passes on what is no number, and has no slope at zero") {
  CHECK(std::isnan(relu_t::apply(std::nanf(""))));
  CHECK(relu_t::apply(-1.0f) == 0);
  CHECK(relu_t::apply(2.0f) == 2);
  CHECK(relu_t::apply(dual<float>(0, 1)).slope == 0);
  CHECK(relu_t::apply(dual<float>(2, 1)).slope == 1);
}

}  // namespace gradients_tests
