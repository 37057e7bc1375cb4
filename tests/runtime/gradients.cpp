// Gradients equal central differences, in double precision: every weight of a small GPT, elements at random.
#include "../catch.hpp"

#include "open_engine.hpp"
#include "small.hpp"

#include <cfp/op/math.hpp>

#include <cmath>

namespace gradients_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

TEST_CASE("gradients of a GPT equal central differences") {
  gpt_config c = read_gpt(tiny("gpt"));
  c.layers = 1;
  c.width = 16;
  c.heads = 2;
  c.vocabulary = 256;
  c.batch = 2;
  c.sequence = 6;
  const graph forward = refine(gpt(c));
  // A rate of zero keeps the weights, and with beta1 = 0 the first moment is the gradient.
  training still;
  still.rate = 0;
  still.beta1 = 0;
  graph g = differentiate(forward, still);
  for (value& v : g.values)
    if (v.role == value_role::weight) v.fill.deviation = 0.3;
  const program p = single(g, sizeof(double));
  shared_batches text(
      g, byte_text(std::string("the quick brown fox jumps over the lazy dog and sleeps"), c.batch, c.sequence, 1));
  rank_pool pool(1);
  pool.run([&](rank_context& rank) {
    open_engine<double> run(p, g, rank, 9);
    one_step(*run, p, text, 1);
    std::mt19937 random(3);
    int tried = 0;
    for (int v = 0; v < g.value_count(); ++v) {
      if (g[v].role != value_role::weight || g[v].producer >= 0) continue;
      const std::string label(g[v].label.view());
      double* weight = nullptr;
      const double* moment = nullptr;
      for (std::size_t b = 0; b < p.buffers.size(); ++b) {
        if (p.buffers[b].value == v) weight = run.at(static_cast<int>(b));
        if (g[p.buffers[b].value].label == label + ".exp_avg") moment = run.at(static_cast<int>(b));
      }
      REQUIRE(weight);
      REQUIRE(moment);
      run->step(1, 1);
      const long n = elements(g[v].shape);
      const std::vector<double> gradient(moment, moment + n);
      double scale = 0;
      for (long i = 0; i < n; ++i) scale = std::max(scale, std::abs(gradient[static_cast<std::size_t>(i)]));
      for (int t = 0; t < 12; ++t, ++tried) {
        // Table rows no token names have no gradient: take half of the places among the largest.
        long i = static_cast<long>(random() % static_cast<unsigned long>(n));
        if (t % 2)
          for (int look = 0; look < 200; ++look) {
            const long other = static_cast<long>(random() % static_cast<unsigned long>(n));
            if (std::abs(gradient[static_cast<std::size_t>(other)]) > std::abs(gradient[static_cast<std::size_t>(i)]))
              i = other;
          }
        const double expected = gradient[static_cast<std::size_t>(i)], kept = weight[i], h = 1e-5;
        weight[i] = kept + h;
        run->step(1, 1);
        const double up = run->loss();
        weight[i] = kept - h;
        run->step(1, 1);
        const double down = run->loss();
        weight[i] = kept;
        INFO(label << " element " << i << ": gradient " << expected << ", difference " << (up - down) / (2 * h));
        CHECK(std::abs((up - down) / (2 * h) - expected) <= 1e-6 * scale + 1e-9);
      }
    }
    CHECK(tried > 150);
  });
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
