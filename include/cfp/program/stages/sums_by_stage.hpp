// Gradients of weights that several stages of a pipeline read, such as an embedding that the head shares: each stage
// adds up its own over the micro-batches, and they are sent once, before the updates.
#pragma once

#include <cfp/model/sharding.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/program/stages/stage_operations.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

class sums_by_stage {
 public:
  sums_by_stage(graph& g, sharding& plan, const stage_operations& stages)
      : g_(g), plan_(plan), stages_(stages), before_(g.size()) {}

  void run() {
    for (int o = 0; o < before_; ++o)
      if (g_.at(o).op->body == op_body::accumulate && g_.at(o).when == phase::backward) split(o);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // The gradients a sum is of.
  void find_parts(int v, int weight, std::map<int, std::vector<int>>& by_stage) {
    const int maker = g_[v].producer;
    if (maker >= 0 && g_.at(maker).op == &info<add_t> && g_.at(maker).hub == weight) {
      add_ = maker;
      for (const int part : g_.at(maker).operands) find_parts(part, weight, by_stage);
    } else {
      by_stage[maker < 0 ? 0 : stages_.unsliced(maker)].push_back(v);
    }
  }

  void split(int o) {
    const int weight = g_.at(o).hub, owner = stages_.unsliced(o);
    std::map<int, std::vector<int>> by_stage;
    find_parts(g_.at(o).operands[1], weight, by_stage);
    if (by_stage.size() < 2 || by_stage.find(owner) == by_stage.end()) return;
    const int mine = g_.at(o).results[0];
    int total = mine;
    for (const auto& [stage, parts] : by_stage) {
      int sum = parts[0];
      for (std::size_t k = 1; k < parts.size(); ++k) sum = added(sum, parts[k], phase::backward);
      if (stage == owner) g_.at(o).operands[1] = sum;
      else total = added(total, added_up(o, sum), phase::update);
    }
    for (int u = 0; u < before_; ++u)
      for (int& v : g_.at(u).operands)
        if (g_.at(u).when == phase::update && v == mine) v = total;
  }

  int like(int v, const char* suffix, bool wide) {
    value made = g_[v];
    made.label = named_at<long_name>(made.at, made.label, suffix);
    made.producer = -1;
    if (wide) made.type = element::wide;
    plan_.materialised.emplace_back();
    return g_.add(made);
  }
  int added(int a, int b, phase when) {
    operation o = g_.at(add_);
    const bool wide = g_[a].type == element::wide || g_[b].type == element::wide;
    const assignment split = when == phase::update ? plan_.assigned[at(g_[a].producer)] : plan_.assigned[at(add_)];
    o.when = when;
    o.operands = {{a, b}, 2};
    o.results = {{like(a, ".of_stages", wide)}, 1};
    plan_.assigned.push_back(split);
    return g_.at(g_.add(o)).results[0];
  }
  // Over the micro-batches, as the weight's own are.
  int added_up(int as, int gradient) {
    operation o = g_.at(as);
    o.hub = gradient;
    o.operands = {{like(o.operands[0], ".elsewhere", true), gradient}, 2};
    o.results = {{like(o.results[0], ".elsewhere", true)}, 1};
    plan_.assigned.push_back(plan_.assigned[at(as)]);
    return g_.at(g_.add(o)).results[0];
  }

  graph& g_;
  sharding& plan_;
  const stage_operations& stages_;
  const int before_;  // operations
  int add_ = -1;      // an addition of such gradients
};

}  // namespace detail

/// Changes a graph and what is said of it. Nothing, where no weight is read by two stages.
inline void add_up_by_stage(graph& g, sharding& plan, const stage_operations& stages) {
  detail::sums_by_stage(g, plan, stages).run();
}

}  // namespace cfp
