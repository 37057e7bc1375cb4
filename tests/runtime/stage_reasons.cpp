// Why the stages of a plan are as they are.
#include "found_stages.hpp"

#include <cfp/plan/stages/stage_reasons.hpp>

#include <string>
#include <vector>

namespace stage_reasons_tests {

using namespace found_stages_tests;

TEST_CASE("a stage is explained by what it takes, and by what else each of its decisions could choose") {
  const stages_plan p = found_on({2}, 4);
  const stages_plan::details& of = *p.of;
  const std::vector<stage_reasons> all = reasons(of.g, of.decisions, p.plan, of.on, of.options);
  std::size_t stages = 0;
  for (const stage_reasons& s : all) {
    stages += s.stages.size();
    CHECK(s.takes <= s.may);
    CHECK(s.may <= of.on.pools[0].device.memory);
    REQUIRE(!s.decisions.empty());
    for (const int n : s.stages) {  // as the search had it
      const stages_plan::stage& x = p.stages[static_cast<std::size_t>(n)];
      CHECK(s.ms == Approx(p.plan.micro_batches * (x.forward_ms + x.backward_ms) + x.once_ms));
    }
    for (const stage_reasons::decided& x : s.decisions) {
      CHECK(x.choice == p.plan.choices[x.node]);
      CHECK(x.other.choice != x.choice);
      CHECK(x.other.price > -0.01 * s.ms);
    }
  }
  CHECK(stages == p.stages.size());
  // The plan that takes what is next best takes as much more, or another is still better within it.
  const stage_reasons& first = all.front();
  int possible = 0;
  for (std::size_t k = 0; k < first.decisions.size(); ++k) {
    if (first.decisions[k].other.choice < 0) continue;
    staged_plan changed = p.plan;
    changed.choices[first.decisions[k].node] = first.decisions[k].other.choice;
    std::vector<stage_reasons> then;
    try {
      then = reasons(of.g, of.decisions, changed, of.on, of.options);
    } catch (const bad_input&) {  // others must choose otherwise too
      continue;
    }
    ++possible;
    CHECK(then.front().ms >= first.ms + first.decisions[k].other.price - 1e-6 * first.ms);
  }
  CHECK(possible > 0);
  CHECK(p.explain().find("\nstage 0: ") != std::string::npos);
}

}  // namespace stage_reasons_tests
