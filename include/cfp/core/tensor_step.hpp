// One step of the way from one partition of a tensor to another, as each device sees it, and a list of them.
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/core/explain.hpp>

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
  extents before, after;          ///< elements that a device holds, one size per dimension (per part of a compound one)
  signed char at = 0, to_at = 0;  ///< positions of `dim` and `to` among them
  long whole = 0;                 ///< elements that the devices that take part hold between them, each once

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

// What follows the name of a step whose parts are no sum.
constexpr std::string_view by(step_kind kind, reduction combine) {
  if (kind != conversion_step::all_reduce && kind != conversion_step::reduce_scatter) return {};
  return combine == reduction::max ? "_max" : combine == reduction::min ? "_min" : "";
}

constexpr void say_steps(sentence& s, const step_list& steps) {
  for (int i = 0; i < steps.size(); ++i) {
    const tensor_step& t = steps[i];
    say(s, i ? ", then " : "", step_names[t.kind], by(t.kind, t.combine));
    if (!t.dim.empty()) say(s, t.kind == conversion_step::reduce_scatter ? " into '" : " '", t.dim.view(), "'");
    if (!t.to.empty()) say(s, " to '", t.to.view(), "'");
    say(s, " over ");
    say_names(s, t.axes);
    if (t.whole > 0 && t.communicates()) say(s, " (", t.bytes(steps.element_bytes), " bytes per device)");
  }
  if (steps.none()) say(s, "nothing");
}

}  // namespace detail

}  // namespace cfp
