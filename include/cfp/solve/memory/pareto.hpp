#pragma once

// Elimination with a memory limit: an entry of a table is not one number but the set of partial plans none of
// which is beaten by another in time, sum of memory and largest transient together. A bound from the price of
// memory (memory_price.hpp) leaves few of them alive.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <cfp/solve/exact/elimination.hpp>
#include <cfp/solve/memory/budget.hpp>
#include <cfp/solve/memory/label.hpp>
#include <cfp/solve/memory/label_sets.hpp>
#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

struct pareto_outcome {
  bool complete = false;        // the budget sufficed
  plan_indices plan;            // the fastest plan found below the target; empty if none
  double open = infinite_time;  // least bound of what was cut off because of `max_labels`
};

class pareto_search {
 public:
  /// `e` is exact, was run at `price`, and knows `through`. `capacity` bounds sum plus largest transient,
  /// base excluded; every transient of `p` is at least `floor`.
  pareto_search(const problem& p, const elimination& e, double price, std::int64_t capacity, std::int64_t floor,
                double max_labels_in_all, work_meter& meter)
      : p_(p), e_(e), price_(price), capacity_(capacity), floor_(floor), max_in_all_(std::min(max_labels_in_all, 4e9)),
        meter_(meter), sets_(e.layout()) {}

  /// The fastest plan below `target`, exactly if nothing was cut off: about `max_labels` stay in a set at
  /// most. Stops, incomplete, after `max_work` steps.
  pareto_outcome run(double target, std::size_t max_labels, double max_work) {
    stop_at_ = meter_.left() - max_work;
    ceiling_ = target + price_ * static_cast<double>(capacity_);
    max_labels_ = max_labels;
    open_ = infinite_time;
    sets_.clear();
    pareto_outcome outcome;
    for (const elimination_step& step : e_.layout().steps) {
      if (!eliminate(step)) return outcome;
    }
    std::vector<label> whole{{0, 0, 0, floor_, 0, no_label, no_label}};
    for (const std::size_t root : e_.layout().roots) {
      whole = combined(whole, sets_.at(e_.layout().steps[root].message), e_.total());
      if (spent()) return outcome;
      shrink(whole, e_.total());
      sets_.append_traces(whole);
    }
    outcome.complete = true;
    outcome.open = open_;
    const auto best =
        std::min_element(whole.begin(), whole.end(), [](const label& a, const label& b) { return a.time < b.time; });
    if (best != whole.end()) outcome.plan = sets_.plan_of(*best, p_.nodes.size());
    return outcome;
  }

 private:
  /// Whether a label can be left out: no plan with it is within the capacity and faster than the target.
  [[nodiscard]] bool hopeless(double least_total, const label& l) const {
    return l.memory + l.transient > capacity_ ||
           !(least_total + l.excess + price_ * static_cast<double>(l.transient) < ceiling_);
  }

  [[nodiscard]] bool spent() const { return meter_.left() <= std::max(0.0, stop_at_); }

  bool eliminate(const elimination_step& step) {
    buckets_.resize(std::max(buckets_.size(), step.width));
    for (row_walker walker(step); !walker.done(); walker.next()) {
      const std::size_t place = step.message + walker.row() * step.width;
      if (!row_is_alive(place, step.width)) continue;
      for (std::size_t c = 0; c < p_.nodes[step.node].size(); ++c) {
        walker.choose(c);
        e_.row_through(step, walker, c, row_);
        for (std::size_t x = 0; x < step.width; ++x) {
          if (row_[x] < live_ceiling()) expand(step, walker, c, x, row_[x], e_.through(place + x));
        }
      }
      for (std::size_t x = 0; x < step.width; ++x) settle(place + x, buckets_[x]);
      meter_.spend(4 * static_cast<double>(step.width * p_.nodes[step.node].size()));
      if (meter_.over() || spent() || static_cast<double>(sets_.size()) > max_in_all_) return false;
    }
    return true;
  }

  [[nodiscard]] double live_ceiling() const { return ceiling_ - price_ * static_cast<double>(floor_); }

  [[nodiscard]] bool row_is_alive(std::size_t place, std::size_t width) const {
    for (std::size_t x = 0; x < width; ++x) {
      if (e_.through(place + x) < live_ceiling()) return true;
    }
    return false;
  }

