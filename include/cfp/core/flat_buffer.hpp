// Several tensors one behind another in one buffer, padded so that it splits evenly over a mesh axis: what ZeRO's
// optimizers keep. Each device lays its shards of the tensors out flat; every device along the axis then owns one
// share.
#pragma once

#include <cfp/core/flat_gradient.hpp>

namespace cfp::inline v0_1 {

namespace detail {

template <class Layout>
struct flat_tensors : Layout::first {
  static constexpr long elements = Layout::value.elements;  ///< of all tensors, as one device holds them
  static constexpr long padded = Layout::value.padded;      ///< with what is added at the end
  static constexpr long owned = Layout::value.share;        ///< by one device along the axis

  /// Calls `f.template operator()<Tensor>()` for every tensor, in order.
  template <class F>
  static constexpr void each(F&& f) {
    Layout::each(f);
  }

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
