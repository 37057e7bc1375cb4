// Which mesh: all ways to arrange the devices of a machine along one or two axes.
#pragma once

#include <cfp/plan/machine_search.hpp>

namespace cfp::inline v0_1 {

/// The meshes a machine allows: its devices along one axis, and along two in every way. The last axis lies innermost, so that the order
/// of sizes says which axis is on which level. Sizes that straddle a level are left out.
inline std::vector<mesh_shape> meshes_of(const machine& m) {
  std::vector<mesh_shape> out;
  const auto offer = [&](std::initializer_list<int> sizes) {
    static constexpr const char* labels[] = {"x", "y", "z"};
    mesh_shape mesh;
    for (const int n : sizes) mesh.axes.push({cfp::name(labels[mesh.rank()]), n});
    try {
      for (int a = 0; a < mesh.rank(); ++a) group_of(m, mesh, a);
      out.push_back(mesh);
    } catch (const std::invalid_argument&) {
    }
  };
  const int n = m.devices();
  offer({n});
  for (int first = 2; first * 2 <= n; ++first)
    if (n % first == 0) offer({first, n / first});
  return out;
}

}  // namespace cfp
