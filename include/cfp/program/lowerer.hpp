// The program as operations are lowered into it, and the buffers in which each value is held by then.
#pragma once

#include <cfp/core/shape_error.hpp>
#include <cfp/model/sharding.hpp>
#include <cfp/program/around.hpp>
#include <cfp/program/known_conversions.hpp>
#include <cfp/program/program.hpp>

#include <algorithm>
#include <utility>

namespace cfp::inline v0_1::detail {

struct lowerer {
  const graph& g;
  const mesh_shape& mesh;
  const sharding& plan;
  long real_bytes;
  bool forms_given;                          // tensors from outside are there in every form that is needed
  known_conversions* conversions = nullptr;  // none: found anew
  program out{};
  std::vector<index>
      touched{};  // values, ascending, where the operations are a part of the graph: the others need no room
  struct known {
    buffer_numbers held{};
    int update = -1;  // the operation that overwrites it, or -1
    bool materialised = false, from_outside = false;
  };
  std::vector<known> known_of{};      // each value that is touched
  std::vector<instruction> before{};  // of a step with several passes: weights brought into form once
  int operation_now = -1;

  // Gives what the operations and `more` have to do with room.
  constexpr void make_room(const std::vector<int>& operations, const std::vector<index>& more) {
    if (operations.size() < g.operations.size()) {
      touched = more;
      for (int o : operations) {
        for (int v : g.at(o).operands) touched.push_back({v});
        for (int v : g.at(o).results) touched.push_back({v});
      }
      std::sort(touched.begin(), touched.end(), [](index a, index b) { return a.id < b.id; });
      touched.erase(std::unique(touched.begin(), touched.end(), [](index a, index b) { return a.id == b.id; }),
                    touched.end());
    }
    known_of.resize(touched.empty() ? g.values.size() : touched.size());
  }
  constexpr known& of(int v) { return known_of[place_of(v)]; }
  constexpr const known& of(int v) const { return known_of[place_of(v)]; }
  constexpr std::size_t place_of(int v) const {
    if (touched.empty()) return static_cast<std::size_t>(v);
    return static_cast<std::size_t>(
        std::lower_bound(touched.begin(), touched.end(), v, [](index a, int b) { return a.id < b; }) - touched.begin());
  }

  constexpr long width(element type) const { return width_of(type, real_bytes); }

  constexpr int allocate(int v, const partition& p, element type, bool persistent) {
    buffer b;
    b.value = v;
    b.held = p;
    b.type = type;
    b.local = local_shape(p, g[v].shape, mesh);
    b.bytes = elements(b.local) * width(type);
    b.root = static_cast<int>(out.buffers.size());
    b.persistent = persistent;
    out.buffers.push_back(b);
    return b.root;
  }
  constexpr int scratch(const buffer& like, long bytes) {
    const int b = allocate(like.value, like.held, like.type, false);
    out[b].bytes = bytes;
    return b;
  }
  constexpr int keep(int v, int b) {
    of(v).held.push(b);
    return b;
  }

  constexpr conversion cheapest(int v, const buffer& from, const partition& target) const {
    if (conversions == nullptr) return convert(from.held, target, g[v].shape, width(from.type), mesh);
    return (*conversions)(g[v].shape, width(from.type), mesh, from.held, target);
  }

  constexpr int convert_to(int v, int from, const partition& target) {
    const conversion c = cheapest(v, out[from], target);
    if (!c.possible) throw shape_error("a partition cannot be converted: a dimension does not divide");
    int at = from;
    for (const conversion_step& s : c.steps) {
      instruction i;
      i.kind = instruction::reshard;
      i.op = operation_now;
      i.step = s;
      i.in.push(at);
      const int next = allocate(v, after(out[at].held, s), out[at].type, false);
      i.out.push(next);
      for (int k = scratch_buffers(s, out[at].local); k > 0; --k)
        i.out.push(scratch(out[at], out[at].bytes > out[next].bytes ? out[at].bytes : out[next].bytes));
      (once_per_step(v) ? before : out.code).push_back(std::move(i));
      at = next;
    }
    return keep(v, at);
  }

  // What products read of a weight, made from what rests, where it rests.
  constexpr int narrow(int v, int from, element type) {
    instruction i;
    i.kind = instruction::narrow;
    i.op = operation_now;
    i.in.push(from);
    const int made = allocate(v, out[from].held, type, false);
    i.out.push(made);
    (g.passes > 1 ? before : out.code).push_back(std::move(i));
    return keep(v, made);
  }

