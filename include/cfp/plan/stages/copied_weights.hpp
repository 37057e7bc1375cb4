// Weights that rest in another segment than it is that reads them, such as an embedding that the head shares: a stage
// is sent a copy for each step, and adds up its own gradients.
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/plan/stages/stage_pricing.hpp>
#include <cfp/plan/stages/stage_segments.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class copied_weights {
 public:
  copied_weights(const graph& g, const stage_segments& segments, const mesh_shape& mesh, long real_bytes)
      : g_(g), segments_(segments), mesh_(mesh), real_bytes_(real_bytes) {
    for (int o = 0; o < g.size(); ++o)
      for (const int v : g.at(o).operands)
        if (g[v].role == value_role::weight && g[v].producer < 0) rests_.emplace(v, segments.of_operation[at(o)]);
    for (int o = 0; o < g.size(); ++o)
      if (g.at(o).op->body == op_body::accumulate && g.at(o).when == phase::backward && g.at(o).hub >= 0)
        find_gradients(g.at(o).operands[1], g.at(o).hub);
  }

  /// Counts what rests of them where they are read, by the choices of decisions, and what it takes to send so many
  /// bytes once a step, in milliseconds.
  void count(const decision_graph& d, const std::function<double(double bytes)>& ms, stage_costs& costs) const {
    for (std::size_t n = 0; n < d.nodes.size(); ++n) {
      if (d.nodes[n].kind != decision::strategy_of_part) continue;
      const std::vector<std::pair<std::size_t, int>> read = read_from_elsewhere(d.nodes[n]);
      if (read.empty()) continue;
      std::vector<std::int64_t>& memory = costs.whole.nodes[n].memory;
      std::vector<double> sent, sending;
      for (std::size_t c = 0; c < d.nodes[n].choices(); ++c) {
        const long bytes = bytes_of(d.nodes[n], c, read);
        if (c < memory.size()) memory[c] += bytes;
        sent.push_back(static_cast<double>(bytes)), sending.push_back(ms(sent.back()));
      }
      add(costs.resting.nodes[n].time, sent);
      add(costs.whole.nodes[n].time, sending), add(costs.once.nodes[n].time, sending);
    }
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  static void add(shared_table& to, const std::vector<double>& some) {
    std::vector<double> sums = to.all();
    sums.resize(some.size());
    for (std::size_t c = 0; c < some.size(); ++c) sums[c] += some[c];
    to = std::move(sums);
  }

  void find_gradients(int v, int weight) {
    const int maker = g_[v].producer;
    if (maker >= 0 && g_.at(maker).op == &info<add_t> && g_.at(maker).hub == weight)
      for (const int part : g_.at(maker).operands) find_gradients(part, weight);
    else gradient_of_.emplace(v, weight);
  }
  bool is_elsewhere(int weight, int operation) const {
    const int there = rests_.at(weight), here = segments_.of_operation[at(operation)];
    return there >= 0 && here >= 0 && there != here;
  }
  // Operations of a part, by their place in it, and the weight from elsewhere that they read or have a gradient of.
  std::vector<std::pair<std::size_t, int>> read_from_elsewhere(const decision& part) const {
    std::vector<std::pair<std::size_t, int>> out;
    for (std::size_t i = 0; i < part.operations.size(); ++i) {
      const operation& o = g_.at(part.operations[i]);
      if (o.when == phase::update) continue;
      for (const int v : o.operands)
        if (g_[v].role == value_role::weight && g_[v].producer < 0 && is_elsewhere(v, part.operations[i]))
          out.emplace_back(i, v);
      for (const int v : o.results)
        if (const auto of = gradient_of_.find(v);
            of != gradient_of_.end() && is_elsewhere(of->second, part.operations[i]))
          out.emplace_back(i, v);
    }
    return out;
  }
  long bytes_of(const decision& part, std::size_t choice, const std::vector<std::pair<std::size_t, int>>& read) const {
    std::map<int, long> most;  // of each tensor; it may be there in several forms
    for (const auto& [i, v] : read) {
      const operation& o = g_.at(part.operations[i]);
      const int k = o.operands.find(v);
      const partition held = k >= 0 ? operand_partition(o.r, k, part.assigned[choice][i])
                                    : result_partition(o.r, o.results.find(v), part.assigned[choice][i]);
      const long width = k >= 0 ? g_[v].width(real_bytes_) : std::max(static_cast<long>(sizeof(float)), real_bytes_);
      long& bytes = most[v];
      bytes = std::max(bytes, elements(local_shape(held, g_[v].shape, mesh_)) * width);
    }
    long sum = 0;
    for (const auto& [v, bytes] : most) sum += bytes;
    return sum;
  }

  const graph& g_;
  const stage_segments& segments_;
  const mesh_shape& mesh_;
  const long real_bytes_;
  std::map<int, int> rests_;        // of each weight, the segment that reads it first
  std::map<int, int> gradient_of_;  // a weight, of those that are added up
};

}  // namespace cfp::inline v0_1::detail
