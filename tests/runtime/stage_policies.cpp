// The searches of other systems on the same tables: each finds the optimum of its own formula, and none a faster plan
// than ours.
#include "../catch.hpp"
#include "../from_environment.hpp"
#include "random_chain.hpp"

#include <cfp/solve/other/alpa_stages.hpp>
#include <cfp/solve/other/fastest_options.hpp>

namespace stage_policies_tests {

using namespace cfp;
using chains::infinity;
using chains::least_of_all;
using chains::random_chain;

namespace {

constexpr staged_schedule both[] = {staged_schedule::gpipe, staged_schedule::one_forward_one_backward};

std::uint32_t seeds(long all, long some, long few) { return static_cast<std::uint32_t>(how_many(all, some, few)); }

int devices_of(const stage_solution& s) {
  int all = 0;
  for (const stage_option& o : s.option) all += o.devices;
  return all;
}

}  // namespace

TEST_CASE("Alpa's stages on submeshes have the least of its formula over cuts and submeshes") {
  int feasible = 0, several = 0;
  for (std::uint32_t seed = 0; seed < seeds(2000, 300, 60); ++seed) {
    random_chain c(seed, 4);
    const node_cluster on{1 + c.below(3), 1 << c.below(3)};
    if (on.devices() > 6) continue;
    const stage_range any{1, std::min(c.p.layers, on.devices()), on.devices()};
    for (const staged_schedule kind : both) {
      const double best =
          least_of_all(c.p, kind, any, [&](const std::vector<int>& ends, const std::vector<stage_option>& chosen) {
            for (const stage_option& o : chosen)
              if (!on.is_submesh(o.devices)) return infinity;
            return alpa_time(c.p, ends, chosen);
          });
      const stage_solution s = alpa_stages(c.p, kind, on);
      CAPTURE(seed, on.nodes, on.per_node);
      REQUIRE(s.feasible() == (best < infinity));
      if (!s.feasible()) continue;
      ++feasible;
      several += s.ends.size() > 1 && devices_of(s) > static_cast<int>(s.ends.size());
      REQUIRE(alpa_time(c.p, s.ends, s.option) == Approx(best).margin(1e-9));
      REQUIRE(devices_of(s) == on.devices());
      for (const stage_option& o : s.option) REQUIRE(on.is_submesh(o.devices));
    }
  }
  CHECK(feasible > 60);
  CHECK(several > 10);
}

TEST_CASE("submeshes are 1, 2, 4, ... devices of a node, or whole nodes") {
  std::vector<int> found;
  const node_cluster on{3, 8};
  for (int d = 0; d <= 32; ++d)
    if (on.is_submesh(d)) found.push_back(d);
  CHECK(found == std::vector<int>{1, 2, 4, 8, 16, 24});
}

}  // namespace stage_policies_tests
