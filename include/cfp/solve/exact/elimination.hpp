#pragma once

// Elimination, run: the least of (time + price * memory) over all plans, a plan that has it, and how little a
// plan through each single choice or table entry can have.

#include <algorithm>
#include <cstddef>
#include <stop_token>
#include <utility>
#include <vector>

#include <cfp/solve/exact/elimination_steps.hpp>
#include <cfp/solve/exact/plan_finder.hpp>
#include <cfp/solve/exact/strided_table.hpp>
#include <cfp/solve/memory/budget.hpp>

namespace cfp::inline v0_1::detail {

class elimination : public plan_finder {
 public:
  /// Splits tables so that they hold `max_entries` and one run takes `max_work` additions, if that can be
  /// had. Nodes in `last` are eliminated last, in that order. Throws `stopped` once `stop` is requested, here and in
  /// both runs.
  elimination(const problem& p, double max_entries, double max_work, std::stop_token stop = {},
              const std::vector<std::size_t>& last = {})
      : p_(p), stop_(std::move(stop)) {
    const std::vector<std::size_t> order = find_elimination_order(p, max_entries, stop_, last);
    for (double max_table = max_entries;; max_table /= 8) {
      leave_if(stop_);
      layout_ = layout_builder(p, order, max_table).take();
      const auto messages = static_cast<double>(layout_.size - layout_.message_begin);
      if ((messages <= max_entries && layout_.work <= max_work) || max_table < 1) break;
    }
    data_.resize(layout_.size);
    for (std::size_t e = 0; e < p.edges.size(); ++e) set_edge(e, p.edges[e].time);
    node_begin_.push_back(0);
    for (const problem_node& node : p.nodes) node_begin_.push_back(node_begin_.back() + node.size());
    own_.resize(node_begin_.back());
  }

  [[nodiscard]] const elimination_layout& layout() const { return layout_; }
  [[nodiscard]] bool exact() const override { return layout_.exact; }
  [[nodiscard]] double work() const override { return layout_.work; }

  void set_edge(std::size_t e, const std::vector<double>& time) override {
    double* copy = data_.data() + layout_.edge_data[e];
    if (!layout_.edge_flipped[e]) {
      std::copy(time.begin(), time.end(), copy);
      return;
    }
    const std::size_t rows = p_.nodes[p_.edges[e].from].size();
    const std::size_t columns = p_.nodes[p_.edges[e].to].size();
    for (std::size_t a = 0; a < rows; ++a) {
      for (std::size_t b = 0; b < columns; ++b) copy[b * rows + a] = time[a * columns + b];
    }
  }

  double run(double price) override {
    for (std::size_t n = 0; n < p_.nodes.size(); ++n) {
      const problem_node& node = p_.nodes[n];
      for (std::size_t c = 0; c < node.size(); ++c) {
        own_[node_begin_[n] + c] = node.time[c] + price * static_cast<double>(node.memory[c]);
      }
    }
    for (const elimination_step& step : layout_.steps) send(step);
    total_ = 0;
    for (const std::size_t root : layout_.roots) total_ += data_[layout_.steps[root].message];
    return total_;
  }

  [[nodiscard]] plan_indices plan() const override { return plan({}); }

  /// The same, the nodes eliminated last having these choices.
  [[nodiscard]] plan_indices plan(std::vector<std::size_t> given) const {
    plan_indices choices(p_.nodes.size(), 0);
    std::vector<double> cost;
    std::size_t end = layout_.steps.size();
    while (end > 0) {
      const std::size_t n = layout_.steps[end - 1].node;
      cost.assign(p_.nodes[n].size(), 0);
      for (; end > 0 && layout_.steps[end - 1].node == n; --end) add_costs(layout_.steps[end - 1], choices, cost);
      if (!given.empty()) {
        choices[n] = given.back();
        given.pop_back();
        continue;
      }
      choices[n] = static_cast<std::size_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
    }
    return choices;
  }

  /// After `run`, if exact and the two nodes eliminated last are joined by an edge: the least of all plans that make a
  /// choice of each of them, a row for each choice of the first.
  [[nodiscard]] std::vector<double> between_last() const {
    const elimination_step &step = layout_.steps[layout_.steps.size() - 2], &other = layout_.steps.back();
    const std::size_t rows = p_.nodes[step.node].size();
    double apart = 0;  // what is joined to neither
    for (const std::size_t root : layout_.roots)
      if (root + 1 < layout_.steps.size()) apart += data_[layout_.steps[root].message];
    std::vector<double> out, row(step.width);
    row_walker walker(step), after(other);
    for (std::size_t c = 0; c < rows; ++c) {
      walker.choose(c);
      row.assign(step.width, narrow_sum(step, walker, c) + apart);
      for (std::size_t i = 0; i < step.wide; ++i)
        for (std::size_t x = 0; x < step.width; ++x) row[x] += data_[walker.at(i) + x];
      for (std::size_t x = 0; x < step.width; ++x) {
        after.choose(x);
        double own = own_[node_begin_[other.node] + x];
        for (std::size_t i = 0; i < other.inputs.size(); ++i)
          if (other.inputs[i].data != step.message) own += data_[after.at(i)];
        out.push_back(row[x] + own);
      }
    }
    return out;
  }

