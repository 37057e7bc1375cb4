// Every operator under every split: its results and gradients equal those of one rank, gradients equal
// central differences, and the communicators count what the rules say. Operators of the user's own are among
// them.
#include "../catch.hpp"

#include "../from_environment.hpp"

#include "assignments.hpp"
#include "operator_models.hpp"

#include <cfp/backend/host/kernels.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/session/check_gradients.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace operators_tests {

using namespace cfp;
using namespace assignment_tests;
using namespace operator_models;

namespace {

const long stride = how_many(1, 2, 6);  // every so many-th case

void compare(backend& on, const graph& g, const sharding& s, const outcome& alone) {
  const program p = lowered(g, on.mesh(), s);
  const outcome together = run(on, p, g);
  for (std::size_t rank = 0; rank < together.loss.size(); ++rank) {
    CHECK(std::abs(together.loss[rank] - alone.loss[0]) <= 1e-10 * std::abs(alone.loss[0]));
    CHECK(together.sent[rank] == count_collectives(p, g, static_cast<int>(rank)));
  }
  for (std::size_t w = 0; w < alone.after.size(); ++w) {
    INFO("weight " << w);
    CHECK(apart(alone.after[w], together.after[w]) <= 1e-10);
    CHECK(apart(alone.slope[w], together.slope[w]) <= 1e-10);
  }
}

void check_splits(const std::vector<int>& sizes, int every = 1) {
  const mesh_shape mesh = mesh_of(sizes);
  const auto one = threads(mesh_of({1}), number::float64, all_kernels()),
             all = threads(mesh, number::float64, all_kernels());
  int count = 0;
  for (const example& x : examples()) {
    const graph forward = x.forward({}), g = differentiate(forward, one_step_of());
    const outcome alone = run(*one, lowered(g, mesh_of({1}), sharding::replicated(g)), g);
    REQUIRE(std::isfinite(alone.loss[0]));
    for (int i = 0; i < forward.size(); ++i)
      for (const assignment& a : admitted(g.at(i), mesh))
        for (const bool by_need : {false, true}) {
          if (count++ % (stride * every) != 0) continue;
          INFO(x.label << ": " << words(g.at(i), a, mesh)
                       << (by_need ? ", weights as needed" : ", weights replicated"));
          compare(*all, g, split_around(g, i, a, mesh, by_need), alone);
        }
    // All operations at once, each its own way.
    std::mt19937 random(3);
    for (int n = 0; n < 10; ++n) {
      if (count++ % (stride * every) != 0) continue;
      INFO(x.label << ": random assignments, case " << n);
      sharding s = sharding::replicated(g);
      for (int i = 0; i < g.size(); ++i) s.assigned[static_cast<std::size_t>(i)] = some_admitted(random, g.at(i), mesh);
      compare(*all, g, s, alone);
    }
  }
}

}  // namespace

TEST_CASE("gradients of every operator equal central differences") {
  gradient_options o;
  o.elements = 1 << 20;  // all
  o.kernels = all_kernels();
  o.seed = 17;
  for (const example& x : examples()) {
    const gradient_check c = check_gradients(x.forward({}), o);
    std::ostringstream said;
    said << c;
    INFO(x.label << ": " << said.str());
    CHECK(c.holds());
    CHECK(c.left_out() == 0);
    for (const gradient_check::of_tensor& t : c.tensors) {
      INFO(t.tensor);
      CHECK(t.largest > 0);
      CHECK(t.worst.apart() <= 1e-7 * t.largest);  // closer than the rounding of the loss might leave open
      CHECK(t.tried == t.elements);
    }
  }
}

TEST_CASE("every operator under every split equals one rank") {
  SECTION("two ranks") { check_splits({2}); }
  SECTION("four ranks on one axis") { check_splits({4}); }
  SECTION("four ranks on two axes") { check_splits({2, 2}); }
  SECTION("eight ranks on three axes") { check_splits({2, 2, 2}, 5); }  // of ten thousands of ways every fifth
}

