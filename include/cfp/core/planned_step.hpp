// A step of a plan from one partition of a tensor to another, and what all such steps send.
#pragma once

#include <cfp/core/check.hpp>
#include <cfp/core/convert.hpp>
#include <cfp/core/explain.hpp>
#include <cfp/core/planned_view.hpp>

namespace cfp::inline v0_1 {

namespace detail {

struct step_answer {
  bool found = false;
  collective_count sent;
  sentence why;
};

using axis_labels = list<name, max_axes>;

// Whether a step is along these axes, and no other.
constexpr bool is_along(const conversion_step& s, const axis_labels& axes, const mesh_shape& mesh) {
  for (int a = 0; a < mesh.rank(); ++a)
    if (s.along(a) != axes.contains(mesh.axes[a].label)) return false;
  return true;
}

// The step of this name along these axes that leads from one partition to the other.
constexpr step_answer find_step(const planned_view& from, const planned_view& to, std::string_view step,
                                const axis_labels& axes, const mesh_shape& mesh, long element_bytes) {
  step_answer out;
  const auto look_at = [&](const conversion_step& s) {
    if (out.found || step_names[s.kind] != step || !is_along(s, axes, mesh) || !(after(*from.held, s) == *to.held))
      return;
    out.found = true;
    if (!s.communicates()) return;
    const auto k = static_cast<std::size_t>(s.collective());
    out.sent.calls[k] = 1;
    out.sent.bytes[k] = bytes_sent(s, *from.held, elements(from.shape->sizes) * element_bytes, mesh);
  };
  if (from.name == to.name && *from.shape == *to.shape && *from.mesh == *to.mesh) {
    each_step(*from.held, mesh, look_at);
    if (axes.size() > 1) each_wide_step(*from.held, mesh, look_at);
  }
  if (!out.found)
    say(out.why, step, " over "), say_names(out.why, axes),
        say(out.why, ": tensor ", from.name, " is planned as '", describe(*from.held, from.shape->parts, mesh).view(),
            "' before and ", to.name == from.name ? "" : to.name, to.name == from.name ? "" : " as ", "'",
            describe(*to.held, to.shape->parts, mesh).view(), "' after, which it does not make");
  return out;
}

// A rank's border of a tensor that is scanned along a dimension which an axis alone splits.
constexpr step_answer find_handing(const planned_view& x, std::string_view dim, std::string_view axis,
                                   std::string_view how, long element_bytes) {
  step_answer out;
  for (const collective_kind kind : {collective_kind::shift, collective_kind::all_scan})
    for (int d = 0; d < x.held->rank(); ++d) {
      const auto& split_by = x.held->dims[d];
      if (collective_names[static_cast<std::size_t>(kind)] != how || x.shape->parts[d] != dim || split_by.size() != 1 ||
          x.mesh->axes[split_by[0]].label.view() != axis)
        continue;
      const auto local = local_shape(*x.held, x.shape->sizes, *x.mesh);
      out.found = true;
      out.sent.calls[static_cast<std::size_t>(kind)] = 1;
      out.sent.bytes[static_cast<std::size_t>(kind)] = elements(local) / local[d] * element_bytes;
    }
  if (!out.found)
    say(out.why, how, " of '", dim, "' over '", axis, "': tensor ", x.name, " is planned as '",
        describe(*x.held, x.shape->parts, *x.mesh).view(), "', which does not split it so");
  return out;
}

template <class X, lit Dim, lit Axis, lit How>
struct handing_on {
  static constexpr step_answer answer =
      find_handing(planned_view_of<X>(), Dim.view(), Axis.view(), How.view(), X::element_bytes);
};

template <class From, class To, lit Step, lit... Axis>
struct resharding {
  static constexpr axis_labels axes = [] {
    axis_labels all;
    (all.push(name(Axis.view())), ...);
    return all;
  }();
  static constexpr step_answer answer = find_step(planned_view_of<From>(), planned_view_of<To>(), Step.view(), axes,
                                                  From::type::mesh_type::shape, From::element_bytes);
};

template <class Question>
consteval bool require_step() {
  if constexpr (!Question::answer.found)
    return planned_step_leads_from_one_partition_to_the_other<
        said<shorten<Question::answer.why.count>(Question::answer.why)>>();
  return true;
}

}  // namespace detail

/// A tensor changes its partition by one step along an axis: a collective, or slice, mask, pad, which send nothing; a
/// collective also along several at once.
template <class From, class To, lit Step, lit... Axis>
  requires(sizeof...(Axis) >= 1 && sizeof...(Axis) <= max_axes)
struct reshard {
  using question = detail::resharding<From, To, Step, Axis...>;
  static_assert(detail::require_step<question>());
  static constexpr collective_count sent = question::answer.sent;
};

/// A scan of a tensor goes on from rank to rank along the axis that splits the dimension it scans: "shift", "all_scan".
template <class X, lit Dim, lit Axis, lit How>
struct hands_on {
  using question = detail::handing_on<X, Dim, Axis, How>;
  static_assert(detail::require_step<question>());
  static constexpr collective_count sent = question::answer.sent;
};

/// A list of them, and all their collectives.
template <class... Reshard>
struct reshards {
  static constexpr collective_count sent = [] {
    collective_count n;
    ((n += Reshard::sent), ...);
    return n;
  }();
};

namespace detail {

template <class Reshards, collective_count Planned>
struct sent_question {
  static constexpr sentence why = [] {
    sentence s;
    for (std::size_t k = 0; k < collective_names.size(); ++k)
      if (Reshards::sent.calls[k] != Planned.calls[k] || Reshards::sent.bytes[k] != Planned.bytes[k])
        say(s, s.empty() ? "" : "; ", collective_names[k], ": planned ", Planned.calls[k], " of ", Planned.bytes[k],
            " bytes, the partitions as written make ", Reshards::sent.calls[k], " of ", Reshards::sent.bytes[k]);
    return s;
  }();
};

template <class Reshards, collective_count Planned>
consteval bool require_sent() {
  if constexpr (!(Reshards::sent == Planned)) {
    using question = sent_question<Reshards, Planned>;
    return communication_is_as_planned<said<shorten<question::why.count>(question::why)>>();
  }
  return true;
}

}  // namespace detail

/// Whether these reshardings send what the plan says.
template <class Reshards, collective_count Planned>
inline constexpr bool sent_as_planned = detail::require_sent<Reshards, Planned>();

}  // namespace cfp
