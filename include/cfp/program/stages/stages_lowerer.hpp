// All ranks of a pipeline lowered together: each its slots, and then the updates, in one order.
#pragma once

#include <cfp/program/stages/stage_lowerer.hpp>
#include <cfp/program/target.hpp>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Where a model is cut, and what each rank does when.
struct stage_layout {
  std::vector<int> first;           ///< forward operations that stages but the first begin with
  pipeline_schedule schedule{};     ///< all stages of all micro-batches, each updated once
  std::vector<stage_cost> costs{};  ///< per stage, for the order of transfers; none: forward 1, backward 2
};

namespace detail {

class stages_lowerer {
 public:
  stages_lowerer(const graph& g, const mesh_shape& mesh, const sharding& plan, const stage_layout& layout,
                 const target& on)
      : g_(g), mesh_(mesh), plan_(plan), s_(layout.schedule), conversions_(on.prices),
        stages_(g, layout.first, s_.slices), crossings_(g, stages_, s_, simulate(s_, costs_of(layout))) {
    for (int r = 0; r < s_.count(); ++r) ranks_.emplace_back(g_, mesh_, plan_, on.real_bytes, &conversions_, r);
    for (int o = 0; o < g_.size(); ++o)
      if (g_.at(o).when == phase::update) updates_.push_back(o);
  }

