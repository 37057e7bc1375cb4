// Whether the steps that a program takes lead from one partition of a tensor to another: owes<From, To, Step...>. Does
// not compile where they do not, and says what differs.
#pragma once

#include <cfp/core/steps.hpp>

namespace cfp::inline v0_1 {

namespace detail {

// A step as it is written: all_gather<"width", "model">.
struct written_step {
  step_kind kind;
  std::string_view dim, to;
  list<std::string_view, max_axes> axes;
  reduction combine = reduction::sum;
};

constexpr void say_written(sentence& s, const written_step& w) {
  say(s, step_names[w.kind], by(w.kind, w.combine));
  if (!w.dim.empty()) say(s, " '", w.dim, "'");
  if (!w.to.empty()) say(s, " to '", w.to, "'");
  say(s, " over ");
  say_names(s, w.axes);
}

// Takes a written step; false where it cannot follow this partition.
constexpr bool take(const written_step& w, partition& p, const dimensions& d, const mesh_shape& mesh) {
  unsigned axes = 0;
  bool alone = !w.axes.empty();  // along axes of one device, where nothing happens
  for (std::string_view label : w.axes) {
    const int a = mesh.find(label);
    if (a < 0 || (axes >> a & 1) != 0) return false;
    alone = alone && mesh.size(a) == 1;
    if (mesh.size(a) > 1) axes |= 1U << a;
  }
  const int dim = w.dim.empty() ? 0 : d.find(w.dim), to = w.to.empty() ? 0 : d.find(w.to);
  if (dim < 0 || to < 0) return false;
  if (axes == 0) return alone;
  bool found = false;
  const auto follow = [&](const partition& from, const conversion_step& s, unsigned along) {
    const bool other_sum = s.kind == conversion_step::all_reduce || s.kind == conversion_step::reduce_scatter;
    if (found || s.kind != w.kind || s.dim != dim || s.to != to || (other_sum && s.combine != w.combine)) return;
    for (int a = 0; a < mesh.rank(); ++a)
      if (s.along(a) != ((along >> a & 1) != 0)) return;
    p = after(from, s);
    found = divides(p, d.sizes, mesh);
  };
  const partition from = p;
  each_step(from, mesh, [&](const conversion_step& s) { follow(from, s, axes); });
  each_wide_step(from, mesh, [&](const conversion_step& s) { follow(from, s, axes); });
  if (found || w.axes.size() == 1 || w.kind < conversion_step::slice) return found;
  for (std::string_view label : w.axes) {  // what devices do alone they do along one axis after the other
    const partition here = p;
    if (mesh.size(mesh.find(label)) == 1) continue;
    found = false;
    each_step(here, mesh, [&](const conversion_step& s) { follow(here, s, 1U << mesh.find(label)); });
    if (!found) return false;
  }
  return true;
}

template <class From, class To, class... Step>
struct owing {
  static constexpr sentence why = [] {
    const tensor_view from = view_as_tensor<From>(), to = view_as_tensor<To>();
    sentence s = other_tensor(from, to);
    if (!s.empty()) return s;
    partition p = from.held, here = p;
    int taken = 0;
    bool follows = true;
    written_step last{};
    [[maybe_unused]] const auto next = [&](const written_step& w) {
      if (!follows) return;
      last = w;
      here = p;
      follows = take(w, p, from.shape, from.mesh);
      taken += follows;
    };
    (next(Step::value), ...);
    if (follows && p == to.held) return s;
    const auto stands = [&](const partition& held) {
      say(s, "'", describe(held, from.shape.parts, from.mesh).view(), "'");
    };
    from.say_to(s);
    say(s, ": from ");
    stands(from.held);
    say(s, " to ");
    stands(to.held);
    if (!follows) {
      say(s, ", step ", static_cast<long>(taken + 1), ", ");
      say_written(s, last);
      say(s, ", cannot follow: the tensor is then ");
      stands(here);
      if (const sharding_problem w = size_problem(from.shape, p, from.mesh, from.shape.sizes); w)
        say(s, ", and ", words(w, from.shape, p, from.mesh).view());
    } else {
      say(s, ", the steps as written make ");
      stands(p);
    }
    const way_found owed = find_way(from, to, element_bytes_of<From>());
    if (!owed.why.empty()) return s;
    say(s, "; owed: ");
    say_steps(s, tell_steps(owed.steps, from.held, from.shape, from.shape.sizes, from.mesh, element_bytes_of<From>()));
    return s;
  }();
};

template <class From, class To, class... Step>
consteval bool require_owed() {
  if constexpr (is_refused<From> || is_refused<To>) {
    return true;
  } else {
    using question = owing<From, To, Step...>;
    if constexpr (question::why.empty()) return true;
    else return steps_lead_from_one_partition_to_the_other<said<shorten<question::why.count>(question::why)>>();
  }
}

}  // namespace detail

/// Steps to write in `owes`, with their dimension and the axes along which devices take part together.
template <lit... Axis>
struct all_reduce {
  static constexpr detail::written_step value{conversion_step::all_reduce, {}, {}, {{Axis.view()...}, sizeof...(Axis)}};
};
template <lit... Axis>
struct all_reduce_max {
  static constexpr detail::written_step value{
      conversion_step::all_reduce, {}, {}, {{Axis.view()...}, sizeof...(Axis)}, reduction::max};
};
template <lit... Axis>
struct all_reduce_min {
  static constexpr detail::written_step value{
      conversion_step::all_reduce, {}, {}, {{Axis.view()...}, sizeof...(Axis)}, reduction::min};
};
template <lit Dim, lit... Axis>
struct all_gather {
  static constexpr detail::written_step value{
      conversion_step::all_gather, Dim.view(), {}, {{Axis.view()...}, sizeof...(Axis)}};
};
template <lit Dim, lit... Axis>
struct reduce_scatter {
  static constexpr detail::written_step value{
      conversion_step::reduce_scatter, Dim.view(), {}, {{Axis.view()...}, sizeof...(Axis)}};
};
template <lit From, lit To, lit... Axis>
struct all_to_all {
  static constexpr detail::written_step value{
      conversion_step::all_to_all, From.view(), To.view(), {{Axis.view()...}, sizeof...(Axis)}};
};
/// Each device takes its piece of what all of them have.
template <lit Dim, lit... Axis>
struct slice {
  static constexpr detail::written_step value{
      conversion_step::slice, Dim.view(), {}, {{Axis.view()...}, sizeof...(Axis)}};
};
/// The first device along the axis keeps what all of them have, the others take zeros: parts of a sum.
template <lit... Axis>
struct mask {
  static constexpr detail::written_step value{conversion_step::mask, {}, {}, {{Axis.view()...}, sizeof...(Axis)}};
};
/// Each device takes zeros around its piece: parts of a sum.
template <lit Dim, lit... Axis>
struct pad {
  static constexpr detail::written_step value{
      conversion_step::pad, Dim.view(), {}, {{Axis.view()...}, sizeof...(Axis)}};
};

/// Whether these steps, in order, turn one partition of a tensor into the other. Does not compile where they do not.
template <class From, class To, class... Step>
inline constexpr bool owes = detail::require_owed<From, To, Step...>();

}  // namespace cfp
