// Conversion of one partition into another: the cheapest sequence of collectives and local steps.
#pragma once

#include <cfp/core/collective.hpp>
#include <cfp/core/partition.hpp>

namespace cfp::inline v0_1 {

/// One step of a conversion along one mesh axis.
struct conversion_step {
  enum kind_t : std::uint8_t {
    all_reduce,      ///< partial -> replicate
    all_gather,      ///< split(dim) -> replicate
    reduce_scatter,  ///< partial -> split(dim)
    all_to_all,      ///< split(dim) -> split(to)
    slice,           ///< replicate -> split(dim), local
    mask,            ///< replicate -> partial, local: the first device of the axis keeps it, the others hold zero
    pad,             ///< split(dim) -> partial, local: zero outside the own piece
  } kind = slice;
  signed char axis = 0, dim = 0, to = 0;
  reduction combine = reduction::sum;
  friend constexpr bool operator==(const conversion_step&, const conversion_step&) = default;

  constexpr bool communicates() const { return kind <= all_to_all; }
  constexpr collective_kind collective() const { return static_cast<collective_kind>(kind); }
};

/// By `conversion_step::kind`.
inline constexpr std::string_view step_names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "slice", "mask", "pad"};

/// The partition after a step. Only the innermost axis of a dimension can be gathered or moved.
constexpr partition after(partition p, const conversion_step& s) {
  using step = conversion_step;
  if (s.kind == step::all_reduce || s.kind == step::reduce_scatter) p.partial[s.axis] = {};
  if (s.kind == step::all_gather || s.kind == step::all_to_all || s.kind == step::pad) p.dims[s.dim].pop();
  if (s.kind == step::reduce_scatter || s.kind == step::slice) p.split(s.dim, s.axis);
  if (s.kind == step::all_to_all) p.split(s.to, s.axis);
  if (s.kind == step::mask || s.kind == step::pad) p.partial[s.axis] = {true, reduction::sum};
  return p;
}

/// Bytes a device sends in this step; `p` is the partition before it, `bytes` the size of the unsplit tensor.
constexpr long bytes_sent(const conversion_step& s, const partition& p, long bytes, const mesh_shape& mesh) {
  if (!s.communicates()) return 0;
  for (int d = 0; d < p.rank(); ++d)
    for (signed char a : p.dims[d])
      if (a != s.axis) bytes /= mesh.size(a);
  return bytes_sent(s.collective(), bytes, mesh.size(s.axis));
}

struct conversion {
  list<conversion_step, 12> steps;
  long bytes = 0;         ///< sent per device, in all steps
  bool possible = false;  ///< false when a dimension does not divide

  constexpr int collectives() const {
    int n = 0;
    for (const conversion_step& s : steps) n += s.communicates();
    return n;
  }
};

namespace detail {

// Compared in this order.
struct conversion_cost {
  long bytes = 0, outer = 0;  // sent; the same, each byte as often as there are axes inside of the one it goes over
  int collectives = 0, steps = 0;

  constexpr bool operator<(const conversion_cost& other) const {
    if (bytes != other.bytes) return bytes < other.bytes;
    if (outer != other.outer) return outer < other.outer;
    if (collectives != other.collectives) return collectives < other.collectives;
    return steps < other.steps;
  }
};

// Steps that can follow partition `p`. Calls `f(step)`.
template <class F>
constexpr void each_step(const partition& p, const mesh_shape& mesh, F&& f) {
  using step = conversion_step;
  const int rank = p.rank();
  for (int a = 0; a < mesh.rank(); ++a) {
    if (mesh.size(a) == 1) continue;
    const signed char axis = static_cast<signed char>(a);
    const placement on = p.on(a);
    if (on.kind == placement::partial) {
      f(step{step::all_reduce, axis, 0, 0, on.combine});
      for (int d = 0; d < rank; ++d) f(step{step::reduce_scatter, axis, static_cast<signed char>(d), 0, on.combine});
    } else if (on.kind == placement::split) {
      const signed char dim = static_cast<signed char>(on.dim);
      if (p.dims[on.dim].back() != axis) continue;
      f(step{step::all_gather, axis, dim, 0, reduction::sum});
      f(step{step::pad, axis, dim, 0, reduction::sum});
      for (int d = 0; d < rank; ++d)
        if (d != on.dim) f(step{step::all_to_all, axis, dim, static_cast<signed char>(d), reduction::sum});
    } else {
      f(step{step::mask, axis, 0, 0, reduction::sum});
      for (int d = 0; d < rank; ++d) f(step{step::slice, axis, static_cast<signed char>(d), 0, reduction::sum});
    }
  }
}

}  // namespace detail

