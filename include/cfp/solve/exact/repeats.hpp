// Runs of equal segments, solved in logarithmic time: what one copy costs between the choices at its ends is a table,
// and a run of many is its (min, +) power.
//
// Of the nodes outside the run that every copy is joined to, every joint choice gets a power of its own. The run is
// replaced by its first and last copy and one table between them, and what is left is solved like any other graph.
#pragma once

#include <cfp/solve/exact/elimination.hpp>
#include <cfp/solve/exact/joint_choices.hpp>
#include <cfp/solve/exact/repeated_run.hpp>
#include <cfp/solve/exact/run_powers.hpp>
#include <cfp/solve/solution.hpp>

#include <algorithm>
#include <map>
#include <optional>

namespace cfp::inline v0_1::detail {

/// A run of a graph without a memory limit, put together from powers.
class run_solver {
 public:
  run_solver(const cost_graph& g, const repeated_run& run, const solve_options& options)
      : g_(g), run_(run), options_(options), given_(g, run.outside), state_(g, shifted(run.boundary, run.first)),
        states_(state_.size()), powers_(given_.size(), states_) {}

  /// Whether the tables are small enough for it to pay.
  [[nodiscard]] static bool worthwhile(const cost_graph& g, const repeated_run& run) {
    const double states = joint_choices(g, shifted(run.boundary, run.first)).count(),
                 given = joint_choices(g, run.outside).count();
    return states <= 256 && given <= 256 && states * given <= 1024 && !run.boundary.empty();
  }

  /// The graph with the run replaced; nothing if a copy alone is too much for the budget.
  std::optional<cost_graph> smaller() {
    if (!measure_copy()) return std::nullopt;
    powers_.raise(run_.count - 2);
    cost_graph out;
    std::vector<int> place(g_.nodes.size(), -1);
    const std::size_t second_last = run_.first + (run_.count - 2) * run_.period, last = second_last + run_.period;
    const auto keep = [&](std::size_t n) {
      place[n] = static_cast<int>(out.nodes.size());
      kept_.push_back(n);
      out.nodes.push_back(g_.nodes[n]);
    };
    for (std::size_t n = 0; n < run_.first + run_.period; ++n) keep(n);
    const auto ends = shifted(run_.boundary, second_last);
    for (const std::size_t n : ends) {
      keep(n);
      out.nodes.back().time.assign(g_.nodes[n].time.size(), 0.0);  // is in the power
    }
    for (std::size_t n = last; n < g_.nodes.size(); ++n) keep(n);
    for (const cost_edge& e : g_.edges) {
      const auto from = static_cast<std::size_t>(e.from), to = static_cast<std::size_t>(e.to);
      if (place[from] < 0 || place[to] < 0) continue;
      const bool first = is_end(from, ends), other = is_end(to, ends);
      const std::size_t across = first ? to : from;
      if ((first || other) && (first == other || across < last || across >= last + run_.period))
        continue;  // is in the power
      out.edges.push_back({place[from], place[to], e.time});
    }
    // One node for the choices before the run and outside it, one for those after it, and the power between them.
    const int before = joint_node(out, "before the run", given_.size() * states_),
              after = joint_node(out, "after the run", states_);
    const auto tie = [&](int joint, std::size_t n, std::size_t count, const auto& chosen) {
      std::vector<double> times;
      for (std::size_t j = 0; j < count; ++j)
        for (std::size_t c = 0; c < g_.nodes[n].time.size(); ++c) times.push_back(chosen(j) == c ? 0 : infinite_time);
      out.edges.push_back({joint, place[n], std::move(times)});
    };
    for (std::size_t k = 0; k < run_.outside.size(); ++k)
      tie(before, run_.outside[k], given_.size() * states_, [&](std::size_t j) { return given_.of(j / states_, k); });
    for (std::size_t k = 0; k < run_.boundary.size(); ++k) {
      tie(before, run_.first + run_.boundary[k], given_.size() * states_,
          [&](std::size_t j) { return state_.of(j % states_, k); });
      tie(after, ends[k], states_, [&](std::size_t j) { return state_.of(j, k); });
    }
    out.edges.push_back({before, after, powers_.time()});
    return out;
  }

  /// The plan of the whole graph that a plan of the smaller one stands for.
  [[nodiscard]] std::vector<int> expand(const std::vector<int>& choices) const {
    std::vector<int> out(g_.nodes.size(), 0);
    for (std::size_t k = 0; k < kept_.size(); ++k) out[kept_[k]] = choices[k];
    const auto before = static_cast<std::size_t>(choices[kept_.size()]),
               after = static_cast<std::size_t>(choices[kept_.size() + 1]);
    const std::size_t given = before / states_;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<int>> inside;  // of a copy between two states
    std::size_t at = before % states_, copy = run_.first + run_.period;
    for (const std::size_t next : powers_.path(given, at, after)) {
      auto [found, fresh] = inside.try_emplace({at, next});
      if (fresh) found->second = between(given, at, next);
      std::copy(found->second.begin(), found->second.end(), out.begin() + static_cast<std::ptrdiff_t>(copy));
      copy += run_.period;
      at = next;
    }
    return out;
  }

