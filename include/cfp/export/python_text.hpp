// Pieces of Python: numbers, shapes, and partitions as JAX has them.
#pragma once

#include <cfp/core/partition.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

/// "None, ('data', 'model')": the dimensions of a partition spec; parts of sums it cannot say.
inline std::string jax_spec(const partition& held, const mesh_shape& mesh) {
  std::string out;
  for (int d = 0; d < held.rank(); ++d) {
    std::string axes;
    for (const signed char a : held.dims[d])
      axes.append(axes.empty() ? "\"" : "\", \"").append(mesh.axes[a].label.view());
    if (!axes.empty()) axes += '"';
    const bool several = held.dims[d].size() > 1;
    out.append(d > 0 ? ", " : "").append(axes.empty() ? "None" : several ? "(" + axes + ")" : axes);
  }
  return out;
}

inline std::string python_number(double x) {
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char out[32];
  std::snprintf(out, sizeof out, "%.17g", x);
  double shorter = 0;
  for (int digits = 1; digits < 17; ++digits) {
    char few[32];
    std::snprintf(few, sizeof few, "%.*g", digits, x);
    if (std::sscanf(few, "%lf", &shorter) == 1 && !(shorter < x) && !(shorter > x)) return few;
  }
  return out;
}

inline std::string python_shape(const std::vector<long>& shape) {
  std::string out;
  for (const long n : shape) out.append(out.empty() ? "" : ", ").append(std::to_string(n));
  return "(" + out + (shape.size() == 1 ? ",)" : ")");
}

inline std::string python_text(const std::string& text) { return "\"" + text + "\""; }

}  // namespace cfp::detail