/// The cheapest conversion: fewest bytes sent, then fewest of them over the outer axes, whose links are no faster, then fewest
/// collectives, then fewest steps.
/// Uniform-cost search over partitions.
constexpr conversion convert(const partition& from, const partition& to, const extents& shape, long element_bytes,
                             const mesh_shape& mesh) {
  struct state {
    partition at{};
    detail::conversion_cost cost{};
    int parent = -1;
    conversion_step by{};
    bool done = false;
  };
  conversion out;
  out.possible = true;
  if (from == to) return out;
  const long bytes = elements(shape) * element_bytes;
  // One step that leads there is never dearer than several.
  detail::each_step(from, mesh, [&](const conversion_step& s) {
    if (!out.steps.empty() || !(after(from, s) == to) || !divides(to, shape, mesh)) return;
    out.steps.push(s);
    out.bytes = bytes_sent(s, from, bytes, mesh);
  });
  if (!out.steps.empty()) return out;
  int room = 64;  // by hand: the core includes no containers
  state* states = new state[static_cast<unsigned>(room)];
  int count = 1, goal = -1;
  states[0].at = from;
  while (goal < 0) {
    int best = -1;
    for (int i = 0; i < count; ++i)
      if (!states[i].done && (best < 0 || states[i].cost < states[best].cost)) best = i;
    if (best < 0) break;
    states[best].done = true;
    if (states[best].at == to) {
      goal = best;
      break;
    }
    const partition here = states[best].at;  // a copy: the states move when they grow
    detail::each_step(here, mesh, [&](const conversion_step& s) {
      // An axis that replicates before and after is left alone, though its links could carry a share of the bytes.
      if (from.on(s.axis).kind == placement::replicate && to.on(s.axis).kind == placement::replicate) return;
      // Owing a sum that the target does not owe never helps.
      if ((s.kind == conversion_step::mask || s.kind == conversion_step::pad) && !to.partial[s.axis].owed) return;
      const partition next = after(here, s);
      if (!divides(next, shape, mesh)) return;
      const long sent = bytes_sent(s, here, bytes, mesh);
      detail::conversion_cost cost = states[best].cost;
      cost.bytes += sent;
      cost.outer += (mesh.rank() - 1 - s.axis) * sent;
      cost.collectives += s.communicates();
      ++cost.steps;
      for (int i = 0; i < count; ++i)
        if (states[i].at == next) {
          if (cost < states[i].cost) states[i].cost = cost, states[i].parent = best, states[i].by = s;
          return;
        }
      if (count == room) {
        state* more = new state[static_cast<unsigned>(room *= 2)];
        for (int i = 0; i < count; ++i) more[i] = states[i];
        delete[] states;
        states = more;
      }
      states[count++] = {next, cost, best, s, false};
    });
  }
  if (goal < 0) {
    out.possible = false;
  } else {
    for (int i = goal; i != 0; i = states[i].parent) out.steps.insert(0, states[i].by);
    partition p = from;
    for (const conversion_step& s : out.steps) {
      out.bytes += bytes_sent(s, p, bytes, mesh);
      p = after(p, s);
    }
  }
  delete[] states;
  return out;
}

}  // namespace cfp