TEST_CASE("contractions in any order of dimensions equal their definition") {
  std::mt19937 random(5);
  for (int n = 0; n < 2000; ++n) {
    if (n % stride != 0) continue;
    std::string in0, in1, out;
    std::vector<long> sizes;
    const int factors = static_cast<int>(random() % 6);
    for (int f = 0; f < factors; ++f) {
      const char label = static_cast<char>('a' + f);
      const auto kind = random() % 4;  // row, column, sum, batch
      sizes.push_back(1 + static_cast<long>(random() % 4));
      if (kind != 1) in0 += label;
      if (kind != 0) in1 += label;
      if (kind != 2) out += label;
    }
    const auto spaced = [&](std::string s) {
      std::shuffle(s.begin(), s.end(), random);
      std::string t;
      for (char c : s) t += (t.empty() ? "" : " ") + std::string(1, c);
      return t;
    };
    const std::string text = spaced(in0) + ", " + spaced(in1) + " -> " + spaced(out);
    INFO(text);
    operation o;
    o.r = parse(text);
    for (const factor& f : o.r.factors) o.sizes.push(sizes[static_cast<std::size_t>(f.label.view()[0] - 'a')]);
    graph g;
    o.operands = {{g.add(value{}), g.add(value{})}, 2};
    o.results.push(g.add(value{}));
    g.add(o);
    program p;
    p.mesh = mesh_of({1});
    p.buffers.resize(3);
    instruction i;
    i.op = 0;
    for (const int b : {0, 1}) i.in.push(b);
    i.out.push(2);
    call c = bind_call(p, g, i, 0);
    const auto count = [&](const pattern& t) {
      long k = 1;
      for (signed char f : t.factors) k *= o.sizes[f];
      return static_cast<std::size_t>(k);
    };
    std::vector<double> x(count(o.r.operands[0])), y(count(o.r.operands[1])), z(count(o.r.results[0]), 99),
        expected(z.size());
    for (double& e : x) e = static_cast<double>(random() % 19) - 9;
    for (double& e : y) e = static_cast<double>(random() % 19) - 9;
    c.operand[0].data = x.data();
    c.operand[1].data = y.data();
    c.result[0].data = z.data();
    long all = 1;
    for (long s : o.sizes) all *= s;
    for (long k = 0; k < all; ++k) {
      long rest = k, at[3] = {};
      for (int f = 0; f < c.factors; ++f) {
        const long q = rest % c.size[f];
        rest /= c.size[f];
        at[0] += q * c.operand[0].stride[f];
        at[1] += q * c.operand[1].stride[f];
        at[2] += q * c.result[0].stride[f];
      }
      expected[static_cast<std::size_t>(at[2])] +=
          x[static_cast<std::size_t>(at[0])] * y[static_cast<std::size_t>(at[1])];
    }
    host::run_product<double>(c);
    CHECK(z == expected);  // whole numbers: exact
  }
}

TEST_CASE("an operator without a kernel is named with what to do about it") {
  host::kernels<double> k;
  const char* sentence =
      "operator 'swiglu' is not in the catalogue: give the session .kernels = cfp::kernels_of<swiglu_t>()";
  CHECK_THROWS_WITH(k.find(info<swiglu_t>), sentence);
  CHECK_THROWS_WITH((k.find(info<slope<swiglu_t, 1>>)), sentence);
  k.add<swiglu_t>();
  CHECK(k.find(info<swiglu_t>) != nullptr);
  CHECK(k.find((info<slope<swiglu_t, 1>>)) != nullptr);
}

TEST_CASE("what cannot be differentiated or computed is refused when the model is made") {
  model net;
  const tensor x = w(net, "x", {{"a", 4}, {"k", 4}}), y = w(net, "y", {{"b", 4}});
  net.recorded.loss = weigh(row_max(x), constant_like(net, y, "c")).id;
  CHECK_THROWS_WITH(differentiate(refine(net.recorded)), Catch::Contains("has no gradient of its own"));
  CHECK_THROWS_WITH((op<"a k, b -> a b">{}(x, y)),
                    Catch::Contains("'k' is summed over by a product and must stand in both operands"));
}

}  // namespace operators_tests
