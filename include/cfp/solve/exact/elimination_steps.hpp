#pragma once

// Elimination, laid out: which tables are combined when, where their numbers stand, and how to walk over
// them.
//
// Eliminating a node combines everything that mentions it (its own times, edges, messages of earlier steps)
// and takes the minimum over its choices; what remains is a table over its *scope*, the other nodes
// mentioned, called the step's *message*. All tables are row-major with nodes in order of elimination, so the
// node of a step is the outermost dimension of each of its inputs, and the last node of the scope is
// innermost wherever it occurs.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <cfp/solve/exact/elimination_order.hpp>
#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

inline constexpr std::size_t no_step = std::numeric_limits<std::size_t>::max();

struct step_input {
  std::size_t data;                  // where its numbers begin
  std::size_t choice_stride;         // from one choice of the step's node to the next
  std::size_t child;                 // the step whose message it is; no_step for an edge
  std::vector<std::size_t> strides;  // per node of the step's scope but the last; 0 where it does not occur
};

struct elimination_step {
  std::size_t node;
  bool owns_times;                 // the node's own times enter here (a split node has several steps)
  std::vector<std::size_t> scope;  // in order of elimination
  std::vector<std::size_t> sizes;  // choices of each node of the scope
  std::size_t rows = 1;            // entries of the message: rows * width, width over the scope's last node
  std::size_t width = 1;
  std::size_t message = 0;         // where the message begins
  std::vector<step_input> inputs;  // first those that contain the scope's last node
  std::size_t wide = 0;            // how many do
};

/// All steps, in order; the steps of one node follow each other.
struct elimination_layout {
  std::vector<elimination_step> steps;
  std::vector<std::size_t> roots;      // steps with an empty scope
  std::vector<std::size_t> edge_data;  // per edge, where its table stands
  std::vector<char> edge_flipped;      // per edge, whether `to` is eliminated before `from`
  std::size_t message_begin = 0;       // edges stand before, messages after
  std::size_t size = 0;
  double work = 0;    // additions of one run
  bool exact = true;  // no node is split
};

/// Walks over the rows of a step; `at(i)` is where input i stands for the present row and choice.
class row_walker {
 public:
  explicit row_walker(const elimination_step& step)
      : step_(step), digits_(step.scope.empty() ? 0 : step.scope.size() - 1, 0), base_(step.inputs.size()),
        at_(step.inputs.size()) {
    locate();
  }

  [[nodiscard]] bool done() const { return row_ == step_.rows; }
  [[nodiscard]] std::size_t row() const { return row_; }
  [[nodiscard]] std::size_t at(std::size_t input) const { return at_[input]; }
  /// The same for choice 0.
  [[nodiscard]] std::size_t begin(std::size_t input) const { return base_[input]; }

  void choose(std::size_t choice) {
    for (std::size_t i = 0; i < at_.size(); ++i) at_[i] = base_[i] + choice * step_.inputs[i].choice_stride;
  }

  void next() {
    ++row_;
    for (std::size_t d = digits_.size(); d > 0; --d) {
      if (++digits_[d - 1] < step_.sizes[d - 1]) break;
      digits_[d - 1] = 0;
    }
    locate();
  }

 private:
  void locate() {
    for (std::size_t i = 0; i < base_.size(); ++i) {
      const step_input& input = step_.inputs[i];
      base_[i] = input.data;
      for (std::size_t d = 0; d < digits_.size(); ++d) base_[i] += digits_[d] * input.strides[d];
    }
  }

  const elimination_step& step_;
  std::size_t row_ = 0;
  std::vector<std::size_t> digits_;
  std::vector<std::size_t> base_;
  std::vector<std::size_t> at_;
};

