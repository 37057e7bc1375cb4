// A mesh as people write it, "data=2,model=4", and the axes of a step.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/core/conversion_step.hpp>

#include <limits>
#include <sstream>
#include <string>

namespace cfp::inline v0_1 {

/// Throws bad_input for what is none, or has more devices than `most`.
inline mesh_shape read_mesh(const std::string& text, int most = std::numeric_limits<int>::max()) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ') throw bad_input("a mesh is one line without control characters");
  const auto fail = [&](const std::string& why) { return bad_input("mesh " + text + ": " + why); };
  if (text.ends_with(',')) throw fail("an axis stands behind every comma");
  mesh_shape mesh;
  long devices = 1;  // of four axes they are more than an int holds
  std::stringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) throw fail("write axes as name=size, for example data=2,model=2");
    const std::string label = item.substr(0, equals), size = item.substr(equals + 1);
    if (label.size() > 23) throw fail("an axis name has at most 23 characters");
    for (const char c : label)
      if (!is_name_character(c))
        throw fail("an axis name has letters, digits and _, not '" + std::string(1, c) + "' as '" + label + "' has");
    if (size.empty() || size.find_first_not_of("0123456789") != std::string::npos || size.size() > 3 ||
        std::stoi(size) < 1)
      throw fail("the size of axis '" + label + "' must be a number from 1 to 999, is '" + size + "'");
    if (mesh.find(label) >= 0) throw fail("axis '" + label + "' stands twice");
    if (mesh.rank() == max_axes) throw fail("a mesh has at most 4 axes");
    mesh.axes.push({name(label), std::stoi(size)});
    devices *= std::stoi(size);
  }
  if (mesh.rank() == 0) throw fail("no axis");
  if (devices > most)
    throw fail(std::to_string(devices) + " ranks, at most " + std::to_string(most) +
               (most < std::numeric_limits<int>::max() ? " run as threads" : " can be counted"));
  return mesh;
}

/// "data=2,model=4"
inline std::string to_string(const mesh_shape& mesh) {
  std::string out;
  for (const mesh_axis& a : mesh.axes)
    out.append(out.empty() ? "" : ",").append(a.label.view()).append(1, '=').append(std::to_string(a.size));
  return out;
}

/// The axes a step is along: "data,model".
inline std::string axis_names(const mesh_shape& mesh, const conversion_step& s, const char* between = ",") {
  std::string out;
  for (int a = 0; a < mesh.rank(); ++a)
    if (s.along(a)) out.append(out.empty() ? "" : between).append(mesh.axes[a].label.view());
  return out;
}

}  // namespace cfp
