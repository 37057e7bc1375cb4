// Numbers stored as bfloat16: rounding, and trainings that use it under random plans.
#include "../catch.hpp"

#include "../from_environment.hpp"

#include "small.hpp"

namespace bf16_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

TEST_CASE("bfloat16 rounds to nearest, ties to even") {
  static_assert(sizeof(bf16) == 2 && std::is_trivially_copyable_v<bf16>);
  int wrong = 0;
  for (std::uint32_t u = 0; u < 0x10000; ++u) {
    bf16 x;
    x.bits = static_cast<std::uint16_t>(u);
    const float f = x;
    if (std::isnan(f)) wrong += !std::isnan(static_cast<float>(bf16(f)));
    else wrong += bf16(f).bits != x.bits;
    if (std::isnan(f) || std::isinf(f) || (u & 0x7fff) == 0x7f7f) continue;
    bf16 next;
    next.bits = static_cast<std::uint16_t>(u + 1);  // away from zero
    const float middle = f + (static_cast<float>(next) - f) / 2;
    wrong += bf16(middle).bits != (u % 2 == 0 ? x.bits : next.bits);
    wrong += bf16(std::nextafter(middle, f)).bits != x.bits;
    wrong += bf16(std::nextafter(middle, static_cast<float>(next))).bits != next.bits;
  }
  CHECK(wrong == 0);
  CHECK(std::isinf(static_cast<float>(bf16(3.4e38f))));
  CHECK(static_cast<float>(bf16(1.0f)) == 1.0f);
}

namespace {

const long plans = how_many(5, 5, 2);

double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t s = 0; s < a.size(); ++s) difference::widen(most, std::abs(a[s] - b[s]) / std::abs(a[s]));
  return most;
}

void check_model(const std::string& label, const graph& g, const text_layout& what = {}) {
  INFO(label);
  const byte_text text = text_for(g, what);
  const long steps = 8;
  const trained exact = train_on(single(g, sizeof(float)), g, text, steps, 3);
  const trained alone = train_on(single(g, sizeof(bf16)), g, text, steps, 3);
  CHECK(apart(exact.loss, alone.loss) <= 1e-2);
  CHECK(exact.loss != alone.loss);    // it is another arithmetic
  CHECK(exact.begun == alone.begun);  // weights are held in float
  std::mt19937 random(3);
  for (const mesh_shape& mesh : {mesh_of({2}), mesh_of({2, 2})}) {
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    for (int n = 0; n < plans; ++n) {
      INFO("case " << n << " on " << mesh.devices() << " ranks");
      const plan p = random_plan(g, mesh, d, random, sizeof(bf16));
      CHECK(apart(alone.loss, train_on(p.code, g, text, steps, 3).loss) <= 1e-2);
    }
  }
}

}  // namespace

TEST_CASE("models train in bfloat16 as in float, and under every plan alike, within its rounding", "[heavy]") {
  training how;
  how.clip = 1;
  check_model("gpt", differentiate(refine(decoder(tiny_config())), how));
  transformer l = read_decoder(tiny("llama"));
  l.sequence = 8;
  check_model("llama", differentiate(refine(decoder(l)), how));
  how.micro_batches = 2;
  t5_config t = read_t5(tiny("t5"));
  t.sequence = 8;
  t.batch = 2;
  check_model("t5", differentiate(refine(t5(t)), how), t5_layout(t));
}

TEST_CASE("numbers take two bytes, what lasts takes four") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  const program half = single(g, sizeof(bf16)), full = single(g, sizeof(float));
  CHECK(half.persistent_bytes() == full.persistent_bytes());

  // Matrices, and what is added to their products: c_attn, c_proj and c_fc have a bias.
  long numbers = 0, copied = 0, masters = 0;
  for (const value& v : g.values) {
    if (v.role != value_role::weight || v.producer >= 0) continue;
    const std::string_view label = v.label.view();
    const bool added = label.ends_with(".bias") && label.find(".c_") != std::string_view::npos;
    if (v.group.back() > 0 || added) numbers += elements(v.shape);
  }
  for (const instruction& i : half.code) {
    if (i.kind != instruction::narrow) continue;
    CHECK(half[i.in[0]].persistent);
    masters += half[i.in[0]].bytes;
    copied += half[i.out[0]].bytes;
  }
  CHECK(masters == 4 * numbers);
  CHECK(copied == 2 * numbers);
  CHECK(10 * (half.arena_bytes - copied) < 6 * full.arena_bytes);
  for (const instruction& i : full.code) CHECK(i.kind != instruction::narrow);
}

TEST_CASE("weights are gathered, and their gradients reduced, in two bytes") {
  for (const int pieces : {1, 2}) {
    training how;
    how.micro_batches = pieces;
    const graph g = differentiate(refine(decoder(tiny_config())), how);
    const mesh_shape mesh = mesh_of({2});
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    for (const char* rest : {"data=batch/scattered", "data=batch/regathered"}) {
      std::vector<int> choices(d.nodes.size(), 0);
      for (std::size_t n = 0; n < d.nodes.size(); ++n)
        if (const auto at = std::find(d.nodes[n].names.begin(), d.nodes[n].names.end(), rest);
            at != d.nodes[n].names.end())
          choices[n] = static_cast<int>(at - d.nodes[n].names.begin());
      const auto gathered = [&](long real_bytes) {
        const plan p = realise("", g, mesh, d, choices, real_bytes);
        long bytes = 0;
        for (std::size_t i = 0; i < p.code.code.size(); ++i) {
          const instruction& c = p.code.code[i];
          if (c.kind == instruction::reshard && g[p.code[c.in[0]].value].role == value_role::weight) {
            collective_count n;
            count_collective(p.code, g, i, n);
            bytes += n.total_bytes();
          }
        }
        return bytes;
      };
      CHECK(gathered(sizeof(bf16)) > 0);
      CHECK(2 * gathered(sizeof(bf16)) == gathered(sizeof(float)));
    }
  }
}

}  // namespace bf16_tests
