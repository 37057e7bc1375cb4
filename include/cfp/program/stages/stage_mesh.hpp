// The mesh of a pipeline: stages along its first axis, which no tensor is split over, and the mesh of a stage inside.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/core/propagate.hpp>
#include <cfp/model/sharding.hpp>

#include <string>

namespace cfp::inline v0_1 {

/// Throws bad_input where a stage has as many axes as a mesh may have, one of no device, or one of stages.
constexpr mesh_shape with_stages(const mesh_shape& of_stage, int stages) {
  for (const mesh_axis& a : of_stage.axes)
    if (a.size < 1 || a.label.view() == "stage")
      throw bad_input("axis '" + std::string(a.label.view()) + "' of the mesh inside a stage " +
                      (a.size < 1 ? "has no device" : "is called as that of the stages is: give it another name"));
  if (of_stage.rank() == max_axes) throw bad_input("the mesh of a stage has at most 3 axes: the stages are one more");
  mesh_shape out;
  out.axes.push({name("stage"), stages});
  for (const mesh_axis& a : of_stage.axes) out.axes.push(a);
  return out;
}

/// Whether a mesh has the axis of stages, its first. Throws bad_input where that stands behind others, or for 1 place.
constexpr bool has_stages(const mesh_shape& mesh) {
  for (int a = 1; a < mesh.rank(); ++a)
    if (mesh.axes[a].label.view() == "stage")
      throw bad_input("axis 'stage' of a mesh is of a pipeline's stages, and stands before all others");
  const bool has = mesh.rank() > 0 && mesh.axes[0].label.view() == "stage";
  if (has && mesh.size(0) < 2) throw bad_input("axis 'stage' of a mesh is 1: a pipeline has 2 places or more");
  return has;
}
/// The mesh inside the stages; of one device where there is no other axis.
constexpr mesh_shape without_stages(const mesh_shape& mesh) {
  mesh_shape out;
  for (int a = 1; a < mesh.rank(); ++a) out.axes.push(mesh.axes[a]);
  if (mesh.rank() == 1) out.axes.push({name("x"), 1});
  return out;
}

/// What is said of a stage's mesh, of the whole one.
constexpr partition with_stages(const partition& of_stage) {
  partition out;
  for (const auto& dim : of_stage.dims) {
    out.dims.push({});
    for (const signed char a : dim) out.dims[out.dims.size() - 1].push(static_cast<signed char>(a + 1));
  }
  for (int a = 0; a + 1 < max_axes; ++a) out.partial[a + 1] = of_stage.partial[a];
  return out;
}
constexpr assignment with_stages(assignment of_stage) {
  for (int a = max_axes - 1; a > 0; --a) of_stage.factor[a] = of_stage.factor[a - 1];
  of_stage.factor[0] = assignment::none;
  return of_stage;
}
constexpr sharding with_stages(const sharding& of_stage) {
  sharding out;
  for (const assignment& a : of_stage.assigned) out.assigned.push_back(with_stages(a));
  for (const auto& some : of_stage.materialised) {
    out.materialised.emplace_back();
    for (const partition& p : some) out.materialised.back().push(with_stages(p));
  }
  return out;
}

}  // namespace cfp
