// Where the stages of a pipeline may lie: how many places, the mesh inside them, and the pool of each.
#pragma once

#include <cfp/plan/mesh_plans.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/profile/machine/machine_pools.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

struct stage_places {
  int count = 1;
  mesh_shape inside{};
  std::vector<int> pools{};  ///< of each place; none: there is one

  /// "4 places of 2x2, pools 1 0"
  std::string text() const {
    std::string out = std::to_string(count) + " places of " + sizes_text(inside);
    if (!pools.empty()) out += ", pools";
    for (std::size_t p = 0; p < pools.size(); ++p)
      if (p == 0 || pools[p] != pools[p - 1]) out += " " + std::to_string(pools[p]);
    return out;
  }
};

/// The meshes that so many devices of every pool allow; none where a pool is not made of as many.
inline std::vector<mesh_shape> meshes_inside(const machine_pools& all, int devices, int axes) {
  std::vector<mesh_shape> out;
  for (const machine& m : all.pools) {
    const machine inner = innermost(m, devices);
    if (inner.devices() != devices || m.devices() % devices != 0) return {};
    const std::vector<mesh_shape> here = meshes_of(inner, axes);
    if (&m == all.pools.data()) out = here;
    std::erase_if(out, [&](const mesh_shape& x) { return std::find(here.begin(), here.end(), x) == here.end(); });
  }
  return out;
}

/// In which orders pools may lie along the stages, as the pool of each place of so many devices.
inline std::vector<std::vector<int>> orders_of_pools(const machine_pools& all, int devices) {
  if (all.pools.size() == 1) return {{}};
  std::vector<std::vector<int>> out;
  std::vector<int> order(all.pools.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    out.emplace_back();
    for (const int p : order)
      out.back().insert(out.back().end(),
                        static_cast<std::size_t>(all.pools[static_cast<std::size_t>(p)].devices() / devices), p);
  } while (std::next_permutation(order.begin(), order.end()));
  return out;
}

/// All places of so many devices, with meshes of so many axes at most.
inline std::vector<stage_places> places_in(const machine_pools& all, int devices, int axes) {
  std::vector<stage_places> out;
  for (const mesh_shape& inside : meshes_inside(all, devices, axes))
    for (std::vector<int>& pools : orders_of_pools(all, devices))
      out.push_back({all.devices() / devices, inside, std::move(pools)});
  return out;
}

}  // namespace cfp::inline v0_1::detail
