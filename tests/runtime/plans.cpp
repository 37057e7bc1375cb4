// Every choice of every decision, one at a time and mixed at random, trains as one rank does, and sends exactly what
// the rules say.
#include "../catch.hpp"

#include "../from_environment.hpp"

#include "small.hpp"

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/session/race.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace plans_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

const long stride = how_many(1, 4, 90), mixed = how_many(60, 20, 2);  // every so many-th choice, and mixtures

// An operator of the user's own: a rule and a functor, nothing else.
inline constexpr struct swiglu_t : op<"..., ... -> ...", swiglu_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T up) {
    return gate * cfp::sigmoid(gate) * up;
  }
} swiglu;

// A model of two anchors meeting in the user's operator, with a residual, ending in a loss.
graph gated_model() {
  model net;
  const dimension batch{"batch", 4}, sequence{"sequence", 8}, width{"width", 16}, hidden{"hidden", 32};
  const tensor tokens = indices(net, "tokens", {batch, sequence}, 256);
  const tensor targets = indices(net, "targets", {batch, sequence}, 256);
  const tensor positions = indices(net, "positions", {sequence}, 64);
  const tensor table = net.weight("table.weight", {{"vocabulary", 256}, width}, {0, 0.5});
  const tensor places = net.weight("places.weight", {{"places", 64}, width}, {0, 0.5});
  const tensor words = lookup(table, tokens);
  tensor x = add_rows(words, lookup(places, positions));
  const tensor gate = linear(x, net.weight("gate.weight", {width, hidden}, {0, 0.3}));
  const tensor up = linear(x, net.weight("up.weight", {width, hidden}, {0, 0.3}));
  x = add(x, linear(swiglu(gate, up), net.weight("down.weight", {hidden, width}, {0, 0.3})));
  const tensor logits = linear(x, net.weight("head.weight", {width, {"vocabulary", 256}}, {0, 0.3}));
  const tensor max = logits_max(logits), sum = logits_sum(logits, max);
  net.recorded.loss = cross_entropy(logits, targets, max, sum, 1.0 / 32).id;
  return net.recorded;
}

// Trains under `choices` and compares with one rank; counts what was sent in one more step.
void check(const graph& g, const decision_graph& d, const mesh_shape& mesh, const std::vector<int>& choices,
           const trained& alone, const undecided& rounding, const own_kernels& own, const byte_text& text, long steps) {
  const plan p = realise("tested", g, mesh, d, choices);
  const difference apart = compare(alone, train_on(p.code, g, text, steps, 3, own), g, rounding);
  CHECK(apart.loss <= 1e-4);
  INFO("worst tensor " << apart.worst);
  CHECK(apart.parameters <= 1e-3);
  const auto seen = race(*ranks_for(p.code, own), {p.code}, g, text, {1, 3, {}});
  CHECK(seen[0].sent == count_collectives(p.code, g, 0));
  CHECK(seen[0].peak_bytes >= p.code.arena_bytes + p.code.persistent_bytes());
  CHECK(seen[0].peak_bytes <= predicted_peak(p.code));
}

// Random choices everywhere, in double precision, where nothing but a mistake is larger than rounding.
void check_mixtures(const graph& g, const mesh_shape& mesh, const decision_graph& d, const byte_text& text, long steps,
                    const trained& alone, const own_kernels& own) {
  std::mt19937 random(11);
  for (int m = 0; m < mixed; ++m) {
    INFO("random choices, case " << m);
    schedule order;  // collectives in line, or beside, gathers one or several ahead
    order.overlap = m % 2 == 1;
    order.ahead = 1 + m % 3;
    order.early = m % 5 != 3;
    const plan p = random_plan(g, mesh, d, random, sizeof(double), order);
    const auto apart = compare(alone, train_on(p.code, g, text, steps, 3, own), g);
    CHECK(apart.loss <= 1e-10);
    INFO("worst tensor " << apart.worst);
    CHECK(apart.parameters <= 1e-7);
  }
}

// Of each training; more by CFP_TEST_STEPS.
long trained_steps() {
  const char* const more = std::getenv("CFP_TEST_STEPS");
  return more != nullptr ? std::max(1l, std::atol(more)) : 6;
}

void check_all(const graph& g, const mesh_shape& mesh, long every = 1, const text_layout& what = {}) {
  const long steps = trained_steps();
  const own_kernels own = kernels_of<swiglu_t>();
  const byte_text text = text_for(g, what);
  const trained alone = train_on(single(g, sizeof(float)), g, text, steps, 3, own);
  CHECK(all_changed(alone));
  const trained exact = train_on(single(g, sizeof(double)), g, text, steps, 3, own);
  const undecided rounding = rounding_decides(alone, exact, g);
  INFO("left out: " << rounding.count << " of " << rounding.of << ", most of " << rounding.most);
  CHECK(rounding.count * 100 <= rounding.of);
  const block_structure blocks = parallel_blocks(g);
  const decision_graph d = decisions(g, blocks, mesh, axis_choice::regathered);
  std::set<std::string> tried;
  long count = 0;
  for (std::size_t n = 0; n < d.nodes.size(); ++n) {
    if (d.nodes[n].kind == decision::strategy_of_part && !tried.insert(fingerprint(g, d.nodes[n].operations)).second)
      continue;
    for (std::size_t c = 0; c < d.nodes[n].choices(); ++c, ++count) {
      if (count % (stride * every) != 0) continue;
      // Pairs of forms are many on two axes; their mixtures are tried below.
      if (mesh.rank() > 1 && d.nodes[n].kind == decision::forms_of_tensor && c % 7 != 0) continue;
      INFO(decision_label(d.nodes[n]) << ": " << d.nodes[n].names[c]);
      std::vector<int> choices(d.nodes.size(), 0);
      choices[n] = static_cast<int>(c);
      check(g, d, mesh, choices, alone, rounding, own, text, steps);
    }
  }
  check_mixtures(g, mesh, d, text, steps, exact, own);
}

}  // namespace

