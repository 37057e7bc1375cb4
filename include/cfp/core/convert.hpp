// Conversion of one partition into another: the cheapest sequence of collectives and local steps.
#pragma once

#include <cfp/core/conversion.hpp>

namespace cfp::inline v0_1 {

namespace detail {

// Compared in this order.
struct conversion_cost {
  long price = 0, outer = 0;  // the latter: bytes, each as often as there are axes inside of the one it goes over
  int collectives = 0, steps = 0;

  constexpr bool operator<(const conversion_cost& other) const {
    if (price != other.price) return price < other.price;
    if (outer != other.outer) return outer < other.outer;
    if (collectives != other.collectives) return collectives < other.collectives;
    return steps < other.steps;
  }
};

// Steps along one axis that can follow partition `p`. Calls `f(step)`.
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

// Collectives along several axes at once that can follow partition `p`.
template <class F>
constexpr void each_wide_step(const partition& p, const mesh_shape& mesh, F&& f) {
  using step = conversion_step;
  const auto several = [](unsigned axes) { return (axes & (axes - 1)) != 0; };
  const auto tell = [&](step s, unsigned axes) {
    s.axes = static_cast<unsigned char>(axes);
    while ((axes >> s.axis & 1) == 0) ++s.axis;
    f(s);
  };
  for (unsigned axes = 1; axes < 1U << mesh.rank(); ++axes) {
    bool parts = several(axes), known = false;
    reduction combine = reduction::sum;
    for (int a = 0; a < mesh.rank() && parts; ++a) {
      if ((axes >> a & 1) == 0) continue;
      parts = mesh.size(a) > 1 && p.partial[a].owed && (!known || p.partial[a].combine == combine);
      combine = p.partial[a].combine;
      known = true;
    }
    if (!parts) continue;
    tell({step::all_reduce, 0, 0, 0, combine}, axes);
    for (int d = 0; d < p.rank(); ++d) tell({step::reduce_scatter, 0, static_cast<signed char>(d), 0, combine}, axes);
  }
  for (int d = 0; d < p.rank(); ++d) {
    unsigned axes = 0;
    for (int i = p.dims[d].size() - 1; i >= 0; --i) {
      axes |= 1U << p.dims[d][i];
      if (!several(axes)) continue;
      tell({step::all_gather, 0, static_cast<signed char>(d)}, axes);
      for (int to = 0; to < p.rank(); ++to)
        if (to != d) tell({step::all_to_all, 0, static_cast<signed char>(d), static_cast<signed char>(to)}, axes);
    }
  }
}

// Axes that a conversion has to touch, a bit each: those that do something else afterwards, and those inside of them.
constexpr unsigned moving_axes(const partition& from, const partition& to, const mesh_shape& mesh) {
  unsigned moving = 0;
  for (int a = 0; a < mesh.rank(); ++a)
    if (!(from.on(a) == to.on(a))) moving |= 1U << a;
  for (const partition* p : {&from, &to})
    for (int d = 0; d < p->rank(); ++d) {
      bool inside = false;
      for (int i = 0; i < p->dims[d].size(); ++i) {
        const int a = p->dims[d][i];
        const bool elsewhere = i >= from.dims[d].size() || i >= to.dims[d].size() || from.dims[d][i] != to.dims[d][i];
        inside = inside || elsewhere || (moving >> a & 1) != 0;
        if (inside) moving |= 1U << a;
      }
    }
  return moving;
}

struct conversion_state {
  partition at{};
  unsigned number = 0;  // of `at`
  conversion_cost cost{};
  int parent = -1;
  conversion_step by{};
  bool done = false;
};

// What has been reached, from the cheapest on.
template <class Prices>
struct conversion_search {
  const partition &from, &to;
  const extents& shape;
  long bytes;
  const mesh_shape& mesh;
  const Prices& prices;
  conversion_state* states = nullptr;
  int room = 64, count = 0;         // by hand: the core includes no containers
  unsigned moving = ~0U, goal = 0;  // the latter: the number of `to`

  template <class F>
  constexpr void each(const partition& p, F&& f) const {
    each_step(p, mesh, f);
    if (prices.several_axes) each_wide_step(p, mesh, f);
  }

