// The costs of a run of segments alone.
#pragma once

#include <cfp/plan/stages/stage_pricing.hpp>
#include <cfp/solve/fewer_choices.hpp>
#include <cfp/solve/stages.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cfp::inline v0_1 {

/// The cost graph of some segments alone; what they exchange with others is none of it.
struct run_part {
  const stage_costs* of = nullptr;
  const fewer_choices* left = nullptr;    ///< of their decisions; none: all
  std::vector<std::size_t> nodes, edges;  ///< of all
  cost_graph costs;                       ///< milliseconds of a step; memory with one micro-batch under way

  /// Bytes that rest there at least.
  double least_resting() const {
    double out = 0;
    for (const std::size_t n : nodes) {
      const shared_table& bytes = of->resting.nodes[n].time;
      if (!bytes.empty()) out += *std::min_element(bytes.begin(), bytes.end());
    }
    return out;
  }

  /// Without what a step does once.
  cost_graph in_passes() const {
    cost_graph out = costs;
    const auto sum = [](const shared_table& a, const shared_table& b) {
      std::vector<double> ms = a;
      for (std::size_t i = 0; i < ms.size(); ++i) ms[i] += b[i];
      return ms;
    };
    for (std::size_t n = 0; n < nodes.size(); ++n)
      out.nodes[n].time = sum(of->forward.nodes[nodes[n]].time, of->backward.nodes[nodes[n]].time);
    for (std::size_t e = 0; e < edges.size(); ++e)
      out.edges[e].time = sum(of->forward.edges[edges[e]].time, of->backward.edges[edges[e]].time);
    return out;
  }

  /// What choices, one per node, are of their decisions.
  std::vector<int> of_decisions(std::vector<int> choices) const {
    for (std::size_t n = 0; left != nullptr && n < nodes.size(); ++n) choices[n] = left->was(nodes[n], choices[n]);
    return choices;
  }

  /// With so many micro-batches under way.
  cost_graph with(int held) const {
    cost_graph out = costs;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      std::vector<std::int64_t>& bytes = out.nodes[n].memory;
      for (std::size_t c = 0; c < bytes.size(); ++c) bytes[c] = resting(n, c) + held * (bytes[c] - resting(n, c));
    }
    return out;
  }

  /// What choices take, one per node, in a step of so many micro-batches.
  stage_option option(const std::vector<int>& choices, int micro_batches) const {
    stage_option out;
    double transient = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const auto c = static_cast<std::size_t>(choices[n]);
      out.forward += of->forward.nodes[nodes[n]].time[c];
      out.backward += of->backward.nodes[nodes[n]].time[c];
      out.update += of->once.nodes[nodes[n]].time[c];
      const auto rests = static_cast<double>(resting(n, c));
      out.always += rests, out.kept += static_cast<double>(costs.nodes[n].memory[c]) - rests;
      if (!costs.nodes[n].transient.empty())
        transient = std::max(transient, static_cast<double>(costs.nodes[n].transient[c]));
    }
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const auto a = static_cast<std::size_t>(costs.edges[e].from), b = static_cast<std::size_t>(costs.edges[e].to);
      const std::size_t i =
          static_cast<std::size_t>(choices[a]) * costs.nodes[b].time.size() + static_cast<std::size_t>(choices[b]);
      out.forward += of->forward.edges[edges[e]].time[i];
      out.backward += of->backward.edges[edges[e]].time[i];
      out.update += of->once.edges[edges[e]].time[i];
    }
    out.forward /= micro_batches, out.backward /= micro_batches;
    out.always += transient;
    return out;
  }

 private:
  std::int64_t resting(std::size_t n, std::size_t choice) const {
    const shared_table& bytes = of->resting.nodes[nodes[n]].time;
    return static_cast<std::int64_t>(bytes.empty() ? 0 : bytes[choice]);
  }
};

}  // namespace cfp
