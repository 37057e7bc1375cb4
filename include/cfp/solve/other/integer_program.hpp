// The integer program of Alpa (Zheng et al., OSDI 2022, section 4.2), solved by CBC: a one-hot choice per node, and per
// edge a table of products of two choices, linearised. Present where CBC's C interface is (coinor-libcbc-dev; link
// CbcSolver and Cbc).
#pragma once

#include <cfp/solve/other/mixed_program.hpp>
#include <cfp/solve/policy.hpp>

#if defined(CFP_HAS_CBC)

namespace cfp::inline v0_1 {

namespace detail {

class integer_program {
 public:
  /// `relaxed`: choices may be mixed; the optimum then bounds every plan from below.
  integer_program(const cost_graph& g, bool relaxed) : g_(g) {
    for (const cost_node& n : g.nodes) {
      first_.push_back(program_.columns());
      const int begin = program_.columns();
      for (const double t : n.time) program_.column(t, !relaxed);
      program_.row(range(begin, program_.columns()), std::vector<double>(n.time.size(), 1.0), 'E', 1);
    }
    for (const cost_edge& e : g.edges) add_edge(e);
    if (g.memory_limit) add_limit();
  }

  solution run(const solve_options& options) {
    program_.solve(options.max_seconds);
    solution out;
    if (program_.infeasible()) {
      out.optimal = true;
      out.bound = std::numeric_limits<double>::infinity();
      return out;
    }
    out.bound = program_.bound();
    const double* best = program_.values();
    if (best == nullptr) return out;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      const double* mine = best + first_[n];
      out.choices.push_back(static_cast<int>(std::max_element(mine, mine + g_.nodes[n].time.size()) - mine));
    }
    const plan_cost cost = evaluate(g_, out.choices);
    out.feasible = cost.time < std::numeric_limits<double>::infinity() &&
                   cost.memory <= g_.memory_limit.value_or(std::numeric_limits<std::int64_t>::max());
    if (!out.feasible) {
      out.choices.clear();
      return out;
    }
    out.time = cost.time;
    out.memory = cost.memory;
    out.optimal = program_.optimal();
    if (out.optimal) out.bound = out.time;
    return out;
  }

  /// The optimum of the relaxed program.
  double bound() {
    run({});
    return program_.optimal() ? program_.cost() : -std::numeric_limits<double>::infinity();
  }

 private:
  static std::vector<int> range(int from, int to) {
    std::vector<int> out;
    for (; from < to; ++from) out.push_back(from);
    return out;
  }

  // Products e[a, b] of choices: their rows sum to at most the one choice, their columns to the other, all of them to
  // one.
  void add_edge(const cost_edge& e) {
    const auto from = static_cast<std::size_t>(e.from), to = static_cast<std::size_t>(e.to);
    const int rows = static_cast<int>(g_.nodes[from].time.size()), columns = static_cast<int>(g_.nodes[to].time.size()),
              begin = program_.columns();
    for (const double t : e.time) program_.column(t, false);
    program_.row(range(begin, program_.columns()), std::vector<double>(e.time.size(), 1.0), 'E', 1);
    for (int a = 0; a < rows; ++a) {
      std::vector<int> of = range(begin + a * columns, begin + (a + 1) * columns);
      std::vector<double> factors(of.size(), 1.0);
      of.push_back(first_[from] + a);
      factors.push_back(-1);
      program_.row(of, factors, 'L', 0);
    }
    for (int b = 0; b < columns; ++b) {
      std::vector<int> of;
      for (int a = 0; a < rows; ++a) of.push_back(begin + a * columns + b);
      std::vector<double> factors(of.size(), 1.0);
      of.push_back(first_[to] + b);
      factors.push_back(-1);
      program_.row(of, factors, 'L', 0);
    }
  }

  // Memory of all nodes, and one more column for the largest transient. In parts of the limit, so that the numbers stay
  // small.
  void add_limit() {
    const double limit = std::max(1.0, static_cast<double>(*g_.memory_limit));
    const int largest = program_.column(0, false, 1e9);
    std::vector<int> of{largest};
    std::vector<double> factors{1};
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      std::vector<int> mine;
      std::vector<double> transient;
      for (std::size_t c = 0; c < g_.nodes[n].time.size(); ++c) {
        if (g_.nodes[n].memory[c] != 0) {
          of.push_back(first_[n] + static_cast<int>(c));
          factors.push_back(static_cast<double>(g_.nodes[n].memory[c]) / limit);
        }
        if (!g_.nodes[n].transient.empty() && g_.nodes[n].transient[c] != 0) {
          mine.push_back(first_[n] + static_cast<int>(c));
          transient.push_back(static_cast<double>(g_.nodes[n].transient[c]) / limit);
        }
      }
      if (mine.empty()) continue;
      mine.push_back(largest);
      transient.push_back(-1);
      program_.row(mine, transient, 'L', 0);
    }
    program_.row(of, factors, 'L', static_cast<double>(*g_.memory_limit) / limit);
  }

  const cost_graph& g_;
  mixed_program program_;
  std::vector<int> first_;  // column of each node's first choice
};

}  // namespace detail

struct integer_program_policy {
  static constexpr std::string_view name = "ilp";
  solution solve(const cost_graph& g, const solve_options& o = {}) const {
    validate(g);
    return detail::integer_program(g, false).run(o);
  }
};

static_assert(policy<integer_program_policy>);

/// A lower bound on the time of every plan within the limit: the same program with mixed choices, a linear one.
inline double linear_bound(const cost_graph& g) {
  validate(g);
  return detail::integer_program(g, true).bound();
}

}  // namespace cfp
#endif
