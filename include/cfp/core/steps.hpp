// The way from one partition of a tensor to another, step by step: collectives, and what each device does alone.
//
//   steps<From, To>           the cheapest steps, as a value: what, over which axes, which dimension, shapes, bytes
//   owes<From, To, Step...>   whether these steps lead there; does not compile where they do not, and says what differs
//   complete_t<T>             T with its partial sums completed; steps<T> is the way to it
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/core/error.hpp>
#include <cfp/core/named.hpp>

namespace cfp::inline v0_1 {

/// all_reduce, all_gather, reduce_scatter, all_to_all: collectives. slice, mask, pad: what a device does with what it
/// has.
using step_kind = conversion_step::kind_t;

/// One step, as each device sees it. Sizes are 0 where only run time knows them.
struct tensor_step {
  step_kind kind = conversion_step::slice;
  list<name, max_axes> axes;  ///< devices that differ only along these take part together; in order, major axis first
  long devices = 1;           ///< that take part together
  name dim;                   ///< gathered, scattered into, moved from, sliced or padded; empty for all_reduce and mask
  name to;                    ///< all_to_all: the dimension that is split afterwards
  reduction combine = reduction::sum;
  extents before, after;      ///< elements that a device holds, one size per dimension (per part of a compound one)
  signed char at = 0, to_at = 0;  ///< positions of `dim` and `to` among them
  long whole = 0;             ///< elements that the devices that take part hold between them, each once

  constexpr bool communicates() const { return kind <= conversion_step::all_to_all; }
  /// Sent by each device, in a ring.
  constexpr long bytes(long element_bytes) const {
    return communicates() ? bytes_sent(static_cast<collective_kind>(kind), whole * element_bytes, devices) : 0;
  }
  /// What NCCL's call takes as count: elements reduced (all_reduce), given (all_gather), received (reduce_scatter), for
  /// each of the others (all_to_all).
  constexpr long count() const {
    if (kind == conversion_step::all_reduce) return whole;
    return kind == conversion_step::all_to_all ? whole / (devices * devices) : whole / devices;
  }
  /// Which of the groups that take this step a device is in, and its place there: `color` and `key` of ncclCommSplit.
  /// `mesh` is that of the tensor.
  constexpr int color(const mesh_shape& mesh, int device) const {
    int out = 0;
    for (int a = 0; a < mesh.rank(); ++a)
      if (!axes.contains(mesh.axes[a].label)) out = out * mesh.size(a) + mesh.coordinate(device, a);
    return out;
  }
  constexpr int key(const mesh_shape& mesh, int device) const {
    int out = 0;
    for (const name& label : axes) {
      const int a = mesh.find(label.view());
      out = out * mesh.size(a) + mesh.coordinate(device, a);
    }
    return out;
  }
  /// Of all_gather, reduce_scatter, slice and pad: a piece lies in memory as so many runs of so many elements.
  constexpr long runs() const {
    const extents& piece = kind == conversion_step::all_gather || kind == conversion_step::pad ? before : after;
    long n = 1;
    for (int d = 0; d < at; ++d) n *= piece[d];
    return n;
  }
  constexpr long run() const {
    const bool gathers = kind == conversion_step::all_gather || kind == conversion_step::pad;
    return elements(gathers ? before : after) / runs();
  }
  /// Whether the pieces of the devices lie one behind another in memory (row-major): if not, elements have to be
  /// reordered before or after the call.
  constexpr bool contiguous() const {
    const auto leads = [](const extents& sizes, int end) {
      for (int d = 0; d < end; ++d)
        if (sizes[d] != 1) return false;
      return true;
    };
    if (kind == conversion_step::all_to_all) return leads(before, to_at) && leads(after, at);
    return dim.empty() || leads(before, at);
  }
  friend constexpr bool operator==(const tensor_step&, const tensor_step&) = default;
};

/// Steps in order.
struct step_list {
  list<tensor_step, 12> steps;
  long element_bytes = 4;

