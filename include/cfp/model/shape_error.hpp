// Shapes that do not fit the operator that is given them.
#pragma once

#include <cfp/model/graph.hpp>

namespace cfp::inline v0_1 {

/// Shapes that do not fit; `what` says which, numbers are in `left` and `right`.
struct shape_error {
  const char* what = nullptr;
  long_name where;
  name factor;
  long left = 0, right = 0;
  sentence said{};  ///< all of it, where it is written already
};

/// "h.0.mlp.gelu: wrong number of scalars (1 and 0)".
constexpr sentence words(const shape_error& e) {
  sentence s;
  if (e.what == nullptr) return s;
  if (!e.said.empty()) return e.said;
  say(s, e.where.view(), ": ", e.what, " (");
  if (!e.factor.empty()) say(s, "'", e.factor.view(), "': ");
  say(s, e.left, " and ", e.right, ")");
  return s;
}

}  // namespace cfp
