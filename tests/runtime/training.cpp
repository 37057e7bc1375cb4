// What a training step does beside forward and backward: micro-batches, clipping, the schedule, dropout.
#include "../catch.hpp"

#include "open_engine.hpp"
#include "small.hpp"

#include <cfp/plan/named.hpp>
#include <cfp/plan/narrowed.hpp>
#include <cfp/profile/machine/roofline.hpp>
#include <cfp/session/race.hpp>

namespace training_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

graph small_gpt(const training& how, double dropout = 0) {
  transformer c = tiny_config();
  c.layers = 1;
  c.batch = 4 / how.micro_batches;
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = dropout;
  return differentiate(refine(decoder(c)), how);
}

trained alone(const graph& g, long steps) {
  const byte_text text = text_for(g);
  const trained out = train_on(single(g, sizeof(double)), g, text, steps, 3);
  CHECK(all_changed(out));
  return out;
}

// A tensor that persists, after so many steps on one rank.
std::vector<double> after(const graph& g, const std::string& label, long steps) {
  const program p = single(g, sizeof(double));
  const int v = g.find(label);
  REQUIRE(v >= 0);
  std::vector<double> out;
  shared_batches text(g, text_for(g));
  const auto ranks = ranks_for(p);
  ranks->run([&](rank& r) {
    const auto run = r.load(p, g, 3);
    for (long s = 1; s <= steps; ++s) one_step(*run, p, text, s);
    out = whole(r, *run, g, v);
  });
  return out;
}

std::vector<std::string> moments(const graph& g) {
  std::vector<std::string> out;
  for (const value& v : g.values)
    if (v.role == value_role::state && v.producer < 0 && v.label.view().ends_with(".exp_avg"))
      out.emplace_back(v.label.view());
  return out;
}

}  // namespace

TEST_CASE("a batch in pieces trains as the batch at once") {
  training how;
  how.clip = 0.5;
  const trained at_once = alone(small_gpt(how), 6);
  for (int pieces : {2, 4}) {
    how.micro_batches = pieces;
    const graph g = small_gpt(how);
    const auto apart = compare(at_once, alone(g, 6), g);
    INFO(pieces << " pieces, worst tensor " << apart.worst);
    CHECK(apart.loss <= 1e-12);
    CHECK(apart.parameters <= 1e-8);
  }
}

TEST_CASE("gradients are clipped by the norm of all of them") {
  training how;
  const graph free = small_gpt(how);
  double squares = 0;
  std::map<std::string, std::vector<double>> first;  // (1 - beta1) gradient, after one step
  for (const std::string& m : moments(free)) {
    first[m] = after(free, m, 1);
    for (double x : first[m]) squares += x * x;
  }
  const double norm = std::sqrt(squares) / (1 - how.beta1);
  for (const double most : {norm / 7, norm * 1.01}) {
    how.clip = most;
    const graph g = small_gpt(how);
    const double factor = std::min(1.0, most / norm);
    for (const std::string& m : {std::string("wte.weight.exp_avg"), std::string("h.0.attn.c_attn.weight.exp_avg")}) {
      const std::vector<double> x = after(g, m, 1);
      double apart = 0, size = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        apart += std::pow(x[i] - factor * first[m][i], 2), size += std::pow(factor * first[m][i], 2);
      CHECK(apart <= 1e-20 * size);
    }
  }
}