TEST_CASE("every choice of a GPT trains as one rank does, two ranks") {
  check_all(differentiate(refine(decoder(tiny_config()))), mesh_of({2}));
}

TEST_CASE("every choice of a GPT trains as one rank does, four ranks on one axis") {
  check_all(differentiate(refine(decoder(tiny_config()))), mesh_of({4}));
}

TEST_CASE("every choice of a GPT trains as one rank does, four ranks on two axes") {
  transformer c = tiny_config();
  c.layers = 1;
  check_all(differentiate(refine(decoder(c))), mesh_of({2, 2}), 3);  // every third; mixtures try the rest together
}

TEST_CASE("every choice of a LLaMA with grouped heads trains as one rank does") {
  transformer c = read_decoder(tiny("llama"));
  c.layers = 1;
  c.sequence = 8;
  check_all(differentiate(refine(decoder(c))), mesh_of({2}));
  check_all(differentiate(refine(decoder(c))), mesh_of({2, 2}), 5);
}

TEST_CASE("plans of a mixture of experts train as one rank does") {
  transformer c = read_decoder(tiny("gshard"));
  c.layers = 2;
  c.sequence = 8;
  c.experts.group = 16;
  check_all(differentiate(refine(decoder(c))), mesh_of({2}), 2);
  check_all(differentiate(refine(decoder(c))), mesh_of({2, 2}), 60);
}

TEST_CASE("plans of an encoder-decoder train as one rank does") {
  t5_config c = read_t5(tiny("t5"));
  c.layers = 1;
  c.sequence = 8;
  check_all(differentiate(refine(t5(c))), mesh_of({2}), 2, t5_layout(c));
  check_all(differentiate(refine(t5(c))), mesh_of({2, 2}), 40, t5_layout(c));
}

TEST_CASE("a user's operator is differentiated, planned, run and verified") {
  check_all(differentiate(refine(gated_model())), mesh_of({2}));
  check_all(differentiate(refine(gated_model())), mesh_of({2, 2}));
}

TEST_CASE("a missing kernel is named with what to do about it") {
  const graph g = differentiate(refine(gated_model()));
  const program p = single(g, sizeof(float));
  const auto ranks = ranks_for(p);
  try {
    ranks->run([&](rank& r) { r.load(p, g, 1); });
    FAIL("no error");
  } catch (const rank_failure& e) {
    CHECK(std::string(e.what()).find(
              "operator 'swiglu' is not in the catalogue: give the session .kernels = cfp::kernels_of<swiglu_t>()") !=
          std::string::npos);
  }
}

TEST_CASE("a saved plan names its choices") {
  const graph g = differentiate(refine(decoder(tiny_config())));
  const mesh_shape mesh = mesh_of({2});
  const decision_graph d = decisions(g, parallel_blocks(g), mesh);
  std::mt19937 random(2);
  const plan p = random_plan(g, mesh, d, random, sizeof(float));
  const auto j = to_json(p, g, mesh, d, "tiny");
  const auto read = [&](const nlohmann::ordered_json& from, const decision_graph& of) {
    return read_plan(from.dump(), "plan", "tiny", g, mesh, of).choices;
  };
  CHECK(read(j, d) == p.choices);
  const auto refused = [&](const std::string& key, const nlohmann::ordered_json& value) {
    auto other = j;
    (key == "decisions" || j.contains(key) ? other[key] : other["decisions"][key]) = value;
    try {
      read(other, d);
    } catch (const bad_input& e) {
      return std::string(e.what());
    }
    return std::string("nothing is refused");
  };
  CHECK(refused("strategy of wte.dense", "data=everything")
            .find("plan: 'strategy of wte.dense' has no choice 'data=everything'; its choices are 'data=") == 0);
  CHECK(refused("strategy of wte.dense", 3) == "plan: 'strategy of wte.dense' must be a text, got number");
  CHECK(refused("strategy of nothing", "x") ==
        "plan: decides 'strategy of nothing', which this model has not to decide: is it another model's plan?");
  CHECK(refused("decisions", 3) == "plan: 'decisions' must be an object, got number");
  CHECK(refused("decisions", nlohmann::ordered_json::object()).find("plan: does not decide '") == 0);
  CHECK(refused("model", "other") == "plan: is of model 'other', this is 'tiny'");
  CHECK(refused("mesh", {{"x", 4}}).find("plan: is for mesh x=4, this one is ") == 0);
  const std::string times = "plan: 'predicted_ms' must be a number from 0 to 1e24, got ";
  CHECK(refused("predicted_ms", "soon") == times + "\"soon\"");
  CHECK(refused("predicted_ms", -1.5) == times + "-1.5");
  CHECK(refused("predicted_ms", 1e300) == times + "1e+300");
  CHECK(refused("predicted_ms", nullptr) == times + "null");
  CHECK_THROWS_AS(read_plan("{", "plan", "tiny", g, mesh, d), bad_input);
  // Labels and names that repeat come back as they were.
  decision_graph alike = d;
  for (decision& n : alike.nodes) {
    n.title = "one";
    n.names = std::vector<std::string>(n.names.size(), "same");
  }
  CHECK(read(to_json(p, g, mesh, alike, "tiny"), alike) == p.choices);
}

}  // namespace plans_tests
