// The program as operations are lowered into it, and the buffers in which each value is held by then.
#pragma once

#include <cfp/core/shape_error.hpp>
#include <cfp/model/sharding.hpp>
#include <cfp/program/around.hpp>
#include <cfp/program/known_conversions.hpp>
#include <cfp/program/scratch.hpp>

#include <algorithm>
#include <utility>

namespace cfp::inline v0_1::detail {

struct held_buffers {
  const graph& g;
  const mesh_shape& mesh;
  const sharding& plan;
  long real_bytes;
  known_conversions* conversions = nullptr;  // none: found anew
  program out{};
  std::vector<index>
      touched{};  // values, ascending, where the operations are a part of the graph: the others need no room
  struct known {
    buffer_numbers held{};
    int update = -1;  // the operation that overwrites it, or -1
    bool materialised = false, from_outside = false;
    bool received = false;    // from another stage
    int on_host = -1;         // where it rests, if there
    buffer_numbers before{};  // in which forward held what is computed again, or rested on the host
  };
  std::vector<std::pair<int, int>> made_from{};  // buffers of `before` that were converted, ascending, and from which
  std::vector<known> known_of{};                 // each value that is touched
  std::vector<std::vector<known>> of_pass{};     // where all passes are in the code: of each, for what is not `shared`
  std::vector<mark> shared{};                    // there, values that are the same in all of them
  int pass = -1;                                 // there, the one that is lowered
  std::vector<instruction> before{};             // of a step with several passes: weights brought into form once
  std::vector<int> last_use{};                   // of memory, by root: the last instruction of forward
  std::vector<std::pair<int, instruction>> stores{};  // to the host, and the instructions they follow
  int operation_now = -1;
  bool forward = true, again = false;  // the pass; and whether what is lowered was computed in forward before
  bool updates = false;                // after all of several passes

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
  constexpr known& of(int v) { return known_at(place_of(v)); }
  constexpr const known& of(int v) const {
    const std::size_t at = place_of(v);
    return is_shared(at) ? known_of[at] : of_pass[static_cast<std::size_t>(pass)][at];
  }
  constexpr known& known_at(std::size_t at) {
    return is_shared(at) ? known_of[at] : of_pass[static_cast<std::size_t>(pass)][at];
  }
  constexpr bool is_shared(std::size_t at) const { return shared.empty() || shared[at].set; }
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
    b.bytes = bytes_of(type, elements(b.local), real_bytes);
    b.root = static_cast<int>(out.buffers.size());
    b.persistent = persistent;
    if (!shared.empty() && !is_shared(place_of(v))) b.pass = pass;
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
    const compression form = sent_as(g, v);
    if (conversions != nullptr) return (*conversions)(g[v].shape, width(from.type), mesh, from.held, target, form);
    conversion c = convert(from.held, target, g[v].shape, width(from.type), mesh);
    compress(c, form, from.held, [&](const conversion_step& s, const partition& p) {
      return links_alike(s, {g[v].shape, p, width(from.type)}, mesh);
    });
    return c;
  }

  constexpr int convert_to(int v, int from, const partition& target) {
    const conversion c = cheapest(v, out[from], target);
    if (!c.possible) throw shape_error("a partition cannot be converted: a dimension does not divide");
    int at = from;
    for (const conversion_step& s : c.steps) {
      instruction i;
      i.kind = instruction::reshard;
      i.op = operation_now;
      i.again = again;
      i.step = s;
      i.in.push(at);
      const int next = allocate(v, after(out[at].held, s), out[at].type, false);
      i.out.push(next);
      add_scratch(out, i, [&](long bytes) { return scratch(out[at], bytes); });
      (once_per_step(v) ? before : out.code).push_back(std::move(i));
      at = next;
    }
    return keep(v, at);
  }

  // Between memory of the host and of the device.
  constexpr instruction carried(int from, int to) const {
    instruction i;
    i.kind = instruction::carry;
    i.op = operation_now;
    i.again = again;
    i.in.push(from);
    i.out.push(to);
    return i;
  }
  constexpr void carry(int from, int to) { out.code.push_back(carried(from, to)); }

  // What products read of a weight, made from what rests, where it rests.
  constexpr int narrow(int v, int from, element type) {
    instruction i;
    i.kind = instruction::narrow;
    i.op = operation_now;
    i.again = again;
    i.in.push(from);
    const int made = allocate(v, out[from].held, type, false);
    i.out.push(made);
    (g.passes > 1 && !(rests_there(v) && is_gathered_anew(v)) ? before : out.code).push_back(std::move(i));
    return keep(v, made);
  }

  constexpr int nearest(int v, const partition& p, element type) {
    int best = -1;
    conversion least;
    const auto is_it = [&](int b) {
      if (out[b].type != type) return false;
      if (out[b].held == p) return best = b, true;
      const conversion c = cheapest(v, out[b], p);
      if (c.possible &&
          (best < 0 || c.price < least.price || (c.price == least.price && c.steps.size() < least.steps.size()))) {
        best = b;
        least = c;
      }
      return false;
    };
    for (const buffer_numbers* some : {&of(v).before, &of(v).held})  // as in forward, so that sums are the same
      for (const int b : *some)
        if (is_it(b)) return some == &of(v).held ? b : made_again(v, b);
    if (best < 0) throw shape_error("a partition cannot be converted: a dimension does not divide");
    const int from = made_again(v, best), result = convert_to(v, from, p);
    if (forward && (may_be_recomputed(v) || may_rest_on_host(v))) made_from.emplace_back(result, from);
    return result;
  }

  // What holds now what a buffer held in forward.
  constexpr int made_again(int v, int b) {
    for (const int now : of(v).held)
      if (now == b || (out[now].held == out[b].held && out[now].type == out[b].type)) return now;
    const auto at = std::lower_bound(made_from.begin(), made_from.end(), std::pair(b, -1));
    if (at == made_from.end() || at->first != b) return narrow(v, of(v).held[0], out[b].type);
    return convert_to(v, made_again(v, at->second), out[b].held);
  }

  constexpr bool may_be_recomputed(int v) const {
    return g[v].producer >= 0 && plan.assigned[static_cast<std::size_t>(g[v].producer)].recompute;
  }
  constexpr bool may_rest_on_host(int v) const {
    return g[v].producer >= 0 && plan.assigned[static_cast<std::size_t>(g[v].producer)].on_host &&
           g.at(g[v].producer).when == phase::forward;
  }
  constexpr bool is_gathered_anew(int v) const {
    const int u = of(v).update;
    return u >= 0 && plan.assigned[static_cast<std::size_t>(u)].regather;
  }
  // A weight that is on the host but while something reads it.
  constexpr bool rests_there(int v) const {
    const int u = of(v).update;
    return u >= 0 && g[v].role == value_role::weight && plan.assigned[static_cast<std::size_t>(u)].weight_on_host;
  }
  constexpr bool once_per_step(int v) const {
    return g.passes > 1 && g[v].role == value_role::weight && g[v].producer < 0 && !is_gathered_anew(v) &&
           !(updates && rests_there(v)) && !of(v).received;
  }
};

}  // namespace cfp::detail
