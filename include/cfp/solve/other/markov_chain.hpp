// Markov chain search: random moves, taken by the Metropolis-Hastings rule as FlexFlow takes them (Jia, Zaharia, Aiken,
// "Beyond Data and Model Parallelism for Deep Neural Networks", MLSys 2019, section 6): a better plan always, a worse
// one with probability exp(-beta * difference).
#pragma once

#include <cfp/solve/other/greedy.hpp>

#include <random>
#include <set>

namespace cfp::inline v0_1 {

/// A plan that is changed one node at a time; what a change costs is known from the node and its edges alone.
class changing_plan {
 public:
  changing_plan(const cost_graph& g, std::vector<int> choices)
      : g_(g), choices_(std::move(choices)), edges_(g.nodes.size()) {
    for (std::size_t e = 0; e < g.edges.size(); ++e) {
      edges_[static_cast<std::size_t>(g.edges[e].from)].push_back(e);
      edges_[static_cast<std::size_t>(g.edges[e].to)].push_back(e);
    }
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
      add(now_, g.nodes[n].time[at(n)]);
      memory_ += g.nodes[n].memory[at(n)];
      transients_.insert(transient(n, at(n)));
    }
    for (const cost_edge& e : g.edges)
      add(now_, time_of(e, at(static_cast<std::size_t>(e.from)), at(static_cast<std::size_t>(e.to))));
  }

  /// Times that can be added and taken away: the finite ones, and how many are infinite.
  struct sum {
    double finite = 0;
    long forbidden = 0;
  };

  [[nodiscard]] sum time() const { return now_; }
  [[nodiscard]] std::int64_t memory() const { return memory_ + (transients_.empty() ? 0 : *transients_.rbegin()); }
  [[nodiscard]] const std::vector<int>& choices() const { return choices_; }
  [[nodiscard]] std::size_t degree(std::size_t node) const { return edges_[node].size(); }

  /// What the time would change by if a node chose otherwise.
  [[nodiscard]] sum change(std::size_t node, int choice) const {
    sum out;
    const auto c = static_cast<std::size_t>(choice);
    add(out, g_.nodes[node].time[c]);
    add(out, g_.nodes[node].time[at(node)], -1);
    for (const std::size_t k : edges_[node]) {
      const cost_edge& e = g_.edges[k];
      const auto from = static_cast<std::size_t>(e.from), to = static_cast<std::size_t>(e.to);
      add(out, from == node ? time_of(e, c, at(to)) : time_of(e, at(from), c));
      add(out, time_of(e, at(from), at(to)), -1);
    }
    return out;
  }

  /// What the memory would be.
  [[nodiscard]] std::int64_t memory_with(std::size_t node, int choice) const {
    const auto c = static_cast<std::size_t>(choice);
    const std::int64_t mine = transient(node, at(node));
    auto largest = transients_.rbegin();
    if (*largest == mine) ++largest;
    const std::int64_t others = largest == transients_.rend() ? 0 : *largest;
    return memory_ - g_.nodes[node].memory[at(node)] + g_.nodes[node].memory[c] + std::max(others, transient(node, c));
  }

  void move(std::size_t node, int choice) {
    const sum by = change(node, choice);
    now_.finite += by.finite;
    now_.forbidden += by.forbidden;
    const auto c = static_cast<std::size_t>(choice);
    memory_ += g_.nodes[node].memory[c] - g_.nodes[node].memory[at(node)];
    transients_.erase(transients_.find(transient(node, at(node))));
    transients_.insert(transient(node, c));
    choices_[node] = choice;
  }

 private:
  [[nodiscard]] std::size_t at(std::size_t node) const { return static_cast<std::size_t>(choices_[node]); }
  [[nodiscard]] std::int64_t transient(std::size_t node, std::size_t c) const {
    return g_.nodes[node].transient.empty() ? 0 : g_.nodes[node].transient[c];
  }
  [[nodiscard]] double time_of(const cost_edge& e, std::size_t a, std::size_t b) const {
    return e.time[a * g_.nodes[static_cast<std::size_t>(e.to)].time.size() + b];
  }
  static void add(sum& s, double time, int sign = 1) {
    if (time == std::numeric_limits<double>::infinity()) s.forbidden += sign;
    else s.finite += sign * time;
  }

  const cost_graph& g_;
  std::vector<int> choices_;
  std::vector<std::vector<std::size_t>> edges_;  // of each node
  sum now_;
  std::int64_t memory_ = 0;
  std::multiset<std::int64_t> transients_;
};

struct markov_chain_policy {
  static constexpr std::string_view name = "mcmc";

  long moves = 1000000;      ///< proposed
  double temperature = 0.1;  ///< 1 / beta, as a part of the first plan's time per node
  std::uint64_t seed = 1;

  /// Begins with the greedy plan, if there is one. Ends after `moves`, or when the budget is spent.
  solution solve(const cost_graph& g, const solve_options& options = {}) const {
    solution best = greedy_policy().solve(g);
    std::vector<std::size_t> open;  // nodes with a choice
    for (std::size_t n = 0; n < g.nodes.size(); ++n)
      if (g.nodes[n].time.size() > 1) open.push_back(n);
    if (open.empty()) return best;
    changing_plan plan(g, best.feasible ? best.choices : std::vector<int>(g.nodes.size(), 0));
    const std::int64_t limit = g.memory_limit.value_or(std::numeric_limits<std::int64_t>::max());
    const double unit = temperature * std::max(std::abs(plan.time().finite), std::numeric_limits<double>::min()) /
                        static_cast<double>(g.nodes.size());
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> chance(0, 1);
    detail::work_meter meter(options);
    for (long m = 0; m < moves; ++m) {
      const std::size_t n = open[random() % open.size()];
      const auto others = static_cast<std::uint64_t>(g.nodes[n].time.size() - 1);
      const int now = plan.choices()[n],
                other = static_cast<int>((static_cast<std::uint64_t>(now) + 1 + random() % others) % (others + 1));
      meter.spend(static_cast<double>(2 + 2 * plan.degree(n)));
      if (m % 1024 == 0 && meter.over()) break;
      const auto by = plan.change(n, other);
      const std::int64_t before = plan.memory(), after = plan.memory_with(n, other);
      // Plans that are forbidden or do not fit come after all that are neither.
      const long worse =
          by.forbidden != 0 ? by.forbidden : (after > limit && after > before) - (before > limit && after < before);
      if (worse > 0 || (worse == 0 && by.finite > 0 && chance(random) >= std::exp(-by.finite / unit))) continue;
      plan.move(n, other);
      if (plan.time().forbidden > 0 || after > limit || (best.feasible && plan.time().finite >= best.time)) continue;
      best.feasible = true;
      best.choices = plan.choices();
      best.time = plan.time().finite;
      best.memory = after;
    }
    if (best.feasible) best.time = evaluate(g, best.choices).time;  // without the rounding of many changes
    return best;
  }
};

static_assert(policy<markov_chain_policy>);

}  // namespace cfp