  /// After `run`, if exact: computes `through` and `through_choice`.
  void run_through() {
    through_.assign(layout_.size - layout_.message_begin, infinite_time);
    choice_through_.assign(own_.size(), infinite_time);
    for (const std::size_t root : layout_.roots) at(through_, layout_.steps[root].message) = total_;
    std::vector<double> row;
    for (std::size_t s = layout_.steps.size(); s > 0; --s) spread(layout_.steps[s - 1], row);
  }

  [[nodiscard]] double total() const { return total_; }

  /// The number at a place of the layout: of an edge or, after `run`, of a message.
  [[nodiscard]] double value(std::size_t place) const { return data_[place]; }

  /// The least that a plan can have which agrees with this entry of a message.
  [[nodiscard]] double through(std::size_t place) const { return through_[place - layout_.message_begin]; }

  [[nodiscard]] double through_choice(std::size_t node, std::size_t choice) const {
    return choice_through_[node_begin_[node] + choice];
  }

  /// For each x of a row: the least that a plan can have which agrees with the walker's row and choice and
  /// with x. Infinite where the message is.
  void row_through(const elimination_step& step, const row_walker& walker, std::size_t choice,
                   std::vector<double>& row) const {
    const double fixed = narrow_sum(step, walker, choice);
    row.assign(step.width, fixed);
    for (std::size_t i = 0; i < step.wide; ++i) {
      const double* table = data_.data() + walker.at(i);
      for (std::size_t x = 0; x < step.width; ++x) row[x] += table[x];
    }
    const std::size_t place = step.message + walker.row() * step.width;
    for (std::size_t x = 0; x < step.width; ++x) {
      const double message = data_[place + x];
      row[x] = message == infinite_time ? infinite_time : row[x] + (through(place + x) - message);
    }
  }

 private:
  static constexpr std::size_t rows_at_once = 64;  // between looks at the stop token

  [[nodiscard]] double& at(std::vector<double>& table, std::size_t place) const {
    return table[place - layout_.message_begin];
  }

  /// What is the same along a row: the node's own part and the inputs without the row's dimension.
  [[nodiscard]] double narrow_sum(const elimination_step& step, const row_walker& walker, std::size_t choice) const {
    double sum = step.owns_times ? own_[node_begin_[step.node] + choice] : 0.0;
    for (std::size_t i = step.wide; i < step.inputs.size(); ++i) sum += data_[walker.at(i)];
    return sum;
  }

  void send(const elimination_step& step) {
    std::vector<strided_table> tables(step.wide);
    const std::size_t choices = p_.nodes[step.node].size();
    const double* own = own_.data() + node_begin_[step.node];
    for (row_walker walker(step); !walker.done(); walker.next()) {
      if (walker.row() % rows_at_once == 0) leave_if(stop_);
      if (step.owns_times) fixed_.assign(own, own + choices);
      else fixed_.assign(choices, 0.0);
      for (std::size_t i = step.wide; i < step.inputs.size(); ++i) {
        const double* table = data_.data() + walker.begin(i);
        for (std::size_t c = 0; c < choices; ++c) fixed_[c] += table[c * step.inputs[i].choice_stride];
      }
      for (std::size_t i = 0; i < step.wide; ++i)
        tables[i] = {data_.data() + walker.begin(i), step.inputs[i].choice_stride};
      double* row = data_.data() + step.message + walker.row() * step.width;
      std::fill(row, row + step.width, infinite_time);
      lower_to(row, step.width, fixed_, tables, scratch_);
    }
  }

  void spread(const elimination_step& step, std::vector<double>& row) {
    for (row_walker walker(step); !walker.done(); walker.next()) {
      if (walker.row() % rows_at_once == 0) leave_if(stop_);
      for (std::size_t c = 0; c < p_.nodes[step.node].size(); ++c) {
        walker.choose(c);
        row_through(step, walker, c, row);
        const double least = *std::min_element(row.begin(), row.end());
        if (least == infinite_time) continue;
        double& own = choice_through_[node_begin_[step.node] + c];
        own = std::min(own, least);
        for (std::size_t i = 0; i < step.inputs.size(); ++i) {
          if (step.inputs[i].child == no_step) continue;
          double* child = &at(through_, walker.at(i));
          if (i >= step.wide) {
            *child = std::min(*child, least);
          } else {
            for (std::size_t x = 0; x < step.width; ++x) child[x] = std::min(child[x], row[x]);
          }
        }
      }
    }
  }

  void add_costs(const elimination_step& step, const plan_indices& choices, std::vector<double>& cost) const {
    for (std::size_t c = 0; c < cost.size() && step.owns_times; ++c) cost[c] += own_[node_begin_[step.node] + c];
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const step_input& input = step.inputs[i];
      std::size_t place = input.data + (i < step.wide ? choices[step.scope.back()] : 0);
      for (std::size_t d = 0; d < input.strides.size(); ++d) place += choices[step.scope[d]] * input.strides[d];
      for (std::size_t c = 0; c < cost.size(); ++c) cost[c] += data_[place + c * input.choice_stride];
    }
  }

  const problem& p_;
  std::stop_token stop_;
  elimination_layout layout_;
  std::vector<double> data_;             // edges, then messages
  std::vector<std::size_t> node_begin_;  // where a node's choices begin in the next two
  std::vector<double> own_;              // time + price * memory of each choice
  std::vector<double> choice_through_;
  std::vector<double> through_;  // like the messages
  double total_ = 0;
  std::vector<double> fixed_, scratch_;
};

}  // namespace cfp::detail
