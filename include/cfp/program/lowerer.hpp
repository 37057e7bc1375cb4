// Operations, one after another, into a program.
#pragma once

#include <cfp/program/handed.hpp>
#include <cfp/program/held_buffers.hpp>

#include <utility>

namespace cfp::inline v0_1::detail {

struct lowerer : held_buffers {
  bool forms_given;  // tensors from outside are there in every form that is needed

  // Buffer of value v in partition p, converting if it must.
  constexpr int get(int v, const partition& p, element wanted_type) {
    const element type = stored(wanted_type, real_bytes);
    auto& have = of(v).held;
    if (have.empty() && !of(v).before.empty() && may_rest_on_host(v)) bring_back(v);
    else if (have.empty() && is_recomputed(of(v), v)) recompute(v);
    if (have.empty() && !shared.empty() && g[v].producer >= 0) {
      sentence why;
      say(why, "a stage of a pipeline reads ", g[v].label.view(),
          ", which neither it nor another has made by then: stages, and slices of them, must be as the schedule has "
          "them");
      throw shape_error(why);
    }
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
      if (!given) keep(v, rests_on_host(v) ? fetched(v, at, rests) : allocate(v, at, rests, true));
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

  // State that its update brings from the host, and back.
  constexpr bool rests_on_host(int v) const {
    const int u = of(v).update;
    return rests_there(v) ||
           (u >= 0 && g[v].role == value_role::state && plan.assigned[static_cast<std::size_t>(u)].on_host);
  }
  constexpr int fetched(int v, const partition& at, element type) {
    int& there = of(v).on_host;
    if (there < 0) {
      there = allocate(v, at, type, true);
      out[there].on_host = true;
    }
    const int here = allocate(v, at, type, false);
    (once_per_step(v) ? before : out.code).push_back(carried(there, here));
    return here;
  }

  // What forward held of a value it put on the host, as it was when forward had read it last.
  constexpr void bring_back(int v) {
    if (last_use.empty()) {
      last_use.assign(out.buffers.size(), -1);
      for (std::size_t i = 0; i < out.code.size() && !out.code[i].again && g.at(out.code[i].op).when == phase::forward;
           ++i)
        for (const buffer_numbers* some : {&out.code[i].in, &out.code[i].out})
          for (const int b : *some) last_use[static_cast<std::size_t>(out[b].root)] = static_cast<int>(i);
    }
    const int then = of(v).before[0];
    const partition at = out[then].held;
    const element type = out[then].type;
    const int there = allocate(v, at, type, false);
    out[there].on_host = true;
    const bool was = std::exchange(again, false);
    const int reader = std::exchange(operation_now, g[v].producer);
    stores.emplace_back(last_use[static_cast<std::size_t>(out[then].root)], carried(then, there));
    again = true;
    operation_now = reader;
    const int here = allocate(v, at, type, false);
    carry(there, here);
    again = was;
    keep(v, here);
  }

  // Before backward: of weights that are gathered anew only what rests is held, of what is computed anew or rests on
  // the host nothing, as of weights that do.
  constexpr void forget() {
    forward = false;
    for (std::size_t at = 0; at < known_of.size(); ++at) forget(at);
  }
  constexpr void forget(std::size_t at) {
    known& k = known_at(at);
    const int v = value_at(at);
    if (may_rest_on_host(v) || is_recomputed(k, v)) k.before = std::exchange(k.held, {});
    if (rests_there(v) && !once_per_step(v)) k.held = {};
    if (g[v].role == value_role::activation) drop_larger_parts(k);
    if (k.update < 0 || !plan.assigned[static_cast<std::size_t>(k.update)].regather) return;
    const int first = k.held[0];
    k.held.keep_if([&](int b) { return out[b].persistent || out[b].held == out[first].held; });
  }
  // Parts of a sum that are made of what is held without a collective, and take more: backward makes them again.
  constexpr void drop_larger_parts(known& k) const {
    if (k.held.size() < 2) return;
    const buffer& first = out[k.held[0]];
    k.held.keep_if([&](int b) {
      const buffer& mine = out[b];
      bool are_parts = mine.bytes > first.bytes && mine.type == first.type && !mine.persistent;
      for (int axis = 0; axis < mesh.rank(); ++axis)
        are_parts = are_parts && (mine.held.on(axis) == first.held.on(axis) ||
                                  (mine.held.partial[axis].owed && !first.held.partial[axis].owed));
      return !are_parts;
    });
  }
  constexpr int value_at(std::size_t at) const { return touched.empty() ? static_cast<int>(at) : touched[at].id; }

  // Before an update: a weight that rests on the host comes from there once more, unless nothing read another since.
  constexpr void forget_weights(const operation& o, int id) {
    if (o.when != phase::update) return;
    for (const int v : o.operands)
      if (rests_there(v) && !stays_for(v, id)) of(v).held = {};
  }
  constexpr bool stays_for(int v, int update) const {
    for (int earlier = update - 1; earlier >= 0; --earlier)
      for (const int x : g.at(earlier).operands) {
        if (x == v) return g.passes == 1 || g.at(earlier).when == phase::update;
        if (g[x].role == value_role::weight) return false;
      }
    return false;
  }

  constexpr bool is_recomputed(const known& k, int v) const {
    return !forward && !k.from_outside && !k.received && may_be_recomputed(v);
  }
  constexpr void recompute(int v) {
    const int reader = operation_now;
    const bool was = again;
    again = true;
    emit(g[v].producer);
    operation_now = reader;
    again = was;
  }

  // Where they follow.
  constexpr void put_stores() {
    std::sort(stores.begin(), stores.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second.out[0]) < std::pair(b.first, b.second.out[0]);
    });
    std::vector<instruction> code;
    code.reserve(out.code.size() + stores.size());
    auto next = stores.begin();
    for (int i = -1; i < static_cast<int>(out.code.size()); ++i) {
      if (i >= 0) code.push_back(std::move(out.code[static_cast<std::size_t>(i)]));
      for (; next != stores.end() && next->first == i; ++next) code.push_back(std::move(next->second));
    }
    out.code = std::move(code);
    out.end += static_cast<int>(stores.size());
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
    forget_weights(o, id);
    instruction i;
    i.op = id;
    i.again = again;
    i.assigned = a;
    for (int k = 0; k < o.operands.size(); ++k)
      i.in.push(get(o.operands[k], operand_partition(o.r, k, a), read_as(g, o, k)));
    for (int k = 0; k < o.results.size(); ++k) {
      const int b =
          allocate(o.results[k], result_partition(o.r, k, a), stored(g[o.results[k]].type, real_bytes), false);
      if (const int operand = overwritten(o, k); operand >= 0) {
        out[b].root = out[i.in[operand]].root;
        out[b].persistent = out[i.in[operand]].persistent;
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
    const buffer_numbers made = i.out;
    if (o.op->body == op_body::scan) make_handing(out, i, o, [&](long bytes) { return scratch(out[i.in[0]], bytes); });
    out.code.push_back(std::move(i));
    for (int k = 0; k < o.results.size(); ++k)
      if (const int x = overwritten(o, k); x >= 0 && of(o.operands[x]).on_host >= 0)
        carry(made[k], of(o.operands[x]).on_host);
  }
};

}  // namespace cfp::detail
