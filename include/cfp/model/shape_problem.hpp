// Shapes that do not fit the operator that is given them.
#pragma once

#include <cfp/model/graph.hpp>
#include <cfp/model/source_place.hpp>

namespace cfp::inline v0_1 {

/// Shapes that do not fit; `what` says which, numbers are in `left` and `right`.
struct shape_problem {
  const char* what = nullptr;
  long_name where;
  name factor;
  long left = 0, right = 0;
  sentence said{};  ///< all of it, where it is written already
  source_place at{};
};

/// "h.0.mlp.gelu: wrong number of scalars (1 and 0)".
constexpr sentence words(const shape_problem& e) {
  sentence s;
  if (e.what == nullptr) return s;
  if (!e.said.empty()) return e.said;
  say(s, e.where.view(), ": ", e.what, " (");
  if (!e.factor.empty()) say(s, "'", e.factor.view(), "': ");
  say(s, e.left, " and ", e.right, ")");
  return s;
}

/// The same, behind the place of the call.
constexpr sentence words(const shape_problem& e, const source_place& at) {
  sentence s;
  say_place(s, at);
  say(s, words(e).view());
  return s;
}

/// Most elements of a tensor: their bytes are still numbers.
inline constexpr long most_elements = 1l << 56;

/// What is wrong with the names of a tensor's dimensions, or nothing.
constexpr sentence name_problem(const value& v) {
  sentence why;
  for (int d = 1; d < v.rank() && why.empty(); ++d)
    for (int e = 0; e < d && why.empty(); ++e)
      if (v.dims[d].view() == v.dims[e].view())
        say(why, v.label.view(), ": two dimensions are named '", v.dims[d].view(), "'; call one of them otherwise");
  return why;
}

/// What is wrong with a tensor's sizes, or nothing: "w: dimension 'rows' has size 0, at least 1 is wanted".
constexpr sentence size_problem(const value& v) {
  sentence why;
  long elements = 1;
  for (int d = 0; d < v.rank(); ++d) {
    if (v.shape[d] < 1) {
      say(why, v.label.view(), ": dimension '", v.dims[d].view(), "' has size ", v.shape[d], ", at least 1 is wanted");
      return why;
    }
    if (elements != 0) elements = v.shape[d] > most_elements / elements ? 0 : elements * v.shape[d];
  }
  if (elements != 0) return why;
  say(why, v.label.view(), ": the tensor (");
  for (int d = 0; d < v.rank(); ++d) say(why, d ? " " : "", v.dims[d].view(), "=", v.shape[d]);
  say(why, ") has more elements than memory can hold");
  return why;
}

}  // namespace cfp
