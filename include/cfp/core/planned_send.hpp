// What goes from the ranks of one stage of a pipeline to those of another.
#pragma once

#include <cfp/core/check.hpp>
#include <cfp/core/explain.hpp>
#include <cfp/core/planned_view.hpp>

#include <type_traits>

namespace cfp::inline v0_1 {

namespace detail {

// Why a tensor does not go from one place along the first axis of its mesh to another as it is; empty if it does.
constexpr sentence why_not_crossing(const planned_view& sent, const planned_view& received, int from, int to,
                                    bool same_element) {
  sentence s;
  const mesh_shape& mesh = *sent.mesh;
  const auto places = mesh.rank() > 0 ? static_cast<long>(mesh.axes[0].size) : 0;
  say(s, "tensor ", sent.name, " goes from place ", static_cast<long>(from), " to place ", static_cast<long>(to));
  const int begun = s.count;
  if (mesh.rank() == 0 || mesh.axes[0].label.view() != "stage")
    say(s, ", and the mesh has no axis 'stage' before all others");
  else if (from == to || from < 0 || to < 0 || from >= places || to >= places)
    say(s, ", which must be two of ", places);
  else if (!(sent.name == received.name && *sent.shape == *received.shape && mesh == *received.mesh &&
             *sent.held == *received.held && same_element))
    say(s, "; it is sent as '", describe(*sent.held, sent.shape->parts, mesh).view(), "' and received as ",
        received.name == sent.name ? "" : received.name, received.name == sent.name ? "" : " in ", "'",
        describe(*received.held, received.shape->parts, *received.mesh).view(), "'",
        *sent.held == *received.held && received.name == sent.name ? " of other elements or sizes" : "");
  else if (sent.held->partial[0].owed || sent.held->dim_of(0) >= 0)
    say(s, ", and is not whole for 'stage': '", describe(*sent.held, sent.shape->parts, mesh).view(), "'");
  return s.count == begun ? sentence{} : s;
}

template <class Sent, class Received, int From, int To>
struct crossing_question {
  static constexpr sentence why =
      why_not_crossing(planned_view_of<Sent>(), planned_view_of<Received>(), From, To,
                       std::is_same_v<typename Sent::element_type, typename Received::element_type>);
};

template <class Question>
consteval bool require_crossing() {
  if constexpr (!Question::why.empty())
    return planned_crossing_is_received_as_it_is_sent<said<shorten<Question::why.count>(Question::why)>>();
  return true;
}

}  // namespace detail

/// A tensor goes from the ranks of a place along the stages to those of another, as it is.
template <class Sent, class Received, int From, int To>
struct planned_send {
  using question = detail::crossing_question<Sent, Received, From, To>;
  static_assert(detail::require_crossing<question>());
  /// That a rank sends.
  static constexpr long bytes =
      elements(local_shape(Sent::type::held, Sent::type::dims_type::value.sizes, Sent::type::mesh_type::shape)) *
      Sent::element_bytes;
};

/// All of a micro-batch, and of what a step does once.
template <class... Crossing>
struct planned_sends {
  static constexpr int count = sizeof...(Crossing);
  static constexpr long bytes =
      (0L + ... + Crossing::bytes);  ///< from each rank to one of another place, of all places
};

}  // namespace cfp