  constexpr int size() const { return steps.size(); }
  constexpr const tensor_step& operator[](int i) const { return steps[i]; }
  constexpr const tensor_step* begin() const { return steps.begin(); }
  constexpr const tensor_step* end() const { return steps.end(); }
  /// Nothing is to be done.
  constexpr bool none() const { return steps.empty(); }
  /// Nothing is sent, though something may have to be done.
  constexpr bool local() const {
    for (const tensor_step& s : steps)
      if (s.communicates()) return false;
    return true;
  }
  constexpr int count(step_kind kind) const {
    int n = 0;
    for (const tensor_step& s : steps) n += s.kind == kind;
    return n;
  }
  /// Sent by each device in all steps; 0 where sizes are left to run time.
  constexpr long bytes(long bytes_of_an_element) const {
    long n = 0;
    for (const tensor_step& s : steps) n += s.bytes(bytes_of_an_element);
    return n;
  }
  constexpr long bytes() const { return bytes(element_bytes); }
};

/// Bytes that a network carries in the time a collective takes to start (10 us at 25 GB/s). Where a tensor is small,
/// steps are fewer rather than shorter.
inline constexpr long bytes_of_a_call = 1 << 18;

namespace detail {

constexpr step_list tell_steps(const conversion& c, partition p, const dimensions& d, const extents& sizes,
                               const mesh_shape& mesh, long element_bytes) {
  step_list out;
  out.element_bytes = element_bytes;
  const bool sized = !sizes.contains(0);
  for (const conversion_step& s : c.steps) {
    tensor_step t;
    t.kind = s.kind;
    t.devices = s.devices(mesh);
    t.combine = s.combine;
    const bool of_dim = s.kind != conversion_step::all_reduce && s.kind != conversion_step::mask;
    if (of_dim) t.at = s.dim, t.dim = name(d.parts[s.dim]);
    if (of_dim && (s.kind == conversion_step::all_gather || s.kind == conversion_step::all_to_all)) {
      for (signed char a : p.dims[s.dim])
        if (s.along(a)) t.axes.push(mesh.axes[a].label);
    } else {
      for (int a = 0; a < mesh.rank(); ++a)
        if (s.along(a)) t.axes.push(mesh.axes[a].label);
    }
    if (s.kind == conversion_step::all_to_all) t.to_at = s.to, t.to = name(d.parts[s.to]);
    t.before = local_shape(p, sizes, mesh);
    if (sized) t.whole = elements_before_split(s, p, elements(sizes), mesh);
    p = after(p, s);
    t.after = local_shape(p, sizes, mesh);
    out.steps.push(t);
  }
  return out;
}

constexpr void say_steps(sentence& s, const step_list& steps) {
  for (int i = 0; i < steps.size(); ++i) {
    const tensor_step& t = steps[i];
    say(s, i ? ", then " : "", step_names[t.kind]);
    if (!t.dim.empty()) say(s, t.kind == conversion_step::reduce_scatter ? " into '" : " '", t.dim.view(), "'");
    if (!t.to.empty()) say(s, " to '", t.to.view(), "'");
    say(s, " over ");
    say_names(s, t.axes);
    if (t.whole > 0 && t.communicates()) say(s, " (", t.bytes(steps.element_bytes), " bytes per device)");
  }
  if (steps.none()) say(s, "nothing");
}

struct tensor_view {
  std::string_view name;
  const dimensions& shape;
  const partition& held;
  const mesh_shape& mesh;