TEST_CASE("the learning rate rises, falls along a cosine, and stays") {
  const auto rate = [](double step) { return adamw_t::rate_at(step, 1.0, 10, 110, 0.1); };
  CHECK(rate(1) == Approx(0.1));
  CHECK(rate(5) == Approx(0.5));
  CHECK(rate(10) == Approx(1.0));
  CHECK(rate(60) == Approx(0.55));
  CHECK(rate(110) == Approx(0.1));
  CHECK(rate(1000) == Approx(0.1));
  CHECK(adamw_t::rate_at(1, 1.0, 0, 0, 0.1) == 1.0);
  CHECK(adamw_t::rate_at(7, 1.0, 0, 0, 0.1) == 1.0);
  // and a step moves the weights in proportion
  training how;
  const graph g = small_gpt(how);
  how.warmup = 4;
  const graph slow = small_gpt(how);
  const auto a = alone(g, 1), b = alone(slow, 1);
  for (std::size_t w = 0; w < a.weights.size(); ++w)
    for (std::size_t i = 0; i < a.change[w].size(); i += 17)
      CHECK(4 * b.change[w][i] == Approx(a.change[w][i]).margin(1e-12));
}

TEST_CASE("dropout keeps the mean, and differs from step to step, from place to place and from seed to seed") {
  model net;
  const tensor x = net.activation("x", {{"rows", 40}, {"columns", 1003}});
  const tensor a = net.called("a", dropout(x, 0.3)), b = net.called("b", dropout(x, 0.3));
  net.recorded.loss = net.called("both", add(a, b)).id;
  graph g = net.recorded;
  g[g.find("x")].fill = {1.0};
  const program p = single(g, sizeof(double));
  const auto run = [&](std::uint64_t seed, long step, const char* of) {
    std::vector<double> out;
    rank_pool pool(1);
    pool.run([&](rank_context& rank) {
      open_engine<double> e(p, g, rank, seed);
      e->step(step, 1);
      for (std::size_t i = 0; i < p.buffers.size(); ++i)
        if (g[p.buffers[i].value].label == of) {
          const double* const at = e.at(static_cast<int>(i));
          out.assign(at, at + 40 * 1003);
        }
    });
    return out;
  };
  const std::vector<double> both = run(1, 1, "both");
  const double n = static_cast<double>(both.size());
  double none = 0, one = 0, two = 0, sum = 0;
  for (double y : both) {
    none += y == 0, one += (y > 1 && y < 2), two += (y > 2);
    sum += y;
  }
  const auto is_share = [&](double count, double share) {
    return std::abs(count - n * share) <= 5 * std::sqrt(n * share * (1 - share));
  };
  CHECK(none + one + two == n);
  CHECK(is_share(none, 0.3 * 0.3));  // the two are independent of each other
  CHECK(is_share(one, 2 * 0.3 * 0.7));
  CHECK(is_share(two, 0.7 * 0.7));
  CHECK(sum / n == Approx(2).epsilon(0.01));
  CHECK(run(1, 1, "both") == both);
  for (const auto& other : {run(1, 2, "both"), run(2, 1, "both")}) {
    double same = 0;
    for (std::size_t i = 0; i < both.size(); ++i) same += both[i] == other[i];
    CHECK(is_share(same, 0.09 * 0.09 + 0.42 * 0.42 + 0.49 * 0.49));
  }
}

TEST_CASE("micro-batches, clipping and dropout train on every mesh as on one rank, and send what was inferred") {
  std::mt19937 random(4);
  for (const auto& [mesh, cases] : {std::pair{mesh_of({2}), 12}, {mesh_of({4}), 6}, {mesh_of({2, 2}), 12}}) {
    training how;
    how.clip = 0.5;
    how.warmup = 2;
    how.steps = 100;
    how.micro_batches = cases == 6 ? 1 : 2;
    const graph g = small_gpt(how, 0.1);
    const auto expected = alone(g, 6);
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    const byte_text text = text_for(g);
    for (int n = 0; n < cases; ++n) {
      const plan p = random_plan(g, mesh, d, random, sizeof(double));
      const auto apart = compare(expected, train_on(p.code, g, text, 6, 3), g);
      INFO("case " << n << ", worst tensor " << apart.worst);
      CHECK(apart.loss <= 1e-10);
      CHECK(apart.parameters <= 1e-7);
      if (n % 4 != 0) continue;
      const plan in_float = realise("float", g, mesh, d, p.choices);
      CHECK(race(*ranks_for(in_float.code), {in_float.code}, g, text, {1, 3, {}})[0].sent ==
            count_collectives(in_float.code, g));
    }
  }
}

