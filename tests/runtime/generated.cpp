// What is generated: operators of random sizes under random splits, and random models under random plans, equal one
// rank. So many cases as CFP_GENERATED says, drawn from CFP_SEED on: every draw has a seed of its own, with which it
// comes again by itself (tests/generated.sh).
#include "../catch.hpp"

#include "../from_environment.hpp"
#include "../random_graph.hpp"
#include "assignments.hpp"
#include "operator_models.hpp"
#include "small.hpp"

#include <cfp/block/decisions.hpp>
#include <cfp/block/parallel_blocks.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/session/train.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace generated_tests {

using namespace cfp;
using assignment_tests::apart, assignment_tests::outcome;

namespace {

long cases() { return from_environment("CFP_GENERATED", how_many(10000, 4000, 200)); }

long first_seed() { return from_environment("CFP_SEED", 1); }

// Ranks are made once for each mesh.
class all_ranks {
 public:
  backend& on(const std::vector<int>& sizes) {
    auto& kept = kept_[sizes];
    if (!kept) kept = threads(assignment_tests::mesh_of(sizes), number::float64, operator_models::all_kernels());
    return *kept;
  }

 private:
  std::map<std::vector<int>, std::unique_ptr<backend>> kept_;
};

const std::vector<int>& some_mesh(std::mt19937& random) {
  static const std::vector<std::vector<int>> all = {{2}, {3}, {4}, {2, 2}, {2, 2}, {1, 2}, {2, 2, 2}};
  return all[random() % all.size()];
}

std::string words(const std::vector<int>& sizes) {
  std::string s;
  for (int n : sizes) s += (s.empty() ? "" : "x") + std::to_string(n);
  return s;
}

// A value and its shape in words, of what a model is given.
std::string shapes(const graph& g) {
  std::string out;
  for (const value& v : g.values) {
    if (v.producer >= 0 || (v.role != value_role::weight && v.role != value_role::input)) continue;
    out += (out.empty() ? "" : ", ") + std::string(v.label.view()) + "[";
    for (int d = 0; d < v.rank(); ++d)
      out += (d > 0 ? " " : "") + std::string(v.dims[d].view()) + "=" + std::to_string(v.shape[d]);
    out += "]";
  }
  return out;
}

constexpr double rate = 0.01;

class stopwatch {
 public:
  ~stopwatch() { std::printf("%ld %s in %.1f s, %.0f a second\n", done, what, seconds(), double(done) / seconds()); }
  explicit stopwatch(const char* of) : what(of) {}
  long done = 0;

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  const char* what;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Operators.

std::string why_apart(const outcome& alone, const outcome& together, const program& p, const graph& g) {
  for (std::size_t rank = 0; rank < together.loss.size(); ++rank) {
    const double d = std::abs(together.loss[rank] - alone.loss[0]);
    if (!(d <= 1e-10 * std::max(1.0, std::abs(alone.loss[0]))))
      return "loss " + std::to_string(together.loss[rank]) + ", on one rank " + std::to_string(alone.loss[0]);
    if (!(together.sent[rank] == count_collectives(p, g, static_cast<int>(rank))))
      return "rank " + std::to_string(rank) + " sends what the rules do not say";
  }
  // Rows of one element have gradients of nothing but rounding.
  for (std::size_t w = 0; w < alone.after.size(); ++w) {
    const double slope = apart(alone.slope[w], together.slope[w], 1e-2),
                 after = apart(alone.after[w], together.after[w]);
    if (!(slope <= 1e-10)) return "gradient of weight " + std::to_string(w) + " apart by " + std::to_string(slope);
    if (!(after <= 1e-10)) return "weight " + std::to_string(w) + " apart by " + std::to_string(after);
  }
  return {};
}

// One operator of one size, split in some ways: how many were tried; what is wrong is told.
long try_operator(long seed, const std::vector<operator_models::example>& all, all_ranks& ranks, std::string& wrong) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const operator_models::example& x = all[random() % all.size()];
  const std::vector<int>& mesh = some_mesh(random);
  const graph forward = x.forward(operator_models::sizes(1 + random())),
              g = differentiate(forward, assignment_tests::one_step_of(1e-3));
  backend& on = ranks.on(mesh);
  std::vector<sharding> ways;
  for (int n = 0; n < 8; ++n) {
    sharding s = sharding::replicated(g);
    if (n % 2 == 0) {
      const int i = static_cast<int>(random() % static_cast<unsigned>(forward.size()));
      s = assignment_tests::split_around(g, i, assignment_tests::some_admitted(random, g.at(i), on.mesh()), on.mesh(),
                                         random() % 2 == 0);
    } else {
      for (int i = 0; i < g.size(); ++i)
        s.assigned[static_cast<std::size_t>(i)] = assignment_tests::some_admitted(random, g.at(i), on.mesh());
    }
    if (std::none_of(ways.begin(), ways.end(), [&](const sharding& w) { return w.assigned == s.assigned; }))
      ways.push_back(s);
  }
  const auto said = [&](std::size_t n) {
    std::string out = x.label + " of " + shapes(g) + " on mesh " + words(mesh) + ", way " + std::to_string(n) + ":";
    for (int i = 0; i < g.size(); ++i)
      out += "\n  " + assignment_tests::words(g.at(i), ways[n].assigned[static_cast<std::size_t>(i)], on.mesh());
    return out + "\n";
  };
  std::vector<program> programs;
  for (const sharding& s : ways) {
    wrong = said(programs.size());
    programs.push_back(assignment_tests::lowered(g, on.mesh(), s));
  }
  wrong = x.label + " of " + shapes(g) + " on mesh " + words(mesh) + "\n";
  const outcome alone = assignment_tests::run(
      ranks.on({1}), assignment_tests::lowered(g, assignment_tests::mesh_of({1}), sharding::replicated(g)), g);
  const std::vector<outcome> together = assignment_tests::run(on, programs, g);
  wrong.clear();
  for (std::size_t n = 0; n < ways.size() && wrong.empty(); ++n)
    if (const std::string why = why_apart(alone, together[n], programs[n], g); !why.empty()) wrong = said(n) + why;
  return static_cast<long>(ways.size());
}

// Models.

// Indices by the number of a pass.
batch_source some_indices(const graph& g) {
  return [&g](long number) {
    batch out;
    for (const value& v : g.values) {
      if (v.role != value_role::input || v.producer >= 0) continue;
      std::vector<std::int32_t> x(static_cast<std::size_t>(elements(v.shape)));
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<std::int32_t>(
            random_words(static_cast<std::uint64_t>(number), name_hash(v.label.view()), i).v[0] %
            static_cast<std::uint32_t>(v.fill.bound));
      out[std::string(v.label.view())] = std::move(x);
    }
    return out;
  };
}

std::string why_apart(const trained& alone, const trained& together, const graph& g) {
  for (std::size_t s = 0; s < alone.loss.size(); ++s)
    if (!(std::abs(alone.loss[s] - together.loss[s]) <= 1e-10 * std::max(1.0, std::abs(alone.loss[s]))))
      return "loss of step " + std::to_string(s + 1) + ": " + std::to_string(together.loss[s]) + ", on one rank " +
             std::to_string(alone.loss[s]);
  for (std::size_t w = 0; w < alone.weights.size(); ++w) {
    if (alone.begun[w] != together.begun[w]) return "weights begin otherwise";
    // In shares of what a step moves at most.
    const double change = apart(alone.change[w], together.change[w], rate);
    if (!(change <= 1e-8))
      return "changes of " + std::string(g[alone.weights[w]].label.view()) + " apart by " + std::to_string(change);
  }
  return {};
}

// A model of layers drawn at random, from blocks and decisions to a training under a plan of random choices.
std::string try_model(long seed, all_ranks& ranks) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  training how;
  how.rate = rate;
  how.epsilon = 1e-3;  // where a gradient is nothing but rounding, steps are so too
  how.micro_batches = 1 + pick(2);
  how.clip = pick(2) == 0 ? 0 : 0.5;
  // On three axes the choices alone take a third of a second to list.
  static const std::vector<int> three{2, 2, 2};
  const std::vector<int>* at = &some_mesh(random);
  while (at->size() == 3) at = &some_mesh(random);
  const std::vector<int>& sizes = pick(100) == 0 ? three : *at;
  graph g = differentiate(refine(random_graph(random, random_sizes::tiny)), how);
  for (value& v : g.values)
    if (v.role == value_role::weight) v.fill = {v.rank() > 1 ? 0 : 1.0, 0.4};
  std::string wrong = shapes(g) + " on mesh " + words(sizes) + "\n";
  backend &on = ranks.on(sizes), &one = ranks.on({1});
  const decision_graph d = decisions(g, parallel_blocks(g), on.mesh(), axis_choice::regathered);
  schedule order;
  order.overlap = pick(2) == 0;
  order.ahead = 1 + pick(3);
  order.early = pick(4) != 0;
  try {
    const plan p = realise("random", g, on.mesh(), d, random_choices(d, random), on.lowered_for(), order);
    for (std::size_t n = 0; n < d.nodes.size(); ++n)
      if (d.nodes[n].choices() > 1)
        wrong +=
            "  " + decision_label(d.nodes[n]) + ": " + d.nodes[n].names[static_cast<std::size_t>(p.choices[n])] + "\n";
    train_options remember;
    remember.keep_changes = true;
    const batch_source data = some_indices(g);
    const program single = small_tests::single(g, sizeof(double));
    const std::string why =
        why_apart(train(one, single, g, data, 2, 5, remember), train(on, p.code, g, data, 2, 5, remember), g);
    return why.empty() ? why : wrong + why;
  } catch (const std::exception& e) {
    return wrong + e.what();
  }
}

}  // namespace

TEST_CASE("operators of random sizes under random splits equal one rank") {
  const std::vector<operator_models::example> all = operator_models::examples();
  all_ranks ranks;
  stopwatch watch("operators under splits");
  for (long seed = first_seed(); watch.done < cases(); ++seed) {
    std::string wrong;
    try {
      watch.done += try_operator(seed, all, ranks, wrong);
    } catch (const std::exception& e) {
      wrong += e.what();
      ++watch.done;
    }
    INFO("bash tests/generated.sh 1 " << seed << " gives it again: " << wrong);
    CHECK(wrong.empty());
  }
}

TEST_CASE("models of random layers under random plans train as one rank does") {
  all_ranks ranks;
  stopwatch watch("models under plans");
  for (long seed = first_seed(); watch.done < (cases() + 9) / 10; ++seed, ++watch.done) {
    std::string wrong;
    try {
      wrong = try_model(seed, ranks);
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    INFO("bash tests/generated.sh 1 " << seed << " gives it again: " << wrong);
    CHECK(wrong.empty());
  }
}

}  // namespace generated_tests