  constexpr void say_to(sentence& s) const {
    if (!name.empty()) say(s, name);
    else say_dimensions(s, shape);
  }
};
template <class T>
constexpr tensor_view view_as_tensor() {
  return {name_of<T>(), T::dims_type::value, T::held, T::mesh_type::shape};
}

// Of the same names, but for those that rules lent, and sizes.
constexpr bool alike(const dimensions& a, const dimensions& b) {
  if (a.rank() != b.rank() || !(a.sizes == b.sizes) || !(a.group == b.group)) return false;
  for (int i = 0; i < a.rank(); ++i)
    if (!a.lent[i] && !b.lent[i] && !same(a.parts[i], b.parts[i])) return false;
  return true;
}

struct way_found {
  conversion steps;
  sentence why;  // there is none
};

constexpr way_found find_way(const tensor_view& from, const tensor_view& to, long element_bytes) {
  way_found out;
  const auto subject = [&] {
    from.say_to(out.why);
    say(out.why, ": ");
  };
  if (!alike(from.shape, to.shape) || !(from.mesh == to.mesh)) {
    subject();
    const bool meshes = !(from.mesh == to.mesh);
    say(out.why, "converted to another ", meshes ? "mesh, from (" : "tensor, ");
    if (meshes) say_axes(out.why, from.mesh), say(out.why, ") to ("), say_axes(out.why, to.mesh), say(out.why, ")");
    else say_dimensions(out.why, from.shape), say(out.why, " to "), say_dimensions(out.why, to.shape);
    return out;
  }
  // Where a size is left to run time, any that divides does, as long as bytes outweigh calls.
  extents shape = from.shape.sizes;
  for (long& e : shape)
    if (e == 0) e = 1024 * from.mesh.devices();
  out.steps = convert(from.held, to.held, shape, element_bytes, from.mesh, {true, bytes_of_a_call});
  if (out.steps.possible) return out;
  subject();
  say(out.why, "no steps lead from '", describe(from.held, from.shape.parts, from.mesh).view(), "' to '",
      describe(to.held, to.shape.parts, to.mesh).view(),
      "': nothing makes parts of a maximum or minimum, and no other axis splits what its devices do not divide");
  return out;
}

template <class From, class To>
struct way {
  static constexpr long element_bytes = element_bytes_of<From>();
  static constexpr way_found found = find_way(view_as_tensor<From>(), view_as_tensor<To>(), element_bytes);
  static constexpr bool is = [] {
    if constexpr (found.why.empty()) return true;
    else return partition_can_be_converted<said<shorten<found.why.count>(found.why)>>();
  }();
  static constexpr step_list at(const extents& sizes) {
    return tell_steps(found.steps, From::held, From::dims_type::value, sizes, From::mesh_type::shape, element_bytes);
  }
};

// Steps between two partitions, as a value that knows them.
template <class From, class To>
struct steps_between : step_list {
  constexpr steps_between() : step_list(way<From, To>::at(From::dims_type::value.sizes)) {
    static_assert(way<From, To>::is);
  }
  /// The same steps of a tensor of these sizes, which only run time knows (one per dimension, or part of a compound
  /// one). Throws cfp::error where they do not divide.
  constexpr step_list at(const extents& sizes) const {
    for (const sentence& s : {From::problem(sizes), To::problem(sizes)})
      if (!s.empty()) throw error(s);
    return way<From, To>::at(sizes);
  }
};

// Of a tensor that was refused: anything.
struct refused_step {
  anything kind, axes, devices, dim, to, combine, before, after, at, to_at, whole;
  anything communicates, bytes, count, color, key, runs, run, contiguous;
};
struct refused_steps {
  anything size, none, local, count, bytes, at, element_bytes;
  constexpr refused_step operator[](int) const { return {}; }
  constexpr const refused_step* begin() const { return nullptr; }
  constexpr const refused_step* end() const { return nullptr; }
};
template <class From, class To>
constexpr auto steps_or_refused() {
  if constexpr (is_refused<From> || is_refused<To>) return refused_steps{};
  else return steps_between<From, To>{};
}

template <class T>
struct completed {
  static constexpr text<255> placement = [] {
    partition p = T::held;
    for (partition::debt& d : p.partial) d = {};
    return describe(p, T::dims_type::value.parts, T::mesh_type::shape);
  }();
  using type = typename named_as<
      T, partitioned<typename T::dims_type, typename T::mesh_type, shorten<placement.count>(placement)>>::type;
};
template <is_refused T>
struct completed<T> {
  using type = refused;
};

}  // namespace detail

/// `T` with its partial sums completed.
template <class T>
using complete_t = typename detail::completed<T>::type;

/// The steps that turn one partition of a tensor into another: those that take least by bytes and calls.
template <class From, class To = complete_t<From>>
inline constexpr auto steps = detail::steps_or_refused<From, To>();

namespace detail {

// A step as it is written: all_gather<"width", "model">.
struct written_step {
  step_kind kind;
  std::string_view dim, to;
  list<std::string_view, max_axes> axes;
};

constexpr void say_written(sentence& s, const written_step& w) {
  say(s, step_names[w.kind]);
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
    if (found || s.kind != w.kind || s.dim != dim || s.to != to) return;
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
    const way_found owed = find_way(from, to, element_bytes_of<From>());
    sentence s;
    if (!owed.why.empty()) return owed.why;
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