  // Buffer of value v in partition p, converting if it must.
  constexpr int get(int v, const partition& p, element wanted_type) {
    const element type = stored(wanted_type, real_bytes);
    auto& have = of(v).held;
    const bool outside =
        g[v].role == value_role::input || g[v].role == value_role::constant || (forms_given && of(v).from_outside);
    if (have.empty() || outside) {
      of(v).from_outside = true;
      partition at = p;
      if (g[v].producer < 0)  // what the step is given is complete; `nearest` makes parts of sums of it
        for (partition::debt& d : at.partial) d = {};
      element rests = type;
      const auto& wanted = plan.materialised[static_cast<std::size_t>(v)];
      if (const int u = of(v).update; u >= 0) {
        const int k = operand_index(u, v);
        at = operand_partition(g.at(u).r, k, plan.assigned[static_cast<std::size_t>(u)]);
        rests = stored(read_as(g, g.at(u), k), real_bytes);
      } else if (!wanted.empty()) {
        at = wanted[0];
      }
      bool given = false;
      for (int b : have) given = given || (out[b].held == at && out[b].type == rests);
      if (!given) keep(v, allocate(v, at, rests, true));
    }
    bool made = false;
    for (int b : have) made = made || out[b].type == type;
    if (!made) narrow(v, have[0], type);
    const auto& wanted = plan.materialised[static_cast<std::size_t>(v)];
    if (!outside && !wanted.empty() && !of(v).materialised) {
      of(v).materialised = true;
      for (const partition& m : wanted) nearest(v, m, type);
    }
    return nearest(v, p, type);
  }

  constexpr int nearest(int v, const partition& p, element type) {
    int best = -1;
    conversion least;
    for (int b : of(v).held) {
      if (out[b].type != type) continue;
      if (out[b].held == p) return b;
      const conversion c = cheapest(v, out[b], p);
      if (!c.possible) continue;
      if (best < 0 || c.price < least.price || (c.price == least.price && c.steps.size() < least.steps.size())) {
        best = b;
        least = c;
      }
    }
    if (best < 0) throw shape_error("a partition cannot be converted: a dimension does not divide");
    return convert_to(v, best, p);
  }

  // Weights that are gathered anew for backward: only what rests is held.
  constexpr void forget_gathered() {
    for (known& k : known_of) {
      if (k.update < 0 || !plan.assigned[static_cast<std::size_t>(k.update)].regather) continue;
      buffer_numbers resting;
      for (int b : k.held)
        if (out[b].persistent || out[b].held == out[k.held[0]].held) resting.push(b);
      k.held = resting;
    }
  }

  constexpr bool is_gathered_anew(int v) const {
    const int u = of(v).update;
    return u >= 0 && plan.assigned[static_cast<std::size_t>(u)].regather;
  }
  constexpr bool once_per_step(int v) const {
    return g.passes > 1 && g[v].role == value_role::weight && g[v].producer < 0 && !is_gathered_anew(v);
  }

  constexpr int operand_index(int o, int v) const { return g.at(o).operands.find(v); }

  constexpr void emit(int id) {
    const operation& o = g.at(id);
    operation_now = id;
    const assignment& a = plan.assigned[static_cast<std::size_t>(id)];
    if (!admissible(o.r, o.op->linear, o.sizes, a, mesh))
      throw shape_error(
          "an operation is split by a factor that does not divide or must stay whole, or passes a partial "
          "sum on that it is not linear in");
    instruction i;
    i.op = id;
    i.assigned = a;
    for (int k = 0; k < o.operands.size(); ++k)
      i.in.push(get(o.operands[k], operand_partition(o.r, k, a), read_as(g, o, k)));
    for (int k = 0; k < o.results.size(); ++k) {
      const int b =
          allocate(o.results[k], result_partition(o.r, k, a), stored(g[o.results[k]].type, real_bytes), false);
      if (const int operand = overwritten(o, k); operand >= 0) {
        out[b].root = out[i.in[operand]].root;
        out[b].persistent = true;
      }
      keep(o.results[k], b);
      i.out.push(b);
    }
    const bool same = o.op->body == op_body::map && o.op->unit && o.operands.size() == 1 &&
                      o.r.operands[0].factors == o.r.results[0].factors && out[i.in[0]].type == out[i.out[0]].type;
    if (same) {
      out[i.out[0]].root = out[i.in[0]].root;
      out[i.out[0]].persistent = out[i.in[0]].persistent;
      i.nothing = true;
    }
    out.code.push_back(std::move(i));
  }
};

}  // namespace cfp::detail
