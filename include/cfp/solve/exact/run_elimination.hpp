// Runs of equal segments, eliminated in logarithmic time: what one copy costs between the choices at its ends is a
// table, and a run of many is its (min, +) power.
//
// Of the nodes outside the run that every copy is joined to, every joint choice gets a power of its own. The run is
// replaced by its first and last copy and one table between them, and what is left is solved like any other problem: it
// may have another run.
#pragma once

#include <cfp/solve/exact/elimination.hpp>
#include <cfp/solve/exact/joint_choices.hpp>
#include <cfp/solve/exact/repeated_run.hpp>
#include <cfp/solve/exact/run_powers.hpp>

#include <map>
#include <memory>
#include <utility>

namespace cfp::inline v0_1::detail {

inline std::unique_ptr<plan_finder> make_plan_finder(const problem& p, double max_entries, double max_work,
                                                     const solve_options& options);

class run_elimination : public plan_finder {
 public:
  run_elimination(const problem& p, repeated_run run, double max_entries, const solve_options& options)
      : size_(p.nodes.size()), run_(std::move(run)), given_(p, run_.outside), state_(p, ends_of(0)),
        states_(state_.size()), powers_(given_.size(), states_), copy_(one_copy(p)), rest_(without_run(p)),
        of_copy_(copy_, max_entries, infinite_time, options.stop, {run_.period, run_.period + 1}),
        of_rest_(make_plan_finder(rest_, max_entries, infinite_time, options)) {}

  /// Whether the tables are small enough for it to pay.
  [[nodiscard]] static bool worthwhile(const problem& p, const repeated_run& run) {
    std::vector<std::size_t> ends;
    for (const std::size_t j : run.boundary) ends.push_back(run.node(0, j));
    const double states = joint_choices(p, ends).count(), given = joint_choices(p, run.outside).count();
    return states <= 256 && given <= 256 && states * given <= 1024 && !run.boundary.empty();
  }

  double run(double price) override {
    of_copy_.run(price);
    powers_.begin(of_copy_.between_last());
    powers_.raise(run_.count - 2);
    of_rest_->set_edge(power_, powers_.time());
    return of_rest_->run(price);
  }

  void set_edge(std::size_t e, const std::vector<double>& time) override {
    of_rest_->set_edge(edge_of_rest_.at(e), time);
  }

  [[nodiscard]] plan_indices plan() const override {
    const plan_indices rest = of_rest_->plan();
    plan_indices out(size_, 0);
    for (std::size_t k = 0; k < kept_.size(); ++k) out[kept_[k]] = rest[k];
    const std::size_t before = rest[kept_.size()], after = rest[kept_.size() + 1], given = before / states_;
    std::map<std::pair<std::size_t, std::size_t>, plan_indices> inside;  // of a copy between two states
    std::size_t at = before % states_, copy = 1;
    for (const std::size_t next : powers_.path(given, at, after)) {
      const auto [found, fresh] = inside.try_emplace({at, next});
      if (fresh) found->second = of_copy_.plan({given * states_ + at, next});
      for (std::size_t j = 0; j < run_.period; ++j) out[run_.node(copy, j)] = found->second[j];
      ++copy;
      at = next;
    }
    return out;
  }

  [[nodiscard]] bool exact() const override { return of_copy_.exact() && of_rest_->exact(); }
  [[nodiscard]] double work() const override {
    double products = 0;
    for (std::size_t n = run_.count - 2; n > 0; n /= 2) products += 2;
    const auto states = static_cast<double>(states_);
    return of_copy_.work() + of_rest_->work() +
           products * static_cast<double>(given_.size()) * states * states * states;
  }

 private:
  [[nodiscard]] std::vector<std::size_t> ends_of(std::size_t copy) const {
    std::vector<std::size_t> out;
    for (const std::size_t j : run_.boundary) out.push_back(run_.node(copy, j));
    return out;
  }

  static std::size_t add_joint(problem& p, std::size_t choices) {
    problem_node n;
    n.original.resize(choices);
    for (std::size_t c = 0; c < choices; ++c) n.original[c] = static_cast<int>(c);
    n.time.assign(choices, 0.0);
    n.memory.assign(choices, 0);
    n.transient.assign(choices, 0);
    p.nodes.push_back(std::move(n));
    return p.nodes.size() - 1;
  }

  // What a node's choices take, by one edge, with another node as each joint choice has it choose: [choice][joint].
  template <class Chosen>
  static std::vector<double> with_joint(const problem& p, std::size_t node, std::size_t other, const problem_edge& e,
                                        std::size_t joint, const Chosen& chosen) {
    const std::size_t columns = p.nodes[e.to].size();
    std::vector<double> out;
    for (std::size_t c = 0; c < p.nodes[node].size(); ++c)
      for (std::size_t j = 0; j < joint; ++j) {
        const std::size_t o = chosen(j);
        out.push_back(e.time[e.from == other ? o * columns + c : c * columns + o]);
      }
    return out;
  }

  // Nothing where the k-th node chooses as the joint choice says, else infinite: [joint][choice].
  template <class Chosen>
  static std::vector<double> tie(std::size_t joint, std::size_t choices, const Chosen& chosen) {
    std::vector<double> out;
    for (std::size_t j = 0; j < joint; ++j)
      for (std::size_t c = 0; c < choices; ++c) out.push_back(chosen(j) == c ? 0 : infinite_time);
    return out;
  }