TEST_CASE(
    "a step in pieces needs less memory, reduces gradients once, and gathers weights once unless they are regathered") {
  long table_bytes = 0, other_bytes = 0;
  const auto sized = [&](int pieces) {
    model net;
    const dimension batch{"batch", 64 / pieces}, sequence{"sequence", 32}, width{"width", 64}, hidden{"hidden", 128},
        vocabulary{"vocabulary", 256};
    const tensor table = net.weight("table", {vocabulary, width}, {0, 0.1}),
                 up = net.weight("up", {width, hidden}, {0, 0.1});
    const tensor down = net.weight("down", {hidden, width}, {0, 0.1}),
                 head = net.weight("head", {width, vocabulary}, {0, 0.1});
    const tensor middle = gelu(linear(lookup(table, indices(net, "tokens", {batch, sequence}, 256)), up));
    net.recorded.loss =
        mean_cross_entropy(linear(linear(middle, down), head), indices(net, "targets", {batch, sequence}, 256)).id;
    table_bytes = 4 * 256 * 64;
    other_bytes = 4 * (64 * 128 + 128 * 64 + 64 * 256);
    training how;
    how.micro_batches = pieces;
    return differentiate(refine(net.recorded), how);
  };
  const graph whole = sized(1), two = sized(2);
  CHECK(single(sized(8), 4).arena_bytes < single(whole, 4).arena_bytes / 6);
  const mesh_shape mesh = mesh_of({2});  // a device sends half of what is gathered, and all of what is reduced
  const auto sent = [&](const graph& g, const char* wish, collective_kind kind) {
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    const cost_graph costs = roofline(g, mesh, d, plain_machine(mesh)).build();
    const solution best = solve(fixed(costs, follow(named_plan{"data", {wish}}, d, mesh)));
    REQUIRE(best.feasible);
    return count_collectives(realise("data", g, mesh, d, best.choices).code, g).bytes[static_cast<std::size_t>(kind)];
  };
  using kind = collective_kind;
  for (const auto& [g, passes] : {std::pair<const graph&, int>{whole, 1}, {two, 2}}) {
    CHECK(sent(g, "batch", kind::all_reduce) == table_bytes + other_bytes + passes * 4);  // and the loss
    CHECK(sent(g, "batch/scattered batch", kind::reduce_scatter) == (table_bytes + other_bytes) / 2);
    CHECK(sent(g, "batch/scattered batch", kind::all_gather) == (table_bytes + other_bytes) / 2);
    CHECK(sent(g, "batch/regathered batch", kind::reduce_scatter) == passes * (table_bytes + other_bytes) / 2);
    CHECK(sent(g, "batch/regathered batch", kind::all_gather) ==
          passes * (table_bytes + 2 * other_bytes) / 2);  // no gradient reads the table
  }
}

TEST_CASE("a training that ends in what is no number is not taken for right") {
  graph g;
  value v;
  v.label = "w";
  g.add(v);
  trained right;
  right.loss = {2.0, 1.0};
  right.weights = {0};
  right.change = {{1.0, 2.0}};
  right.begun = {1};
  CHECK(compare(right, right, g).loss == 0);
  CHECK(compare(right, right, g).parameters == 0);
  trained wrong = right;
  wrong.loss[1] = std::numeric_limits<double>::quiet_NaN();
  wrong.change[0][1] = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  for (const auto& [a, b] : {std::pair{right, wrong}, {wrong, right}, {wrong, wrong}}) {
    CHECK(compare(a, b, g).loss == infinite);
    CHECK(compare(a, b, g).parameters == infinite);
  }
  trained elsewhere = right;  // changed alike, but from other weights
  elsewhere.begun = {2};
  CHECK(compare(right, elsewhere, g).parameters == infinite);
}

}  // namespace training_tests
