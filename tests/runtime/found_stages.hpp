// A small model planned in stages on a machine that is described.
#pragma once

#include "../catch.hpp"
#include "small.hpp"

#include <cfp/profile/machine/machine.hpp>
#include <cfp/session/plan_in_stages.hpp>

#include <optional>
#include <vector>

namespace found_stages_tests {

using namespace cfp;
using namespace small_tests;

inline graph model_of(long rows) {
  families::transformer c = tiny_config();
  c.layers = 4, c.batch = rows, c.sequence = 64;
  return families::decoder(c);
}

inline machine some_machine() {
  machine m = plain_machine(mesh_of({4}), 1e9, 1e9, 1e-7, {{1e-6, 2e8}});
  m.device.memory = 1l << 40;
  return m;
}

inline stages_plan found_on(const std::vector<int>& places, int micro_batches) {
  machine_plan_options o;
  o.type = number::float32;
  o.unfused = true;
  o.micro_batches = micro_batches;
  const std::optional<stages_plan> out = plan_in_stages(model_of, 16, some_machine(), o, places);
  REQUIRE(out);
  return *out;
}

}  // namespace found_stages_tests