  constexpr void run(conversion& out) {
    // With groups over several axes there are many ways, and a compiler does not search long: what can stay stays.
    if (prices.several_axes) moving = moving_axes(from, to, mesh);
    states = new conversion_state[static_cast<unsigned>(room)];
    count = 1;
    states[0].at = from;
    states[0].number = number_of(from);
    goal = number_of(to);
    const int last = reach();
    if (last < 0) out.possible = false;
    else tell(last, out);
    delete[] states;
  }

  // The state at the goal; -1 where no step leads there.
  constexpr int reach() {
    for (;;) {
      int best = -1;
      for (int i = 0; i < count; ++i)
        if (!states[i].done && (best < 0 || states[i].cost < states[best].cost)) best = i;
      if (best < 0) return -1;
      states[best].done = true;
      if (states[best].number == goal) return best;
      const partition here = states[best].at;  // a copy: the states move when they grow
      each(here, [&](const conversion_step& s) {
        if (helps(s)) follow(best, here, s);
      });
    }
  }

  constexpr bool helps(const conversion_step& s) const {
    for (int a = 0; a < mesh.rank(); ++a)
      if (s.along(a) && (moving >> a & 1) == 0) return false;
    // An axis that replicates before and after is left alone, though its links could carry a share of the bytes.
    if (s.axes == 0 && from.on(s.axis).kind == placement::replicate && to.on(s.axis).kind == placement::replicate)
      return false;
    // Owing a sum that the target does not owe never helps.
    return !((s.kind == conversion_step::mask || s.kind == conversion_step::pad) && !to.partial[s.axis].owed);
  }

  constexpr void follow(int best, const partition& here, const conversion_step& s) {
    const partition next = after(here, s);
    if (!divides(next, shape, mesh)) return;
    const long sent = bytes_sent(s, here, bytes, mesh), price = prices(s, here, sent);
    if (price < 0) return;
    conversion_cost cost = states[best].cost;
    cost.price += price;
    cost.outer += (mesh.rank() - 1 - s.axis) * sent;
    cost.collectives += s.communicates();
    ++cost.steps;
    const unsigned number = number_of(next);
    for (int i = 0; i < count; ++i)
      if (states[i].number == number) {
        if (cost < states[i].cost) states[i].cost = cost, states[i].parent = best, states[i].by = s;
        return;
      }
    if (count == room) {
      conversion_state* more = new conversion_state[static_cast<unsigned>(room *= 2)];
      for (int i = 0; i < count; ++i) more[i] = states[i];
      delete[] states;
      states = more;
    }
    states[count++] = {next, number, cost, best, s, false};
  }

  constexpr void tell(int last, conversion& out) const {
    for (int i = last; i != 0; i = states[i].parent) out.steps.insert(0, states[i].by);
    partition p = from;
    for (const conversion_step& s : out.steps) {
      out.bytes += bytes_sent(s, p, bytes, mesh);
      p = after(p, s);
    }
    out.price = states[last].cost.price;
  }
};

}  // namespace detail

/// The cheapest conversion: fewest bytes sent (and calls, priced in bytes), then fewest of them over the outer axes,
/// whose links are no faster, then fewest collectives, then fewest steps. Uniform-cost search over partitions. Others
/// than `conversion_prices` price steps by what they know, and say the same of themselves.
template <class Prices = conversion_prices>
constexpr conversion convert(const partition& from, const partition& to, const extents& shape, long element_bytes,
                             const mesh_shape& mesh, const Prices& prices = {}) {
  conversion out;
  out.possible = true;
  if (from == to) return out;
  detail::conversion_search<Prices> search{from, to, shape, elements(shape) * element_bytes, mesh, prices};
  // One step that leads there is taken, though other axes could carry a share of its bytes.
  search.each(from, [&](const conversion_step& s) {
    if (!out.steps.empty() || !(after(from, s) == to) || !divides(to, shape, mesh)) return;
    if (s.axes != 0 && !Prices::one_step_is_best) return;
    const long sent = bytes_sent(s, from, search.bytes, mesh), price = prices(s, from, sent);
    if (price < 0) return;
    out.steps.push(s);
    out.bytes = sent;
    out.price = price;
  });
  if (out.steps.empty()) search.run(out);
  return out;
}

}  // namespace cfp