  /// All labels for one choice of the step's node and one entry of its message.
  void expand(const elimination_step& step, const row_walker& walker, std::size_t choice, std::size_t x,
              double least_total, double least_of_entry) {
    const problem_node& node = p_.nodes[step.node];
    label start{node.time[choice],
                0,
                node.memory[choice],
                std::max(floor_, node.transient[choice]),
                static_cast<std::uint32_t>(choice),
                no_label,
                no_label};
    std::size_t left = 0;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i].child == no_step) {
        start.time += e_.value(walker.at(i) + (i < step.wide ? x : 0));
      } else {
        ++left;
      }
    }
    if (hopeless(least_total, start)) return;
    std::vector<label> labels{start};
    for (std::size_t i = 0; i < step.inputs.size() && !labels.empty(); ++i) {
      if (step.inputs[i].child == no_step) continue;
      labels = combined(labels, sets_.at(walker.at(i) + (i < step.wide ? x : 0)), least_total);
      if (--left == 0) break;  // the last one's trace waits until it is known which labels survive
      shrink(labels, least_total);
      sets_.append_traces(labels);
    }
    for (label& l : labels) {
      l.excess += least_total - least_of_entry;
      buckets_[x].push_back(l);
    }
  }

  /// Every label with every one of a set; excess is above `least_total`, like that of `labels`. Not all once the work
  /// is `spent`: two large sets alone may take more than there is.
  std::vector<label> combined(const std::vector<label>& labels, label_set set, double least_total) {
    std::vector<label> result;
    for (const label& a : labels) {
      leave_if(meter_.stop());
      if (spent()) break;
      std::size_t tried = 1;
      for (std::uint32_t i = set.first; i < set.last; ++i) {
        const label& b = sets_[i];
        label sum{a.time + b.time,
                  a.excess + b.excess,
                  a.memory + b.memory,
                  std::max(a.transient, b.transient),
                  a.choice,
                  a.trace,
                  i};
        ++tried;
        if (!hopeless(least_total, sum)) {
          result.push_back(sum);
        } else if (!(least_total + sum.excess < live_ceiling())) {
          break;  // sets are in order of excess
        }
      }
      meter_.spend(steps_per_label * static_cast<double>(tried));
    }
    return result;
  }

  /// Drops dominated labels; if too many are left, thins them out.
  void shrink(std::vector<label>& labels, double least_total) {
    meter_.spend(4 * steps_per_label * static_cast<double>(labels.size()));
    keep_undominated(labels);
    if (labels.size() > max_labels_) thin_out(labels, least_total);
    std::stable_sort(labels.begin(), labels.end(), [](const label& a, const label& b) { return a.excess < b.excess; });
  }

  /// Keeps the label with least memory, and of each of equally wide ranges of memory the one with least
  /// excess: a plan that just fits the limit is put together from parts of all sizes.
  void thin_out(std::vector<label>& labels, double least_total) {
    const std::int64_t least = labels.front().memory;
    const std::int64_t range_width = (labels.back().memory - least) / static_cast<std::int64_t>(max_labels_) + 1;
    std::vector<label> kept{labels.front()};
    std::int64_t last_range = -1;
    for (auto l = labels.begin() + 1; l != labels.end(); ++l) {
      const std::int64_t range = (l->memory - least) / range_width;
      if (range != last_range) {
        kept.push_back(*l);
        last_range = range;
      } else {
        if (l->excess < kept.back().excess) std::swap(*l, kept.back());
        const auto unused = static_cast<double>(capacity_ - l->transient);
        open_ = std::min(open_, least_total + l->excess - price_ * unused);
      }
    }
    labels = std::move(kept);
  }

  void settle(std::size_t place, std::vector<label>& bucket) {
    shrink(bucket, e_.through(place));
    sets_.append_traces(bucket);
    sets_.put(place, bucket);
    bucket.clear();
  }

  static constexpr double steps_per_label = 10;  // handling a label takes about as long as this many additions

  const problem& p_;
  const elimination& e_;
  double price_;
  std::int64_t capacity_;
  std::int64_t floor_;
  double max_in_all_;
  work_meter& meter_;
  double ceiling_ = 0;
  double stop_at_ = 0;
  std::size_t max_labels_ = 0;
  double open_ = infinite_time;
  label_sets sets_;
  std::vector<double> row_;
  std::vector<std::vector<label>> buckets_;  // per entry of a row
};

}  // namespace cfp::detail
