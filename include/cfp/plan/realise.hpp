// From choices to the program they become, and what each decision has sent for it.
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/plan/plan.hpp>
#include <cfp/program/lower.hpp>
#include <cfp/program/target.hpp>

#include <cstdio>
#include <random>

namespace cfp::inline v0_1 {

/// The program of a sharding in the order of a schedule. `conversions`, of the mesh and at the target's prices, may be
/// kept for more.
inline program lowered(const graph& g, const mesh_shape& mesh, const sharding& shards, const target& on,
                       const schedule& order, known_conversions* conversions) {
  program out = lower(g, mesh, shards, all_operations(g), on.real_bytes, false, {}, conversions);
  on.complete(out, g, order);
  return out;
}

/// Makes the program of a plan.
inline plan realise(std::string label, const graph& g, const mesh_shape& mesh, const decision_graph& d,
                    std::vector<int> choices, const target& on = {}, const schedule& order = {}) {
  plan out;
  out.name = std::move(label);
  out.choices = std::move(choices);
  out.shards = shard(g, d, out.choices);
  known_conversions conversions(on.prices);
  out.code = lowered(g, mesh, out.shards, on, order, &conversions);
  return out;
}

/// A choice for each decision, drawn at random.
inline std::vector<int> random_choices(const decision_graph& d, std::mt19937& random) {
  std::vector<int> choices;
  for (const decision& n : d.nodes) choices.push_back(static_cast<int>(random() % n.choices()));
  return choices;
}

namespace detail {
inline constexpr const char* decision_kinds[] = {"strategy of ", "rest of ", "forms of ", "placement of ", ""};
}
/// The label of a decision in messages: "strategy of h.0.attn.c_attn.linear".
inline std::string decision_label(const decision& n) { return detail::decision_kinds[n.kind] + n.label; }
/// The same of what it decides: of several alike all have one.
inline std::string decision_title(const decision& n) { return detail::decision_kinds[n.kind] + n.title; }

/// What each decision's operations have sent for them: a conversion belongs to the operation it is made for, and what
/// crosses from a stage to another to the one that reads it.
inline std::vector<collective_count> sent_for(const plan& p, const graph& g, const decision_graph& d) {
  std::vector<std::size_t> owner(g.operations.size());
  for (std::size_t n = 0; n < d.nodes.size(); ++n)
    for (int o : d.nodes[n].operations) owner[static_cast<std::size_t>(o)] = n;
  std::vector<collective_count> out(d.nodes.size());
  const graph& of = p.on_ranks().graph_of(g);
  for (const program& code : p.programs())
    for (std::size_t i = 0; i < code.code.size(); ++i)
      if (const auto o = static_cast<std::size_t>(code.code[i].op); o < owner.size())
        count_collective(code, of, i, out[owner[o]]);
  return out;
}

/// "all_reduce x2 1.50 MiB", or nothing.
inline std::string describe(const collective_count& n) {
  std::string out;
  for (std::size_t k = 0; k < collective_names.size(); ++k)
    if (n.calls[k] > 0)
      out.append(out.empty() ? "" : ", ")
          .append(collective_names[k])
          .append(n.calls[k] > 1 ? " x" + std::to_string(n.calls[k]) : "");
  if (out.empty()) return out;
  char size[32];
  std::snprintf(size, sizeof size, " %.2f MiB", static_cast<double>(n.total_bytes()) / 1048576);
  return out + size;
}

}  // namespace cfp
