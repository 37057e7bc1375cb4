// What is held of forward until backward has read it, by the program that keeps all of it.
#pragma once

#include <cfp/model/saved_values.hpp>
#include <cfp/program/lower.hpp>
#include <cfp/program/target.hpp>

#include <cstddef>
#include <numeric>
#include <vector>

namespace cfp::inline v0_1 {

/// Of one device: what is split keeps as much of the same.
inline saved_values find_saved(const graph& g, const target& on) {
  mesh_shape alone;
  alone.axes.push({name("one"), 1});
  program p = lower(g, alone, sharding::replicated(g), all_operations(g), on.real_bytes);
  if (on.fused != nullptr) fuse(p, g, reads_of(g), *on.fused);
  saved_values out{std::vector<std::vector<int>>(g.values.size()), std::vector<int>(g.operations.size())};
  std::iota(out.unit.begin(), out.unit.end(), 0);
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  // Of operators that one kernel computes together those that take a value; what none of them takes, the last wants.
  const auto add_readers = [&](std::vector<int>& readers, int v, const instruction& i) {
    const std::size_t before = readers.size();
    for (const instruction& part : p.parts(i))
      if (g.at(part.op).operands.contains(v)) readers.push_back(part.op);
    if (readers.size() == before) readers.push_back(i.op);
  };
  std::vector<bool> forward(g.values.size());  // computed there, and stored
  for (const instruction& i : p.code) {
    if (!i.is_operator()) continue;
    const bool back = g.at(i.op).when != phase::forward;
    if (!back)
      for (const int b : i.out) forward[at(p[b].value)] = true;
    if (back)
      for (const int b : i.in)
        if (forward[at(p[b].value)]) add_readers(out.readers[at(p[b].value)], p[b].value, i);
    if (i.fusion < 0 || back) continue;
    const fusion& f = p.fusions[at(i.fusion)];
    if (f.end == static_cast<int>(f.parts.size())) continue;  // backward reads what it needs
    for (const instruction& part : p.parts(i)) out.unit[at(part.op)] = p.parts(i).front().op;
  }
  return out;
}

}  // namespace cfp
