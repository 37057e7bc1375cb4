// Which stage of a pipeline runs which operation of a training graph, and in which slot.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/op/optimizer.hpp>
#include <cfp/pipeline/pipeline_schedule.hpp>
#include <cfp/program/readers.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// The same graph with one operation more, which adds up the loss of a step's micro-batches; its result is the last
/// value. For one micro-batch the graph as it is.
inline graph with_summed_loss(graph g) {
  if (g.passes == 1) return g;
  operation o;
  o.op = &info<accumulate_t>;
  o.r = parse(accumulate_t::rule_source, 0);
  o.when = phase::backward;
  o.hub = g.loss;
  const auto made = [&](const char* suffix) {
    value v = g[g.loss];
    v.label = named_at<long_name>(v.at, v.label, suffix);
    v.type = element::wide;
    v.role = value_role::accumulator;
    v.producer = -1;
    v.of = g.loss;
    return g.add(v);
  };
  o.operands = {{made(".accumulated"), g.loss}, 2};
  o.results.push(made(".all"));
  g.add(o);
  return g;
}

/// A chain of stages: what each computes of a graph.
class stage_operations {
 public:
  /// Stage s begins with forward operation `first[s - 1]`; throws bad_input unless these ascend and there are such.
  /// Backward runs where forward did, what weights need where the first operation is that reads them.
  /// Of `slices` stages in turn, which are of one place, sums of gradients are made as their parts come.
  stage_operations(const graph& g, const std::vector<int>& first, int slices = 1)
      : g_(g), slices_(slices), stage_(g.operations.size()) {
    for (std::size_t k = 0; k < first.size(); ++k)
      if (first[k] <= (k == 0 ? 0 : first[k - 1]) || first[k] >= g.size() || g.at(first[k]).when != phase::forward)
        throw bad_input("stage " + std::to_string(k + 1) + " begins with operation " + std::to_string(first[k]) +
                        ": stages begin with forward operations, each after the one before");
    std::vector<int> first_reader(g.values.size(), -1);
    for (int o = 0; o < g.size(); ++o) {
      int& mine = stage_[at(o)];
      if (g.at(o).when == phase::forward)
        mine = static_cast<int>(std::upper_bound(first.begin(), first.end(), o) - first.begin());
      else if (g.at(o).origin >= 0) mine = stage_[at(g.at(o).origin)];
      else mine = of_sum(g.at(o), first_reader);
      for (const int v : g.at(o).operands)
        if (first_reader[at(v)] < 0) first_reader[at(v)] = o;
    }
    slots_.resize(first.size() + 1);
    const std::vector<std::vector<int>> read_by = consumers(g);
    const std::vector<bool> used = used_operations(read_by);
    std::vector<bool> placed(g.operations.size());
    const auto place = [&](const auto& self, int o) -> void {
      if (!used[at(o)] || placed[at(o)] || g.at(o).when == phase::update) return;
      placed[at(o)] = true;
      for (const int v : g.at(o).operands)
        if (g[v].producer > o) self(self, g[v].producer);  // that was added later
      slots_[at(of(o))][g.at(o).when == phase::forward ? slot::forward : slot::backward].push_back(o);
    };
    for (int o = 0; o < g.size(); ++o) place(place, o);
    halve(read_by);
  }

  int stages() const { return static_cast<int>(slots_.size()); }
  int of(int operation) const { return stage_[at(operation)]; }
  /// The same where slices of a stage are one.
  int unsliced(int operation) const { return stage_[at(operation)] / slices_; }
  /// Those of a slot, in an order in which they can run; of an update none.
  const std::vector<int>& in(slot::kind_t kind, int stage) const { return slots_[at(stage)][kind]; }
  /// The slot a forward or backward operation is in, where backward is in halves, or is not.
  slot::kind_t slot_of(int operation, bool halves) const {
    if (g_.at(operation).when == phase::forward) return slot::forward;
    if (!halves) return slot::backward;
    return waited_for_[at(operation)] ? slot::backward_inputs : slot::backward_weights;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // Of a sum of gradients where all its parts are, if that is one stage, else where what it is the gradient of is made,
  // or first read. Of what belongs to nothing, where what it reads last is made.
  int of_sum(const operation& o, const std::vector<int>& first_reader) const {
    int where = -1, last = -1;
    for (const int v : o.operands)
      if (const int p = g_[v].producer; p >= 0) {
        const int mine = stage_[at(p)];  // backward of a slice follows that of the next
        where = last < 0 ? mine : where >= 0 && mine / slices_ == where / slices_ ? std::min(mine, where) : -1;
        last = p;
      }
    const bool sums = o.when == phase::backward && o.op->body != op_body::accumulate;
    if ((sums && where >= 0) || o.hub < 0) return last < 0 ? 0 : stage_[at(last)];
    const int maker = g_[o.hub].producer >= 0 ? g_[o.hub].producer : first_reader[at(o.hub)];
    return maker < 0 ? 0 : stage_[at(maker)];
  }

  // Those whose results are read, or last.
  std::vector<bool> used_operations(const std::vector<std::vector<int>>& read_by) const {
    std::vector<bool> out(g_.operations.size());
    for (int o = g_.size() - 1; o >= 0; --o) {
      bool used = g_.at(o).when == phase::update || g_.at(o).op->body == op_body::accumulate;
      for (const int v : g_.at(o).results) {
        used = used || v == g_.loss;
        for (const int r : read_by[at(v)]) used = used || r < o || out[at(r)];  // before it: only what was added later
      }
      out[at(o)] = used;
    }
    return out;
  }

  // What others wait for, and what that needs, is the half for inputs.
  void halve(const std::vector<std::vector<int>>& read_by) {
    waited_for_.resize(g_.operations.size());
    for (int o = g_.size() - 1; o >= 0; --o) {
      const operation& mine = g_.at(o);
      if (mine.when != phase::backward || mine.op->body == op_body::accumulate) continue;
      for (const int v : mine.results)
        for (const int r : read_by[at(v)]) {
          const operation& reader = g_.at(r);
          if (reader.when != phase::backward || reader.op->body == op_body::accumulate) continue;
          const bool follows = reader.origin >= 0 && reader.origin != mine.origin;
          if (follows || of(r) != of(o) || waited_for_[at(r)]) waited_for_[at(o)] = true;
        }
    }
    for (auto& stage : slots_)
      for (const int o : stage[slot::backward])
        stage[waited_for_[at(o)] ? slot::backward_inputs : slot::backward_weights].push_back(o);
  }

  const graph& g_;
  int slices_;
  std::vector<int> stage_;
  std::vector<std::array<std::vector<int>, 5>> slots_;  // [stage][kind]
  std::vector<bool> waited_for_;                        // per operation: others do, in backward
};

}  // namespace cfp
