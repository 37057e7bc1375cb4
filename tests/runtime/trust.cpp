// Nothing wrong is silent: what a user may get wrong in a model, its inputs and its plans, row by row, and the sentence
// each is answered with. Targets that are ignored have no part in loss and gradient.
#include "../catch.hpp"

#include "common.hpp"

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/model/random_words.hpp>

#include <cmath>

namespace trust_tests {

using namespace cfp;
using namespace small_tests;

namespace {

constexpr long rows = 8, width = 4, kinds = 8;

/// Rows of numbers, of which each is of a kind, or of one that does not count.
graph classifier(int passes, bool ignoring = true) {
  model net;
  const dimension batch{"batch", rows}, wide{"width", width}, all{"kinds", kinds};
  const tensor x = net.input("x", {batch, wide}, element::real, {});
  const tensor targets = net.input("targets", {batch}, element::index, targets_below(kinds, ignoring));
  net.recorded.loss = mean_cross_entropy(linear(x, net.weight("w", {wide, all}, {0, 0.5})), targets).id;
  training how;
  how.beta1 = 0.5;  // the first moment is half the gradient
  how.micro_batches = passes;
  return differentiate(refine(net.recorded), how);
}

/// In every pass `counted` of the rows count.
batch rows_of(long number, long counted) {
  std::vector<float> x;
  std::vector<std::int32_t> targets;
  for (long i = 0; i < rows; ++i) {
    const auto of = [&](std::uint64_t k) {
      return random_words(5, k, static_cast<std::uint64_t>(number * rows + i)).v[0];
    };
    for (std::uint64_t k = 0; k < width; ++k) x.push_back(static_cast<float>(of(k) % 256) / 128 - 1);
    // Not one after another, so that ranks have different numbers of them.
    targets.push_back(i * 3 % rows < counted ? static_cast<std::int32_t>(of(width) % kinds) : ignored_target);
  }
  return {{"x", x}, {"targets", targets}};
}

struct answer {
  double loss = 0;
  std::vector<double> gradient = std::vector<double>(width * kinds);
};

/// What frameworks compute: in each pass the mean over the rows that count; the passes' mean.
answer reference(const std::vector<double>& w, const std::vector<batch>& passes) {
  answer out;
  for (const batch& b : passes) {
    const auto& x = std::get<std::vector<float>>(b.at("x"));
    const auto& targets = std::get<std::vector<std::int32_t>>(b.at("targets"));
    double count = 0;
    for (const std::int32_t t : targets) count += t >= 0;
    for (long i = 0; i < rows && count > 0; ++i) {
      const std::int32_t target = targets[static_cast<std::size_t>(i)];
      if (target < 0) continue;
      const double share = 1 / (count * static_cast<double>(passes.size()));
      double logits[kinds]{}, sum = 0;
      for (long k = 0; k < kinds; ++k) {
        for (long d = 0; d < width; ++d)
          logits[k] += static_cast<double>(x[static_cast<std::size_t>(i * width + d)]) *
                       w[static_cast<std::size_t>(d * kinds + k)];
        sum += std::exp(logits[k]);
      }
      out.loss += share * (std::log(sum) - logits[target]);
      for (long d = 0; d < width; ++d)
        for (long k = 0; k < kinds; ++k)
          out.gradient[static_cast<std::size_t>(d * kinds + k)] +=
              share * static_cast<double>(x[static_cast<std::size_t>(i * width + d)]) *
              (std::exp(logits[k]) / sum - (k == target));
    }
  }
  return out;
}

void check_step(const program& p, const graph& g, const std::vector<batch>& data, double most) {
  std::vector<double> before, moment;
  double loss = 0;
  shared_batches batches(g, [&](long number) { return data[static_cast<std::size_t>(number) % data.size()]; });
  const int w = g.find("w"), m = g.find("w.exp_avg");
  ranks_for(p)->run([&](rank& r) {
    const auto run = r.load(p, g, 3);
    std::vector<double> first = whole(r, *run, g, w);
    one_step(*run, p, batches, 1);
    std::vector<double> then = whole(r, *run, g, m);
    if (r.leads()) before = first, moment = then, loss = run->loss();
  });
  batches.rethrow();
  const answer right = reference(before, data);
  CHECK(std::abs(loss - right.loss) <= most);
  REQUIRE(moment.size() == right.gradient.size());
  for (std::size_t i = 0; i < moment.size(); ++i) {
    INFO("gradient " << i << " is " << 2 * moment[i] << ", expected: " << right.gradient[i]);
    CHECK(std::abs(2 * moment[i] - right.gradient[i]) <= most);
  }
}

}  // namespace

TEST_CASE("ignored targets have no part in loss and gradient, on one rank and on every mesh") {
  for (const int passes : {1, 2}) {
    const graph g = classifier(passes);
    for (const std::vector<long>& counted : {std::vector<long>{5, 2}, {8, 1}, {0, 3}, {0, 0}}) {
      std::vector<batch> data;
      for (int n = 0; n < passes; ++n) data.push_back(rows_of(n, counted[static_cast<std::size_t>(n)]));
      INFO(passes << " passes, of " << rows << " targets " << counted[0] << " and " << counted[1] << " count");
      check_step(single(g, sizeof(double)), g, data, 1e-7);  // inputs are given as float
      check_step(single(g, sizeof(float)), g, data, 1e-6);
      check_step(single(g, 2), g, data, 2e-2);
      std::mt19937 random(7);
      for (const auto& sizes : {std::initializer_list<int>{2}, {4}, {2, 2}}) {
        const mesh_shape mesh = mesh_of(sizes);
        const decision_graph d = decisions(g, parallel_blocks(g), mesh);
        for (int n = 0; n < 6; ++n) {
          const plan p = random_plan(g, mesh, d, random, sizeof(double));
          INFO("plan " << n << " of a mesh of " << mesh.devices() << " ranks");
          check_step(p.code, g, data, 1e-7);
        }
      }
    }
  }
}

TEST_CASE("without ignored targets the mean over those that count is the mean over all") {
  const std::vector<batch> data{rows_of(0, rows)};
  const graph counting = classifier(1), plain = classifier(1, false);
  CHECK(plain.find("counted_targets") < 0);
  CHECK(counting.find("counted_targets") >= 0);
  check_step(single(plain, sizeof(double)), plain, data, 1e-7);
  check_step(single(counting, sizeof(double)), counting, data, 1e-7);
}

}  // namespace trust_tests