/// Lays out elimination in a given order. A step whose table would exceed `max_table` entries is split: the
/// inputs are dealt to several steps, each of which minimises on its own, so that the result is a lower bound
/// only.
class layout_builder {
 public:
  layout_builder(const problem& p, const std::vector<std::size_t>& order, double max_table)
      : p_(p), max_table_(max_table), position_(order.size()), bucket_(order.size()) {
    for (std::size_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
    place_edges();
    for (const std::size_t n : order) eliminate(n);
  }

  elimination_layout take() { return std::move(layout_); }

 private:
  struct factor {
    std::vector<std::size_t> scope;  // in order of elimination, the node of the bucket first
    std::size_t data;
    std::size_t child;
  };

  [[nodiscard]] bool before(std::size_t a, std::size_t b) const { return position_[a] < position_[b]; }

  void place_edges() {
    for (const problem_edge& e : p_.edges) {
      const bool flipped = before(e.to, e.from);
      const std::size_t first = flipped ? e.to : e.from;
      layout_.edge_data.push_back(layout_.size);
      layout_.edge_flipped.push_back(flipped);
      bucket_[first].push_back({{first, flipped ? e.from : e.to}, layout_.size, no_step});
      layout_.size += e.time.size();
    }
    layout_.message_begin = layout_.size;
  }

  /// The nodes of two scopes together.
  [[nodiscard]] std::vector<std::size_t> united(const std::vector<std::size_t>& a,
                                                const std::vector<std::size_t>& b) const {
    std::vector<std::size_t> all;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all),
                   [this](std::size_t x, std::size_t y) { return before(x, y); });
    return all;
  }

  /// Entries of a table over all nodes of `scope` but the first, the one to be eliminated.
  [[nodiscard]] double entries(const std::vector<std::size_t>& scope) const {
    double product = 1;
    for (std::size_t i = 1; i < scope.size(); ++i) product *= static_cast<double>(p_.nodes[scope[i]].size());
    return product;
  }

  void eliminate(std::size_t n) {
    std::vector<factor> factors = std::move(bucket_[n]);
    std::vector<std::size_t> all{n};
    for (const factor& f : factors) all.insert(all.end(), f.scope.begin(), f.scope.end());
    std::sort(all.begin(), all.end(), [this](std::size_t x, std::size_t y) { return before(x, y); });
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (entries(all) <= max_table_) {
      add_step(n, all, std::move(factors), true);
      return;
    }
    layout_.exact = false;
    std::stable_sort(factors.begin(), factors.end(),
                     [this](const factor& a, const factor& b) { return entries(a.scope) > entries(b.scope); });
    std::vector<std::size_t> scope{n};
    std::vector<factor> group;
    bool first = true;
    for (factor& f : factors) {
      std::vector<std::size_t> larger = united(scope, f.scope);
      if (!group.empty() && entries(larger) > max_table_) {
        add_step(n, scope, std::exchange(group, {}), std::exchange(first, false));
        larger = f.scope;
      }
      scope = std::move(larger);
      group.push_back(std::move(f));
    }
    add_step(n, scope, std::move(group), first);
  }

  void add_step(std::size_t n, const std::vector<std::size_t>& all, std::vector<factor> factors, bool owns_times) {
    elimination_step step;
    step.node = n;
    step.owns_times = owns_times;
    step.scope.assign(all.begin() + 1, all.end());
    for (const std::size_t s : step.scope) step.sizes.push_back(p_.nodes[s].size());
    if (!step.scope.empty()) step.width = step.sizes.back();
    for (std::size_t d = 0; d + 1 < step.sizes.size(); ++d) step.rows *= step.sizes[d];

    const auto is_wide = [&](const factor& f) { return f.scope.size() > 1 && f.scope.back() == step.scope.back(); };
    std::stable_partition(factors.begin(), factors.end(), is_wide);
    for (const factor& f : factors) {
      step.wide += static_cast<std::size_t>(is_wide(f));
      step.inputs.push_back(input_of(f, step.scope));
    }
    const double table = static_cast<double>(step.rows) * static_cast<double>(step.width);
    const double combined = static_cast<double>(std::max<std::size_t>(step.wide, 1)) * table;
    layout_.work += combined * static_cast<double>(p_.nodes[n].size()) + static_cast<double>(step.inputs.size());

    step.message = layout_.size;
    layout_.size += step.rows * step.width;
    const std::size_t index = layout_.steps.size();
    if (step.scope.empty()) {
      layout_.roots.push_back(index);
    } else {
      bucket_[step.scope.front()].push_back({step.scope, step.message, index});
    }
    layout_.steps.push_back(std::move(step));
  }

  [[nodiscard]] step_input input_of(const factor& f, const std::vector<std::size_t>& scope) const {
    step_input input{f.data, 1, f.child, std::vector<std::size_t>(scope.empty() ? 0 : scope.size() - 1, 0)};
    std::size_t stride = 1;
    std::size_t d = scope.size();
    for (std::size_t i = f.scope.size() - 1; i > 0; --i) {
      while (scope[d - 1] != f.scope[i]) --d;
      if (d < scope.size()) input.strides[d - 1] = stride;
      stride *= p_.nodes[f.scope[i]].size();
    }
    input.choice_stride = stride;
    return input;
  }

  const problem& p_;
  double max_table_;
  std::vector<std::size_t> position_;
  std::vector<std::vector<factor>> bucket_;  // per node not yet eliminated, what mentions it first
  elimination_layout layout_;
};

}  // namespace cfp::detail
