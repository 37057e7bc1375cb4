// A plan as types: what a planner writes into a header, and the compiler derives again. See plan/header.hpp.
#pragma once

#include <cfp/core/planned_operator.hpp>
#include <cfp/core/planned_send.hpp>
#include <cfp/core/planned_step.hpp>

namespace cfp::inline v0_1 {

/// Of what headers of plans say.
inline constexpr int plan_header_version = 1;

/// A weight or an input of a plan: name, dimensions, partition.
struct planned_tensor {
  std::string_view name, dims, placement;
};

namespace detail {

template <class Plan, class Mesh>
inline constexpr sentence other_mesh = [] {
  sentence s;
  say(s, "the plan was made for the mesh (");
  say_axes(s, Plan::mesh::shape);
  say(s, "), not for (");
  say_axes(s, Mesh::shape);
  say(s, ")");
  return s;
}();

template <int Version>
inline constexpr sentence other_version = [] {
  sentence s;
  say(s, "the plan's header is of version ", static_cast<long>(Version), ", this reads ",
      static_cast<long>(plan_header_version));
  return s;
}();

template <class Said, bool Holds = Said::silent>
consteval bool plan_header_is_of_the_version_read() {
#if defined(CFP_SAYS_MESSAGES)
  static_assert(Holds, Said{});
#else
  static_assert(Holds, "a plan's header was written by another version");
#endif
  return true;
}

}  // namespace detail

/// Whether a plan's header is of the version that these headers read: stands at its top.
template <int Version>
inline constexpr bool planned_in_version = [] {
  if constexpr (Version == plan_header_version) return true;
  else
    return detail::plan_header_is_of_the_version_read<
        said<shorten<detail::other_version<Version>.count>(detail::other_version<Version>)>>();
}();

/// Whether a plan was made for this mesh.
template <class Plan, class Mesh>
inline constexpr bool planned_for_mesh = [] {
  if constexpr (Plan::mesh::shape == Mesh::shape) return true;
  else
    return plan_is_made_for_this_mesh<
        said<shorten<detail::other_mesh<Plan, Mesh>.count>(detail::other_mesh<Plan, Mesh>)>>();
}();

}  // namespace cfp