 private:
  static std::vector<std::size_t> shifted(std::vector<std::size_t> offsets, std::size_t by) {
    for (std::size_t& o : offsets) o += by;
    return offsets;
  }
  static bool is_end(std::size_t n, const std::vector<std::size_t>& ends) {
    return std::binary_search(ends.begin(), ends.end(), n);
  }
  static int joint_node(cost_graph& g, const char* label, std::size_t choices) {
    cost_node n;
    n.name = label;
    n.time.assign(choices, 0.0);
    n.memory.assign(choices, 0);
    g.nodes.push_back(std::move(n));
    return static_cast<int>(g.nodes.size()) - 1;
  }

  // The second copy as a graph of its own: what comes before it and what is outside have one choice each.
  [[nodiscard]] cost_graph copy_after(std::size_t given, std::size_t before) const {
    cost_graph out;
    std::map<std::size_t, int> index;
    std::map<std::size_t, std::size_t> fixed;
    const std::size_t begin = run_.first + run_.period;
    for (std::size_t n = begin; n < begin + run_.period; ++n) {
      index[n] = static_cast<int>(out.nodes.size());
      out.nodes.push_back(g_.nodes[n]);
      out.nodes.back().memory.assign(out.nodes.back().time.size(), 0);
      out.nodes.back().transient.clear();
    }
    for (std::size_t k = 0; k < run_.outside.size(); ++k) fixed[run_.outside[k]] = given_.of(given, k);
    for (std::size_t k = 0; k < run_.boundary.size(); ++k) fixed[run_.first + run_.boundary[k]] = state_.of(before, k);
    for (const std::size_t e : edges_) {
      const cost_edge& edge = g_.edges[e];
      const auto from = static_cast<std::size_t>(edge.from), to = static_cast<std::size_t>(edge.to);
      const bool from_in = index.count(from) > 0, to_in = index.count(to) > 0;
      if (from_in && to_in) {
        out.edges.push_back({index[from], index[to], edge.time});
        continue;
      }
      const std::size_t inner = from_in ? from : to, outer = from_in ? to : from, columns = g_.nodes[to].time.size();
      const auto choice = fixed.find(outer);
      if (choice == fixed.end()) continue;  // to the copy after, which pays for it
      cost_node& node = out.nodes[static_cast<std::size_t>(index[inner])];
      for (std::size_t c = 0; c < node.time.size(); ++c)
        node.time.set(c,
                      node.time[c] + edge.time[from_in ? c * columns + choice->second : choice->second * columns + c]);
    }
    return out;
  }

  // What a copy takes between each two states at its ends.
  bool measure_copy() {
    const std::size_t begin = run_.first + run_.period, end = begin + run_.period;
    for (std::size_t e = 0; e < g_.edges.size(); ++e) {
      const auto in = [&](int n) { return static_cast<std::size_t>(n) >= begin && static_cast<std::size_t>(n) < end; };
      if (in(g_.edges[e].from) || in(g_.edges[e].to)) edges_.push_back(e);
    }
    std::vector<double> one(given_.size() * states_ * states_, infinite_time);
    for (std::size_t given = 0; given < given_.size(); ++given)
      for (std::size_t a = 0; a < states_; ++a) {
        cost_graph copy = copy_after(given, a);
        const int joint = joint_node(copy, "state", states_);
        for (std::size_t k = 0; k < run_.boundary.size(); ++k) {
          const std::size_t choices = copy.nodes[run_.boundary[k]].time.size();
          std::vector<double> times;
          for (std::size_t b = 0; b < states_; ++b)
            for (std::size_t c = 0; c < choices; ++c) times.push_back(state_.of(b, k) == c ? 0 : infinite_time);
          copy.edges.push_back({joint, static_cast<int>(run_.boundary[k]), std::move(times)});
        }
        const problem p = make_problem(copy);
        if (p.dead) continue;
        elimination e(p, options_.max_entries, infinite_time, options_.stop);
        if (!e.exact()) return false;
        if (e.run(0) == infinite_time) continue;
        e.run_through();
        const problem_node& states = p.nodes[static_cast<std::size_t>(joint)];
        for (std::size_t c = 0; c < states.size(); ++c)
          one[powers_.place(given, a, static_cast<std::size_t>(states.original[c]))] =
              e.through_choice(static_cast<std::size_t>(joint), c);
      }
    powers_.begin(std::move(one));
    return true;
  }

  [[nodiscard]] std::vector<int> between(std::size_t given, std::size_t before, std::size_t after) const {
    cost_graph copy = copy_after(given, before);
    for (std::size_t k = 0; k < run_.boundary.size(); ++k) {
      shared_table& time = copy.nodes[run_.boundary[k]].time;
      for (std::size_t c = 0; c < time.size(); ++c)
        if (c != state_.of(after, k)) time.set(c, infinite_time);
    }
    const problem p = make_problem(copy);
    elimination e(p, options_.max_entries, infinite_time, options_.stop);
    e.run(0);
    return original_choices(p, e.plan());
  }

  const cost_graph& g_;
  const repeated_run run_;
  const solve_options& options_;
  joint_choices given_, state_;
  std::size_t states_;
  std::vector<std::size_t> edges_;  // of the second copy
  run_powers powers_;
  std::vector<std::size_t> kept_;
};

}  // namespace cfp::detail
