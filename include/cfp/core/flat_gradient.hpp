// Whether a gradient can be laid into a buffer, in the place of its tensor.
#pragma once

#include <cfp/core/flat_layout.hpp>

namespace cfp::inline v0_1::detail {

// Whether a gradient is held so that the buffer's reduce-scatter completes it: parts of a sum over the buffer's axis,
// otherwise as the tensor it is of.
constexpr sentence gradient_problem(std::string_view buffer, int a, const flat_part& of, const tensor_view& gradient) {
  sentence s;
  const mesh_shape& mesh = *of.mesh;
  if (!alike(gradient.shape, *of.shape) || !(gradient.mesh == mesh)) {
    say(s, buffer, ": the gradient ");
    say_dimensions(s, gradient.shape);
    say(s, " of ", of.name, " ");
    say_dimensions(s, *of.shape);
    say(s, gradient.mesh == mesh ? " has other dimensions" : " is held on another mesh");
    return s;
  }
  if (gradient.element != 0 && gradient.element != of.element) {
    say(s, buffer, ": the gradient of ", of.name, " has elements of ", gradient.element_bytes, " bytes, the buffer of ",
        of.element_bytes, "; cast before");
    return s;
  }
  partition wanted = *of.held;
  if (mesh.size(a) > 1) wanted.partial[a] = {true, reduction::sum};
  if (gradient.held == wanted) return s;
  say(s, buffer, ": the gradient of ", of.name, " is '", describe(gradient.held, of.shape->parts, mesh).view(),
      "', and the buffer takes '", describe(wanted, of.shape->parts, mesh).view(), "'");
  const conversion c = convert(gradient.held, wanted, of.shape->sizes, of.element_bytes, mesh, {true, bytes_of_a_call});
  if (!c.possible) return s;
  const bool complete = gradient.held.on(a).kind != placement::partial;
  if (complete)
    say(s, "; it is complete along '", mesh.axes[a].label.view(), "' already, and the buffer would add it up again");
  if (complete) return s;
  say(s, "; owed before: ");
  say_steps(s, tell_steps(c, gradient.held, *of.shape, of.shape->sizes, mesh, of.element_bytes));
  return s;
}

template <class Layout, class Tensor, class Gradient>
struct gradient_question {
  static constexpr long offset = offset_of(Layout::value, Layout::parts, part_of<Tensor>());
  static constexpr sentence why = [] {
    sentence s;
    if (offset < 0) say(s, Layout::name, ": has no tensor ", Tensor::name, " of this partition");
    else
      s = gradient_problem(Layout::name, Tensor::mesh_type::shape.find(Layout::axis), part_of<Tensor>(),
                           view_as_tensor<Gradient>());
    return s;
  }();
};
template <class Layout, class Tensor, class Gradient>
consteval bool require_gradient() {
  if constexpr (is_refused<Tensor> || is_refused<Gradient>) {
    return true;
  } else {
    using question = gradient_question<Layout, Tensor, Gradient>;
    if constexpr (question::why.empty()) return true;
    else return gradient_is_as_the_buffer_takes_it<said<shorten<question::why.count>(question::why)>>();
  }
}

}  // namespace cfp::detail
