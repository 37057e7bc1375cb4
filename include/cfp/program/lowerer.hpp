// The program as operations are lowered into it, and the buffers in which each value is held by then.
#pragma once

#include <cfp/core/shape_error.hpp>
#include <cfp/model/sharding.hpp>
#include <cfp/program/program.hpp>

namespace cfp::inline v0_1::detail {

struct lowerer {
  const graph& g;
  const mesh_shape& mesh;
  const sharding& plan;
  long real_bytes;
  bool forms_given;  // tensors from outside are there in every form that is needed
  program out{};
  std::vector<std::vector<int>> held{};  // buffers of each value
  std::vector<index> update_of{};        // per value: the update that overwrites it, or -1
  std::vector<mark> materialised{}, from_outside{};
  std::vector<instruction> before{};  // of a step with several passes: weights brought into form once
  int operation_now = -1;

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
    held[static_cast<std::size_t>(v)].push_back(b);
    return b;
  }

  constexpr int convert_to(int v, int from, const partition& target) {
    const conversion c = convert(out[from].held, target, g[v].shape, width(out[from].type), mesh);
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
      // Gathering or scattering an inner dimension goes through packed scratch of the larger side.
      const auto outer = [&](int dim) {
        long n = 1;
        for (int d = 0; d < dim; ++d) n *= out[at].local[d];
        return n > 1;
      };
      if ((s.kind == conversion_step::all_gather && outer(s.dim)) ||
          (s.kind == conversion_step::reduce_scatter && outer(s.dim))) {
        const long bytes = out[at].bytes > out[next].bytes ? out[at].bytes : out[next].bytes;
        i.out.push(scratch(out[at], bytes));
      }
      if (s.kind == conversion_step::all_to_all) {
        const long bytes = out[at].bytes;
        i.out.push(scratch(out[at], bytes));
        i.out.push(scratch(out[at], bytes));
      }
      (once_per_step(v) ? before : out.code).push_back(i);
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
    (g.passes > 1 ? before : out.code).push_back(i);
    return keep(v, made);
  }

  // Buffer of value v in partition p, converting if it must.
  constexpr int get(int v, const partition& p, element wanted_type) {
    const element type = stored(wanted_type, real_bytes);
    auto& have = held[static_cast<std::size_t>(v)];
    const bool outside = g[v].role == value_role::input || g[v].role == value_role::constant ||
                         (forms_given && from_outside[static_cast<std::size_t>(v)].set);
    if (have.empty() || outside) {
      from_outside[static_cast<std::size_t>(v)].set = true;
      partition at = p;
      for (partition::debt& d : at.partial) d = {};  // what is given is complete; `nearest` makes parts of sums of it
      element rests = type;
      const auto& wanted = plan.materialised[static_cast<std::size_t>(v)];
      if (const int u = update_of[static_cast<std::size_t>(v)].id; u >= 0) {
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
    if (!outside && !wanted.empty() && !materialised[static_cast<std::size_t>(v)].set) {
      materialised[static_cast<std::size_t>(v)].set = true;
      for (const partition& m : wanted) nearest(v, m, type);
    }
    return nearest(v, p, type);
  }

  constexpr int nearest(int v, const partition& p, element type) {
    int best = -1;
    conversion least;
    for (int b : held[static_cast<std::size_t>(v)]) {
      if (out[b].type != type) continue;
      if (out[b].held == p) return b;
      const conversion c = convert(out[b].held, p, g[v].shape, width(type), mesh);
      if (!c.possible) continue;
      if (best < 0 || c.bytes < least.bytes || (c.bytes == least.bytes && c.steps.size() < least.steps.size())) {
        best = b;
        least = c;
      }
    }
    if (best < 0) throw shape_error("a partition cannot be converted: a dimension does not divide");
    return convert_to(v, best, p);
  }

  // Weights that are gathered anew for backward: only what rests is held.
  constexpr void forget_gathered() {
    for (int v = 0; v < g.value_count(); ++v) {
      if (!is_gathered_anew(v)) continue;
      std::vector<int> resting;
      for (int b : held[static_cast<std::size_t>(v)])
        if (out[b].persistent || out[b].held == out[held[static_cast<std::size_t>(v)][0]].held) resting.push_back(b);
      held[static_cast<std::size_t>(v)] = resting;
    }
  }

  constexpr bool is_gathered_anew(int v) const {
    const int u = update_of[static_cast<std::size_t>(v)].id;
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
    out.code.push_back(i);
  }
};

}  // namespace cfp::detail