  // The edges of a copy's nodes to nodes of the copy before and outside, as edges to a joint node of these.
  void join_before(const problem& p, std::size_t copy, bool outside_too, std::size_t joint_size, std::size_t joint,
                   const std::map<std::size_t, std::size_t>& place, problem& out) const {
    std::map<std::size_t, std::size_t> state, given;  // of a node, its number
    for (std::size_t k = 0; k < run_.boundary.size(); ++k) state[run_.node(copy - 1, run_.boundary[k])] = k;
    for (std::size_t k = 0; outside_too && k < run_.outside.size(); ++k) given[run_.outside[k]] = k;
    std::map<std::size_t, std::size_t> in_copy;
    for (std::size_t j = 0; j < run_.period; ++j) in_copy[run_.node(copy, j)] = j;
    std::map<std::size_t, std::vector<double>> sum;
    for (const problem_edge& e : p.edges)
      for (const auto& [node, other] : {std::pair(e.from, e.to), std::pair(e.to, e.from)}) {
        if (in_copy.count(node) == 0) continue;
        std::vector<double> more;
        if (const auto at = state.find(other); at != state.end())
          more = with_joint(p, node, other, e, joint_size,
                            [&](std::size_t j) { return state_.of(j % states_, at->second); });
        else if (const auto g = given.find(other); g != given.end())
          more = with_joint(p, node, other, e, joint_size,
                            [&](std::size_t j) { return given_.of(j / states_, g->second); });
        else continue;
        std::vector<double>& all = sum[node];
        if (all.empty()) all = std::move(more);
        else
          for (std::size_t i = 0; i < all.size(); ++i) all[i] += more[i];
      }
    for (auto& [node, table] : sum) out.edges.push_back({place.at(node), joint, std::move(table)});
  }

  // The second copy, what comes before it and what is outside joined in one node, its own end in another.
  problem one_copy(const problem& p) {
    problem out;
    std::map<std::size_t, std::size_t> place;
    for (std::size_t j = 0; j < run_.period; ++j) {
      place[run_.node(1, j)] = j;
      out.nodes.push_back(p.nodes[run_.node(1, j)]);
    }
    for (const problem_edge& e : p.edges)
      if (place.count(e.from) > 0 && place.count(e.to) > 0) out.edges.push_back({place[e.from], place[e.to], e.time});
    const std::size_t before = add_joint(out, given_.size() * states_), after = add_joint(out, states_);
    join_before(p, 1, true, given_.size() * states_, before, place, out);
    for (std::size_t k = 0; k < run_.boundary.size(); ++k) {
      const std::size_t j = run_.boundary[k];
      out.edges.push_back(
          {after, j, tie(states_, out.nodes[j].size(), [&](std::size_t s) { return state_.of(s, k); })});
    }
    out.edges.push_back({before, after, std::vector<double>(given_.size() * states_ * states_, 0.0)});
    return out;
  }

  // All but the copies between the first and the last, in place of which are the two ends and a table between them.
  problem without_run(const problem& p) {
    problem out;
    std::map<std::size_t, std::size_t> place;
    const std::size_t begin = run_.first + run_.period, end = run_.first + (run_.count - 1) * run_.period;
    for (std::size_t i = 0; i < run_.order.size(); ++i) {
      if (i >= begin && i < end) continue;
      place[run_.order[i]] = kept_.size();
      kept_.push_back(run_.order[i]);
      out.nodes.push_back(p.nodes[run_.order[i]]);
    }
    for (std::size_t e = 0; e < p.edges.size(); ++e) {
      const auto from = place.find(p.edges[e].from), to = place.find(p.edges[e].to);
      if (from == place.end() || to == place.end()) continue;
      edge_of_rest_[e] = out.edges.size();
      out.edges.push_back({from->second, to->second, p.edges[e].time});
    }
    const std::size_t before = add_joint(out, given_.size() * states_), after = add_joint(out, states_);
    const auto tied = [&](std::size_t node, const auto& chosen) {
      out.edges.push_back({before, place.at(node), tie(given_.size() * states_, p.nodes[node].size(), chosen)});
    };
    for (std::size_t k = 0; k < run_.outside.size(); ++k)
      tied(run_.outside[k], [&](std::size_t j) { return given_.of(j / states_, k); });
    for (std::size_t k = 0; k < run_.boundary.size(); ++k)
      tied(run_.node(0, run_.boundary[k]), [&](std::size_t j) { return state_.of(j % states_, k); });
    join_before(p, run_.count - 1, false, states_, after, place, out);
    power_ = out.edges.size();
    out.edges.push_back({before, after, std::vector<double>(given_.size() * states_ * states_, 0.0)});
    return out;
  }

  std::size_t size_;
  const repeated_run run_;
  joint_choices given_, state_;
  std::size_t states_;
  run_powers powers_;
  std::vector<std::size_t> kept_;  // nodes of the rest
  std::size_t power_ = 0;          // edge of the rest
  std::map<std::size_t, std::size_t> edge_of_rest_;
  const problem copy_, rest_;
  elimination of_copy_;
  std::unique_ptr<plan_finder> of_rest_;
};

/// Finds plans by a run of equal segments where there is one, else by elimination; within these bounds in place of the
/// options'.
inline std::unique_ptr<plan_finder> make_plan_finder(const problem& p, double max_entries, double max_work,
                                                     const solve_options& options) {
  if (auto run = find_run(p, options.least_copies); run && run_elimination::worthwhile(p, *run)) {
    auto by_run = std::make_unique<run_elimination>(p, std::move(*run), max_entries, options);
    if (by_run->exact() && by_run->work() <= max_work) return by_run;
  }
  return std::make_unique<elimination>(p, max_entries, max_work, options.stop);
}

}  // namespace cfp::detail
