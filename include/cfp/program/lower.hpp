// Lowering: a training graph and a sharding become one program for all ranks. A conversion is inserted wherever a
// tensor is held otherwise than it is needed, once per tensor and partition.
#pragma once

#include <cfp/program/count_collectives.hpp>
#include <cfp/program/lowerer.hpp>

#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A tensor that is wanted in a partition once the operations before `before` have run.
struct delivery {
  int value = -1;
  partition held;
  int before = 0;
};

/// Lowers the given operations (ascending). What they need from outside is given in the partition its own update
/// holds it in, else as first needed (in every form needed, if `forms_given`). `real_bytes` is the size of a number;
/// `conversions`, if given, spares finding again what is known.
constexpr program lower(const graph& g, const mesh_shape& mesh, const sharding& plan,
                        const std::vector<int>& operations, long real_bytes, bool forms_given = false,
                        const std::vector<delivery>& wanted = {}, known_conversions* conversions = nullptr) {
  detail::lowerer l{{g, mesh, plan, real_bytes, conversions}, forms_given};
  std::vector<index> delivered;
  for (const delivery& d : wanted) delivered.push_back({d.value});
  l.make_room(operations, delivered);
  l.out.mesh = mesh;
  l.out.real_bytes = real_bytes;
  l.out.buffers.reserve(4 * operations.size());
  l.out.code.reserve(2 * operations.size());
  for (int o : operations)
    for (int k = 0; k < g.at(o).results.size(); ++k)
      if (const int x = overwritten(g.at(o), k); x >= 0) l.of(g.at(o).operands[x]).update = o;
  bool computes_loss = false;
  const auto finish_pass = [&] {
    if (computes_loss) l.out.loss = l.get(g.loss, partition::replicated(0), g[g.loss].type);
    l.out.end = static_cast<int>(l.out.code.size());
  };
  for (int o : operations) {
    if (l.forward && g.at(o).when != phase::forward) l.forget();
    if (g.passes > 1 && !l.updates && g.at(o).when == phase::update) {
      l.updates = true;
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
  if (!l.updates) finish_pass();
  if (!l.stores.empty()) l.put_stores();
  l.out.passes = g.passes;
  l.out.begin = static_cast<int>(l.before.size());
  l.out.end += l.out.begin;
  if (!l.before.empty()) {
    for (instruction& i : l.out.code) l.before.push_back(std::move(i));
    l.out.code = std::move(l.before);
  }
  return std::move(l.out);
}

constexpr std::vector<int> all_operations(const graph& g) {
  std::vector<int> ids;
  for (int i = 0; i < g.size(); ++i) ids.push_back(i);
  return ids;
}

}  // namespace cfp
