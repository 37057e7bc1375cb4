// Several tensors one behind another in one buffer, padded so that it splits evenly over a mesh axis: what ZeRO's
// optimizers keep. Each device lays its shards of the tensors out flat; every device along the axis then owns one
// share.
#pragma once

#include <cfp/core/steps.hpp>

namespace cfp::inline v0_1 {

namespace detail {

// One line of a buffer: a tensor as it is held.
struct flat_part {
  std::string_view name;
  const dimensions* shape = nullptr;
  const partition* held = nullptr;
  const mesh_shape* mesh = nullptr;
  long element_bytes = 4;
  unsigned long element = 0;  // which type
};

template <int Count>
struct flat_layout {
  long elements = 0, padded = 0, share = 0;
  list<long, Count> offsets;
  sentence why;  // it cannot be
};

template <int Count>
constexpr flat_layout<Count> lay_out(std::string_view buffer, std::string_view axis,
                                     const list<flat_part, Count>& parts, long multiple) {
  flat_layout<Count> out;
  const flat_part& first = parts[0];
  const mesh_shape& mesh = *first.mesh;
  const int a = mesh.find(axis);
  const auto fail = [&](const flat_part& p, const auto&... words) {
    if (out.why.empty()) say(out.why, buffer, ": ", p.name, words...);
  };
  if (a < 0) say(out.why, buffer, ": the mesh has no axis '", axis, "' to share it over");
  for (int i = 0; i < parts.size() && out.why.empty(); ++i) {
    const flat_part& p = parts[i];
    if (!(*p.mesh == mesh)) fail(p, " is held on another mesh than ", first.name);
    else if (!p.shape->known()) fail(p, " has a size that only run time knows");
    else if (p.element != first.element && p.element_bytes == first.element_bytes)
      fail(p, " has elements of another type than ", first.name);
    else if (p.element_bytes != first.element_bytes)
      fail(p, " has elements of ", p.element_bytes, " bytes, ", first.name, " of ", first.element_bytes);
    else if (p.held->on(a).kind != placement::replicate)
      fail(p, " is '", describe(*p.held, p.shape->parts, mesh).view(), "': what is shared over '", axis,
           "' must be whole along it before");
    else if (p.held->is_partial())
      fail(p, " holds parts of a sum: '", describe(*p.held, p.shape->parts, mesh).view(), "'");
    for (int j = 0; j < i; ++j)
      if (same(parts[j].name, p.name)) fail(p, " stands twice");
    if (!out.why.empty()) break;
    out.offsets.push(out.elements);
    out.elements += elements(local_shape(*p.held, p.shape->sizes, mesh));
  }
  if (!out.why.empty()) return out;
  const long unit = mesh.size(a) * multiple;
  out.padded = (out.elements + unit - 1) / unit * unit;
  out.share = out.padded / mesh.size(a);
  return out;
}

template <int Count>
constexpr long offset_of(const flat_layout<Count>& layout, const list<flat_part, Count>& parts,
                         const flat_part& wanted) {
  for (int i = 0; i < layout.offsets.size(); ++i)
    if (same(parts[i].name, wanted.name) && *parts[i].held == *wanted.held &&
        parts[i].shape->sizes == wanted.shape->sizes)
      return layout.offsets[i];
  return -1;
}

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

template <class Held>
constexpr flat_part part_of() {
  return {Held::name, &Held::dims_type::value, &Held::held, &Held::mesh_type::shape, Held::element_bytes,
          element_of_named<Held>()};
}

template <class First, class...>
struct first_of {
  using mesh_type = typename First::mesh_type;
  using element_type = typename First::element_type;
};

template <lit Name, lit Axis, long Multiple, class... Held>
struct laid_out {
  using first = first_of<Held...>;
  template <class F>
  static constexpr void each(F& f) { (f.template operator()<Held>(), ...); }
  static constexpr std::string_view name = Name.view(), axis = Axis.view();
  static constexpr list<flat_part, sizeof...(Held)> parts = [] {
    list<flat_part, sizeof...(Held)> out;
    (out.push(part_of<Held>()), ...);
    return out;
  }();
  static constexpr auto value = lay_out(name, axis, parts, Multiple);
};

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

template <class Layout>
struct flat_tensors : Layout::first {
  static constexpr long elements = Layout::value.elements;  ///< of all tensors, as one device holds them
  static constexpr long padded = Layout::value.padded;      ///< with what is added at the end
  static constexpr long owned = Layout::value.share;        ///< by one device along the axis

  /// Calls `f.template operator()<Tensor>()` for every tensor, in order.
  template <class F>
  static constexpr void each(F&& f) { Layout::each(f); }

