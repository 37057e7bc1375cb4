// Completion: partitions are given for a few tensors, the rest follows. What a tensor's partition claims of an
// operation it enters is followed forward to a fixed point; operations left without a claim then take one from what
// they produce. Every round looks at the state the last one left, so the result does not depend on the order of
// writing.
#pragma once

#include <cfp/model/sharding.hpp>

namespace cfp::inline v0_1 {

/// A partition that a user gives a tensor. What reads the tensor finds it so, however it was computed.
struct given_partition {
  int value = -1;
  partition held;
};

struct completion {
  sharding plan;

  enum kind_t : std::uint8_t { nothing, contradiction, whole_split, not_divisible } problem = nothing;
  int op = -1, axis = -1;
  int factor = -1, other = -1;         ///< of the operation's rule
  int source = -1, other_source = -1;  ///< values whose given partitions claim them
};

namespace detail {

// What is known of a value along one axis, and the given tensor it comes from.
struct known {
  bool decided = false;
  placement at{};
  int source = -1;
};
struct claim {
  int factor = -1, source = -1;
};

struct completer {
  const graph& g;
  const mesh_shape& mesh;
  const std::vector<given_partition>& given;
  completion out{};

  std::vector<known> values{};  // as read
  std::vector<mark> pinned{};   // given by the user
  std::vector<claim> claims{};  // per operation; factor >= 0 once decided

  constexpr void fail(completion::kind_t kind, int op, int axis, claim a, claim b = {}) {
    if (out.problem == completion::nothing) {
      out.problem = kind;
      out.op = op, out.axis = axis, out.factor = a.factor, out.source = a.source, out.other = b.factor,
      out.other_source = b.source;
    }
  }

  constexpr claim from_operands(int id, int axis) {
    const operation& o = g.at(id);
    claim found;
    for (int k = 0; k < o.operands.size(); ++k) {
      const known& v = values[static_cast<std::size_t>(o.operands[k])];
      if (!v.decided || v.at.kind != placement::split) continue;
      const claim c{o.r.operands[k].factors[v.at.dim], v.source};
      if (o.r.stays_together(c.factor)) fail(completion::whole_split, id, axis, c);
      else if (found.factor >= 0 && found.factor != c.factor) fail(completion::contradiction, id, axis, found, c);
      else if (found.factor < 0) found = c;
    }
    return found;
  }

  constexpr claim from_results(int id) const {
    const operation& o = g.at(id);
    for (int k = 0; k < o.results.size(); ++k) {
      const known& v = values[static_cast<std::size_t>(o.results[k])];
      if (!v.decided || v.at.kind != placement::split) continue;
      const int f = o.r.results[k].factors[v.at.dim];
      if (o.r.is_parallel(f)) return {f, v.source};
    }
    return {};
  }

  constexpr bool open(int v) const {
    return !values[static_cast<std::size_t>(v)].decided && !pinned[static_cast<std::size_t>(v)].set;
  }

  // What the claims say of values: those that operations write, then, upward, those they read. A value that two readers
  // ask for differently is left open, whichever comes first.
  constexpr bool tell(bool upward) {
    bool changed = false;
    for (int i = 0; i < g.size(); ++i) {
      const operation& o = g.at(i);
      const claim& c = claims[static_cast<std::size_t>(i)];
      for (int k = 0; c.factor >= 0 && k < o.results.size(); ++k) {
        const int d = o.r.results[k].dim_of(c.factor);
        if (d < 0 || !open(o.results[k])) continue;
        values[static_cast<std::size_t>(o.results[k])] = {true, {placement::split, d, reduction::sum}, c.source};
        changed = true;
      }
    }
    if (!upward) return changed;
    std::vector<known> asked(g.values.size());
    std::vector<mark> torn(g.values.size());
    for (int i = 0; i < g.size(); ++i) {
      const operation& o = g.at(i);
      const claim& c = claims[static_cast<std::size_t>(i)];
      for (int k = 0; c.factor >= 0 && k < o.operands.size(); ++k) {
        const int v = o.operands[k], d = o.r.operands[k].dim_of(c.factor);
        if (d < 0 || g[v].producer < 0 || !open(v)) continue;
        known& a = asked[static_cast<std::size_t>(v)];
        if (a.decided && a.at.dim != d) torn[static_cast<std::size_t>(v)].set = true;
        a = {true, {placement::split, d, reduction::sum}, c.source};
      }
    }
    for (std::size_t v = 0; v < asked.size(); ++v)
      if (asked[v].decided && !torn[v].set) values[v] = asked[v], changed = true;
    return changed;
  }