  std::vector<program> run() {
    for (int r = 0; r < s_.count(); ++r) ranks_[at(r)].make_room(operations_of(r), s_.micro_batches, loss());
    for (int r = 0; r < s_.count(); ++r) run_slots(r);
    for (stage_lowerer& r : ranks_) r.enter_updates();
    add_up();
    for (const int o : updates_) update(o);
    leave_loss();
    std::vector<program> out;
    for (stage_lowerer& r : ranks_) out.push_back(r.finish());
    return out;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // Nothing takes no time, so that what waits for something begins later.
  static std::vector<stage_cost> costs_of(const stage_layout& layout) {
    std::vector<stage_cost> out = layout.costs;
    if (out.empty()) out.resize(at(layout.schedule.stages));
    double most = 0;
    for (const stage_cost& c : out) most = std::max({most, c.forward, c.backward_inputs, c.backward_weights});
    const double least = most > 0 ? 1e-6 * most : 1;
    for (stage_cost& c : out)
      for (double* ms : {&c.forward, &c.backward_inputs, &c.backward_weights}) *ms = std::max(*ms, least);
    return out;
  }

  std::vector<int> operations_of(int rank) const {
    std::vector<int> out;
    for (int stage = 0; stage < s_.stages; ++stage) {
      const std::vector<int> ranks = crossings_.ranks_of(stage);
      if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
      for (const slot::kind_t kind : {slot::forward, slot::backward})
        out.insert(out.end(), stages_.in(kind, stage).begin(), stages_.in(kind, stage).end());
    }
    for (const int o : updates_)
      if (crossings_.owner(stages_.of(o)) == rank) out.push_back(o);
    std::sort(out.begin(), out.end());
    return out;
  }

  // Slots, with what is received before them and sent after.
  void run_slots(int rank) {
    std::vector<const crossing*> mine;
    for (const crossing& c : crossings_.all())
      if (c.from == rank || c.to == rank) mine.push_back(&c);
    auto next = mine.begin();
    const std::vector<slot>& slots = s_.ranks[at(rank)];
    std::vector<bool> begun(at(s_.stages));
    for (int k = 0; k <= static_cast<int>(slots.size()); ++k) {
      const bool over = k == static_cast<int>(slots.size());
      for (; next != mine.end() && (over || is_due(**next, rank, k)); ++next) cross(**next, rank);
      if (over || slots[at(k)].kind == slot::update) continue;
      const slot& x = slots[at(k)];
      const bool adds = std::any_of(stages_.in(x.kind, x.stage).begin(), stages_.in(x.kind, x.stage).end(),
                                    [&](int o) { return g_.at(o).op->body == op_body::accumulate; });
      const bool begins = adds && !begun[at(x.stage)];
      begun[at(x.stage)] = begun[at(x.stage)] || adds;
      ranks_[at(rank)].enter(x.micro_batch, x.kind == slot::forward, begins);
      for (const int o : stages_.in(x.kind, x.stage)) ranks_[at(rank)].run(o);
    }
  }
  bool is_due(const crossing& c, int rank, int slot_now) const {
    if (c.from == rank) return c.made < slot_now;
    return std::min(c.needed, crossings_.slot_at(rank, c.when)) <= slot_now;
  }
  void cross(const crossing& c, int rank) {
    const element type = read_as(g_, g_.at(c.reader), c.operand);
    const partition held = form_of(c);
    if (c.from == rank) ranks_[at(rank)].send(c.value, c.pass, held, type, c.to, c.reader);
    else ranks_[at(rank)].receive(c.value, c.pass, held, type, c.from, c.reader);
  }

  // Which form costs least: to make where it is from, to send, and to make of it what is needed.
  partition form_of(const crossing& c) const {
    const value& v = g_[c.value];
    const partition made = made_as(c.value),
                    needed = operand_partition(g_.at(c.reader).r, c.operand, plan_.assigned[at(c.reader)]);
    const long width = v.width(real_bytes());
    partition best = needed;
    double least = -1;
    const auto consider = [&](const partition& p) {
      const conversion there = convert(made, p, v.shape, width, mesh_),
                       here = convert(p, needed, v.shape, width, mesh_);
      if (!there.possible || !here.possible) return;
      const double cost = static_cast<double>(there.price) + static_cast<double>(here.price) +
                          static_cast<double>(elements(local_shape(p, v.shape, mesh_)) * width);
      if (least < 0 || cost < least) least = cost, best = p;
    };
    consider(needed);
    consider(made);
    for (const partition& p : plan_.materialised[at(c.value)]) consider(p);
    return best;
  }
  long real_bytes() const { return ranks_.front().real_bytes(); }
  // How its maker leaves a tensor, or how a weight rests.
  partition made_as(int v) const {
    const int maker = g_[v].producer;
    if (maker >= 0) {
      const operation& o = g_.at(maker);
      return result_partition(o.r, o.results.find(v), plan_.assigned[at(maker)]);
    }
    for (const int u : updates_)
      if (const int k = g_.at(u).operands.find(v); k >= 0)
        return operand_partition(g_.at(u).r, k, plan_.assigned[at(u)]);
    return partition::replicated(g_[v].rank());
  }

  // Where several ranks run one stage the one whose weights it has gets all sums of gradients.
  void add_up() {
    for (int o = 0; o < g_.size(); ++o) {
      if (g_.at(o).op->body != op_body::accumulate) continue;
      const int owner = crossings_.owner(stages_.of(o)), sum = g_.at(o).results[0];
      for (const int r : crossings_.ranks_of(stages_.of(o))) {
        if (r == owner) continue;
        ranks_[at(r)].send(sum, 0, made_as(sum), element::wide, owner, o);
        ranks_[at(owner)].add_up(o, made_as(sum), element::wide, r);
      }
    }
  }
  // What it reads first.
  void update(int o) {
    if (!updated_.insert(o).second) return;
    for (const int v : g_.at(o).operands)
      if (const int maker = g_[v].producer; maker >= 0 && g_.at(maker).when == phase::update) update(maker);
    const int rank = crossings_.owner(stages_.of(o));
    for (int k = 0; k < g_.at(o).operands.size(); ++k) {
      const int v = g_.at(o).operands[k], maker = g_[v].producer;
      const int from = maker < 0 ? rank : crossings_.owner(stages_.of(maker));
      if (from == rank || !received_.insert({v, rank}).second) continue;
      const element type = read_as(g_, g_.at(o), k);
      const partition held = operand_partition(g_.at(o).r, k, plan_.assigned[at(o)]);
      ranks_[at(from)].send(v, 0, held, type, rank, o);
      ranks_[at(rank)].receive(v, 0, held, type, from, o);
    }
    ranks_[at(rank)].run(o);
  }
  int loss() const {
    for (const operation& o : g_.operations)
      if (o.op->body == op_body::accumulate && o.hub == g_.loss) return o.results[0];
    return g_.loss;  // of one micro-batch
  }
  void leave_loss() {
    const int v = loss(), maker = g_[v].producer, owner = crossings_.owner(stages_.of(maker));
    const partition whole = partition::replicated(0);
    ranks_[at(owner)].leave_loss(ranks_[at(owner)].get(v, whole, g_[v].type));
    for (int r = 0; r < s_.count(); ++r) {
      if (r == owner) continue;
      ranks_[at(owner)].send(v, 0, whole, g_[v].type, r, maker);
      ranks_[at(r)].leave_loss(ranks_[at(r)].receive(v, 0, whole, g_[v].type, owner, maker));
    }
  }

  const graph& g_;
  const mesh_shape& mesh_;
  const sharding& plan_;
  const pipeline_schedule& s_;
  known_conversions conversions_;
  const stage_operations stages_;
  const stage_crossings crossings_;
  std::vector<int> updates_;
  std::vector<stage_lowerer> ranks_;
  std::set<int> updated_;                   // operations
  std::set<std::pair<int, int>> received_;  // in updates: value and rank
};

}  // namespace detail

}  // namespace cfp