  /// Where a tensor begins; -1 where it is not in the buffer.
  template <class Tensor>
  static constexpr long offset = offset_of(Layout::value, Layout::parts, part_of<Tensor>());

  /// Whether a gradient can be laid in the tensor's place: of the same dimensions and splits, parts of a sum over the
  /// axis and over nothing else. Does not compile where it cannot, and says what is owed before.
  template <class Tensor, class Gradient>
  static constexpr bool takes = require_gradient<Layout, Tensor, Gradient>();
};

// Of tensors that do not fit, or were refused.
struct refused_flat : refused {
  static constexpr anything elements{}, padded{}, owned{};
  template <class F>
  static constexpr void each(F&&) {}
  template <class>
  static constexpr anything offset{};
  template <class, class>
  static constexpr bool takes = true;
};

template <class Layout>
consteval bool require_buffer() {
  if constexpr (Layout::value.why.empty()) return true;
  else return tensors_fit_one_buffer<said<shorten<Layout::value.why.count>(Layout::value.why)>>();
}

template <class Layout>
struct buffer_said {
  static_assert(require_buffer<Layout>());
};

// Specialized by types alone: nvcc matches no specialization that has a text.
template <bool Refused, class Layout>
struct flat : buffer_said<Layout> {
  using type = std::conditional_t<Layout::value.why.empty(), flat_tensors<Layout>, refused_flat>;
};
template <class Layout>
struct flat<true, Layout> {
  using type = refused_flat;
};

// A buffer as a tensor of two dimensions: the devices that differ along other axes, which have buffers of their own,
// and the elements of one buffer.
template <class Buffer>
struct flat_tensor {
  using mesh_type = typename Buffer::mesh_type;
  static constexpr int axis = mesh_type::shape.find(Buffer::axis.view());
  static constexpr text<47> dim(std::string_view label, long size) {
    text<47> out;
    say(out, label, "=", size);
    return out;
  }
  static constexpr text<47> others = dim("others", mesh_type::shape.devices() / mesh_type::shape.size(axis)),
                            flat = dim("flat", Buffer::padded);
  using dims_type = dims<shorten<others.count>(others), shorten<flat.count>(flat)>;

  static constexpr text<199> placement(bool parts, bool shared) {
    const mesh_shape& mesh = mesh_type::shape;
    partition p = partition::replicated(2);
    for (int a = 0; a < mesh.rank(); ++a)
      if (a != axis && mesh.size(a) > 1) p.split(0, a);
    if (parts && mesh_type::shape.size(axis) > 1) p.partial[axis] = {true, reduction::sum};
    if (shared && mesh_type::shape.size(axis) > 1) p.split(1, axis);
    return describe<199>(p, dims_type::value.parts, mesh);
  }
  template <bool Parts, bool Shared>
  struct held {
    static constexpr text<199> placed = placement(Parts, Shared);
    using type = held_as<Buffer::text, partitioned<dims_type, mesh_type, shorten<placed.count>(placed)>,
                         typename Buffer::element_type>;
  };
};
template <is_refused Buffer>
struct flat_tensor<Buffer> {
  template <bool, bool>
  struct held {
    using type = refused;
  };
};

}  // namespace detail

/// Tensors with names (`held_as`) in one buffer, shared over mesh axis `Axis`; what it has stands in
/// `detail::flat_tensors`. The length is padded so that every share is a multiple of `Multiple` elements, for those
/// that load several at once.
template <lit Name, lit Axis, long Multiple, class... Held>
struct padded_flat_buffer
    : detail::flat<(is_refused<Held> || ...), detail::laid_out<Name, Axis, Multiple, Held...>>::type {
  static constexpr auto text = Name;
  static constexpr auto axis = Axis;
};

/// The same, padded to what the axis divides.
template <lit Name, lit Axis, class... Held>
struct flat_buffer : detail::flat<(is_refused<Held> || ...), detail::laid_out<Name, Axis, 1, Held...>>::type {
  static constexpr auto text = Name;
  static constexpr auto axis = Axis;
};

/// The buffer as a tensor, of dimensions (others, flat): as every device along the axis has it, with a part of the sum
/// each, and the share of each. `steps<parts_t<b>, share_t<b>>` and `steps<share_t<b>, whole_t<b>>` are the two
/// collectives of ZeRO.
template <class Buffer>
using whole_t = typename detail::flat_tensor<Buffer>::template held<false, false>::type;
template <class Buffer>
using parts_t = typename detail::flat_tensor<Buffer>::template held<true, false>::type;
template <class Buffer>
using share_t = typename detail::flat_tensor<Buffer>::template held<false, true>::type;

}  // namespace cfp