  constexpr bool round(int axis, bool upward) {
    bool changed = false;
    std::vector<claim> next = claims;
    for (int i = 0; i < g.size(); ++i) {
      const claim c = from_operands(i, axis);
      claim& mine = next[static_cast<std::size_t>(i)];
      if (mine.factor >= 0 && c.factor >= 0 && c.factor != mine.factor)
        fail(completion::contradiction, i, axis, mine, c);
      if (mine.factor < 0 && c.factor >= 0) mine = c, changed = true;
      if (mine.factor < 0 && upward)
        if (const claim r = from_results(i); r.factor >= 0) mine = r, changed = true;
    }
    claims = next;
    return tell(upward) || changed;
  }

  // A sum is passed on where the operation allows it and all it needs is partial.
  constexpr bool passes_partial(int id, const std::vector<mark>& partial) const {
    const operation& o = g.at(id);
    int n = 0;
    for (int v : o.operands) n += partial[static_cast<std::size_t>(v)].set;
    return (o.op->linear == linearity::all && n == o.operands.size());
  }

  constexpr void along(int axis) {
    values.assign(g.values.size(), {});
    pinned.assign(g.values.size(), {});
    claims.assign(g.operations.size(), {});
    for (const given_partition& p : given) {
      values[static_cast<std::size_t>(p.value)] = {true, p.held.on(axis), p.value};
      pinned[static_cast<std::size_t>(p.value)].set = true;
    }
    // Forward to a fixed point; then one step from results; and so on until nothing changes.
    for (bool changed = true; changed && out.problem == completion::nothing;) {
      while (round(axis, false)) {}
      changed = round(axis, true);
    }
    std::vector<mark> partial(g.values.size());
    for (const given_partition& p : given)
      if (g[p.value].producer < 0) partial[static_cast<std::size_t>(p.value)].set = p.held.partial[axis].owed;
    for (int i = 0; i < g.size(); ++i) {
      const operation& o = g.at(i);
      const int f = claims[static_cast<std::size_t>(i)].factor;
      signed char& a = out.plan.assigned[static_cast<std::size_t>(i)].factor[axis];
      a = f >= 0 ? static_cast<signed char>(f) : passes_partial(i, partial) ? assignment::partial : assignment::none;
      for (int k = 0; k < o.results.size(); ++k)
        partial[static_cast<std::size_t>(o.results[k])].set =
            a == assignment::partial || (f >= 0 && o.r.results[k].dim_of(f) < 0 && o.r.combine == reduction::sum);
      for (const given_partition& p : given)
        for (int r : o.results)
          if (p.value == r) partial[static_cast<std::size_t>(r)].set = p.held.partial[axis].owed;
    }
  }

  constexpr completion run() {
    out.plan = sharding::replicated(g);
    for (const given_partition& p : given) out.plan.materialised[static_cast<std::size_t>(p.value)].push(p.held);
    for (int axis = 0; axis < mesh.rank() && out.problem == completion::nothing; ++axis)
      if (mesh.size(axis) > 1) along(axis);
    for (int i = 0; i < g.size() && out.problem == completion::nothing; ++i) {
      const operation& o = g.at(i);
      const assignment& a = out.plan.assigned[static_cast<std::size_t>(i)];
      if (admissible(o.r, o.op->linear, o.sizes, a, mesh)) continue;
      for (int axis = 0; axis < mesh.rank(); ++axis) {
        if (a.factor[axis] < 0) continue;
        assignment alone;  // what splits the same factor
        for (int other = 0; other < mesh.rank(); ++other)
          if (a.factor[other] == a.factor[axis]) alone.factor[other] = a.factor[other];
        if (!admissible(o.r, o.op->linear, o.sizes, alone, mesh))
          fail(completion::not_divisible, i, axis, {a.factor[axis], -1});
      }
    }
    return out;
  }
};

}  // namespace detail

/// What every operation of a forward graph splits, from the partitions given for some of its tensors.
constexpr completion complete(const graph& forward, const mesh_shape& mesh, const std::vector<given_partition>& given) {
  return detail::completer{forward, mesh, given}.run();
}

}  // namespace cfp
