// A mesh: the devices, arranged along named axes. Rank = row-major position, the last axis varies fastest.
#pragma once

#include <cfp/core/list.hpp>
#include <cfp/core/text.hpp>

namespace cfp::inline v0_1 {

inline constexpr int max_axes = 4;

struct mesh_axis {
  name label;
  int size = 1;
  friend constexpr bool operator==(const mesh_axis&, const mesh_axis&) = default;
};

struct mesh_shape {
  list<mesh_axis, max_axes> axes;

  constexpr int rank() const { return axes.size(); }
  constexpr int size(int axis) const { return axes[axis].size; }
  constexpr int devices() const {
    int n = 1;
    for (const mesh_axis& a : axes) n *= a.size;
    return n;
  }
  /// Position of the named axis, or -1.
  constexpr int find(std::string_view label) const {
    for (int i = 0; i < axes.size(); ++i)
      if (axes[i].label == label) return i;
    return -1;
  }
  /// Coordinate of a rank along an axis.
  constexpr int coordinate(int device, int axis) const {
    for (int i = axes.size() - 1; i > axis; --i) device /= axes[i].size;
    return device % axes[axis].size;
  }
  friend constexpr bool operator==(const mesh_shape&, const mesh_shape&) = default;
};

/// A mesh as a type: `mesh<axis<"data", 2>, axis<"model", 4>>`.
template <lit Name, int Size>
struct axis {
  static_assert(Size >= 1, "a mesh axis has at least one device");
  static_assert(is_name(Name.view()) && Name.size() <= name::capacity,
                "the name of a mesh axis is 1 to 23 letters, digits and '_'");
  static constexpr mesh_axis value{name(Name.view()), Size};
};

template <class... Axis>
struct mesh {
  static_assert(sizeof...(Axis) <= max_axes, "a mesh has at most 4 axes");
  static constexpr mesh_shape shape = [] {
    mesh_shape m;
    (m.axes.push(Axis::value), ...);
    return m;
  }();
  static_assert(
      [] {
        for (int a = 0; a < shape.rank(); ++a)
          if (shape.find(shape.axes[a].label) != a) return false;
        return true;
      }(),
      "two axes of a mesh have the same name");
};

}  // namespace cfp
