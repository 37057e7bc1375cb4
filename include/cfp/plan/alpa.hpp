// Alpa's intra-operator plan (arXiv 2201.12023), as a baseline: its strategies, its costs (communication alone, by
// bytes), the best plan for them, and its rewriting of all-reduces.
#pragma once

#include <cfp/plan/named.hpp>
#include <cfp/program/program.hpp>
#include <cfp/solve/policy.hpp>

namespace cfp::inline v0_1 {

/// Alpa's cost of a collective, in its own unit. `bytes`: the tensor as held before splitting over the axis. `beta` is
/// 1 on the first axis of a mesh and 0.1 on the second unless the user says otherwise.
inline double alpa_cost(collective_kind kind, double bytes, double n, double beta) {
  const double sent = beta * (n - 1) / n * bytes;
  switch (kind) {
    case collective_kind::all_gather: return 1 + sent + 0.1;
    case collective_kind::all_reduce: return 1 + 2 * sent + 0.01;
    case collective_kind::all_to_all: return 1 + sent / n * (n / 2) + 0.001;
    case collective_kind::reduce_scatter:
    case collective_kind::shift:
    case collective_kind::all_scan:
    case collective_kind::broadcast: return 1 + sent + 0.001;
    case collective_kind::send: break;  // it has none inside of a stage
  }
  return 0;
}

/// Of a step of a conversion; `local`: bytes that a device holds before it. Alpa prices one axis at a time: along
/// several, inner ones carry what is large, as if they were taken one after the other.
inline double alpa_cost(const conversion_step& s, const partition& from, long local, const mesh_shape& mesh) {
  if (!s.communicates()) return 0;
  double whole = static_cast<double>(local), cost = 0;
  if (from.on(s.axis).kind == placement::split) whole *= static_cast<double>(s.devices(mesh));
  auto left = static_cast<double>(s.devices(mesh));
  for (int a = mesh.rank() - 1; a >= 0; --a) {
    if (!s.along(a)) continue;
    const auto n = static_cast<double>(mesh.size(a));
    const double beta = a == 0 ? 1 : 0.1;
    left /= n;
    if (s.collective() == collective_kind::all_reduce && left > 1)
      cost += alpa_cost(collective_kind::reduce_scatter, whole, n, beta) +
              alpa_cost(collective_kind::all_gather, whole, n, beta);
    else cost += alpa_cost(s.collective(), whole, n, beta);
    if (s.collective() != collective_kind::all_to_all) whole /= n;
  }
  return cost;
}

/// Of what a program communicates.
inline double alpa_cost(const program& p) {
  double cost = 0;
  for (const instruction& i : p.code)
    if (i.kind == instruction::reshard) cost += alpa_cost(i.step, p[i.in[0]].held, p[i.in[0]].bytes, p.mesh);
  return cost;
}

namespace detail {

// One split per axis, its sums reduced at once; not of the sequence, which is behind the batch in one dimension of its
// products.
inline bool alpa_offers(const graph& g, const decision& d, std::size_t choice, bool every_axis) {
  if (choice >= d.kept_all()) return false;
  const std::string& how = d.names[choice];
  for (const char* not_offered : {">", "/", "partial", "=sequence"})
    if (how.find(not_offered) != std::string::npos) return false;
  bool contracts = false;
  for (const int o : d.operations)
    contracts = contracts || (g.at(o).when == phase::forward && g.at(o).op->body == op_body::product);
  return !every_axis || !contracts || how.find("=-") == std::string::npos;
}

// A choice as it reads where weights do not rest in pieces.
inline std::string unscattered(const std::string& text) {
  constexpr std::string_view word = "/scattered";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, word.size(), word) == 0) at += word.size();
    else out += text[at++];
  }
  return out;
}

}  // namespace detail

/// Forbids strategies that Alpa does not offer. A contraction is never done twice, unless nothing divides.
inline cost_graph only_alpa(cost_graph costs, const graph& g, const decision_graph& d) {
  for (std::size_t n = 0; n < d.nodes.size(); ++n) {
    if (d.nodes[n].kind != decision::strategy_of_part) continue;
    for (const bool every_axis : {true, false}) {
      bool any = false;
      for (std::size_t c = 0; c < d.nodes[n].choices(); ++c)
        any = any || detail::alpa_offers(g, d.nodes[n], c, every_axis);
      if (!any) continue;
      for (std::size_t c = 0; c < d.nodes[n].choices(); ++c)
        if (!detail::alpa_offers(g, d.nodes[n], c, every_axis))
          costs.nodes[n].time.set(c, std::numeric_limits<double>::infinity());
      break;
    }
  }
  return costs;
}

/// Where an all-reduce of a weight's gradient can be a reduce-scatter, the weight updated in pieces and gathered, it
/// is. `solve_rest` answers what that leaves open (-1).
template <class Solve>
std::vector<int> reduce_scattered(std::vector<int> choices, const decision_graph& d, const Solve& solve_rest) {
  for (std::size_t n = 0; n < d.nodes.size(); ++n) {
    const decision& node = d.nodes[n];
    int& choice = choices[n];
    if (node.kind == decision::rest_of_weight) {
      choice = static_cast<int>(most_split(node));
    } else if (node.kind == decision::gradient_placement) {
      choice = -1;
    } else if (node.kind == decision::strategy_of_part) {
      // Of the choices that differ only in where weights rest, the one scattered over most axes.
      const std::string mine = node.names[static_cast<std::size_t>(choice)];
      for (std::size_t c = 0; c < node.choices(); ++c)
        if (detail::unscattered(node.names[c]) == mine &&
            node.names[c].size() > node.names[static_cast<std::size_t>(choice)].size())
          choice = static_cast<int>(c);
    }
  }
  return solve_rest(choices);
}

}  // namespace cfp
