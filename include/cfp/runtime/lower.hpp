// Lowering: a training graph and a sharding become one program for all ranks. A conversion is inserted wherever a
// tensor is held otherwise than it is needed, once per tensor and partition.
#pragma once

#include <cfp/model/sharding.hpp>
#include <cfp/runtime/program.hpp>

namespace cfp::inline v0_1 {

namespace detail {

struct lowerer {
  const graph& g;
  const mesh_shape& mesh;
  const sharding& plan;
  long real_bytes;
  bool forms_given;  // tensors from outside are there in every form that is needed
  program out{};
  std::vector<std::vector<int>> held{};  // buffers of each value
  std::vector<index> update_of{};          // per value: the update that overwrites it, or -1
  std::vector<mark> materialised{}, from_outside{};
  std::vector<instruction> before{};       // of a step with several passes: weights brought into form once
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
    if (!c.possible) throw "cfp: a partition cannot be converted: a dimension does not divide";
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
    if (best < 0) throw "cfp: a partition cannot be converted: a dimension does not divide";
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
  constexpr bool once_per_step(int v) const { return g.passes > 1 && g[v].role == value_role::weight && g[v].producer < 0 && !is_gathered_anew(v); }

  constexpr int operand_index(int o, int v) const { return g.at(o).operands.find(v); }

  constexpr void emit(int id) {
    const operation& o = g.at(id);
    operation_now = id;
    const assignment& a = plan.assigned[static_cast<std::size_t>(id)];
    if (!admissible(o.r, o.op->linear, o.sizes, a, mesh)) throw "cfp: an operation is split by a factor that does not divide or must stay whole, or passes a partial sum on that it is not linear in";
    instruction i;
    i.op = id;
    i.assigned = a;
    for (int k = 0; k < o.operands.size(); ++k) i.in.push(get(o.operands[k], operand_partition(o.r, k, a), read_as(g, o, k)));
    for (int k = 0; k < o.results.size(); ++k) {
      const int b = allocate(o.results[k], result_partition(o.r, k, a), stored(g[o.results[k]].type, real_bytes), false);
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

}  // namespace detail

/// A tensor that is wanted in a partition once the operations before `before` have run.
struct delivery {
  int value = -1;
  partition held;
  int before = 0;
};

/// Lowers the given operations (ascending). What they need from outside is given in the partition its own update
/// holds it in, else as first needed (in every form needed, if `forms_given`). `real_bytes` is the size of a number.
constexpr program lower(const graph& g, const mesh_shape& mesh, const sharding& plan, const std::vector<int>& operations,
                        long real_bytes, bool forms_given = false, const std::vector<delivery>& wanted = {}) {
  detail::lowerer l{g, mesh, plan, real_bytes, forms_given};
  l.from_outside.resize(g.values.size());
  l.out.mesh = mesh;
  l.out.real_bytes = real_bytes;
  l.held.resize(g.values.size());
  l.update_of.resize(g.values.size());
  l.materialised.resize(g.values.size());
  for (int o : operations)
    for (int k = 0; k < g.at(o).results.size(); ++k)
      if (const int x = overwritten(g.at(o), k); x >= 0) l.update_of[static_cast<std::size_t>(g.at(o).operands[x])].id = o;
  bool computes_loss = false, forward = true, updates = false;
  const auto finish_pass = [&] {
    if (computes_loss) l.out.loss = l.get(g.loss, partition::replicated(0), g[g.loss].type);
    l.out.end = static_cast<int>(l.out.code.size());
  };
  for (int o : operations) {
    if (forward && g.at(o).when != phase::forward) {
      forward = false;
      l.forget_gathered();
    }
    if (g.passes > 1 && !updates && g.at(o).when == phase::update) {
      updates = true;
      finish_pass();
    }
    l.operation_now = o;
    for (const delivery& d : wanted)
      if (d.before == o) l.get(d.value, d.held, g[d.value].type);
    l.emit(o);
    computes_loss = computes_loss || (g.loss >= 0 && g[g.loss].rank() == 0 && g[g.loss].producer == o);
  }
  for (const delivery& d : wanted)
    if (d.before >= g.size()) l.get(d.value, d.held, g[d.value].type);
  if (!updates) finish_pass();
  l.out.passes = g.passes;
  l.out.begin = static_cast<int>(l.before.size());
  l.out.end += l.out.begin;
  for (const instruction& i : l.out.code) l.before.push_back(i);
  l.out.code = l.before;
  return l.out;
}

constexpr std::vector<int> all_operations(const graph& g) {
  std::vector<int> ids;
  for (int i = 0; i < g.size(); ++i) ids.push_back(i);
  return ids;
}

/// Adds the collective an instruction is to those of a step, as often as it runs.
constexpr void count_collective(const program& p, const graph& g, std::size_t instruction_index, collective_count& n) {
  const instruction& i = p.code[instruction_index];
  if (i.kind != instruction::reshard || !i.step.communicates()) return;
  const buffer& from = p[i.in[0]];
  const long bytes = elements(g[from.value].shape) * g[from.value].width(p.real_bytes);
  const std::size_t kind = static_cast<std::size_t>(i.step.collective());
  n.calls[kind] += p.runs(instruction_index);
  n.bytes[kind] += p.runs(instruction_index) * bytes_sent(i.step, from.held, bytes, p.mesh);
}

/// The collectives a step of a program will run, from its conversions.
constexpr collective_count count_collectives(const program& p, const graph& g) {
  collective_count n;
  for (std::size_t i = 0; i < p.code.size(); ++i) count_collective(p, g, i, n);
  return n;
}

}  // namespace cfp
