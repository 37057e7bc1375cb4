// The integer program of Alpa (Zheng et al., OSDI 2022, section 4.2), solved by CBC: a one-hot choice per node, and per
// edge a table of products of two choices, linearised. Present where CBC's C interface is (coinor-libcbc-dev; link
// CbcSolver and Cbc).
#pragma once

#include <cfp/solve/policy.hpp>

#if __has_include(<coin/Cbc_C_Interface.h>)
#define CFP_HAS_CBC 1
#include <coin/Cbc_C_Interface.h>

#include <memory>

namespace cfp::inline v0_1 {

namespace detail {

class integer_program {
 public:
  /// `relaxed`: choices may be mixed; the optimum then bounds every plan from below.
  integer_program(const cost_graph& g, bool relaxed) : g_(g), model_(Cbc_newModel()) {
    Cbc_setLogLevel(model_.get(), 0);
    for (const cost_node& n : g.nodes) {
      first_.push_back(columns_);
      const int begin = columns_;
      for (const double t : n.time) column(t, !relaxed);
      row(range(begin, columns_), std::vector<double>(n.time.size(), 1.0), 'E', 1);
    }
    for (const cost_edge& e : g.edges) add_edge(e);
    if (g.memory_limit) add_limit();
  }

  solution run(const solve_options& options) {
    // Times of any size are told apart relatively; CBC's own tolerances are absolute.
    for (int c = 0; c < columns_; ++c) Cbc_setObjCoeff(model_.get(), c, cost_[static_cast<std::size_t>(c)] / scale_);
    Cbc_setObjSense(model_.get(), 1);
    Cbc_setParameter(model_.get(), "increment", "1e-9");
    Cbc_setParameter(model_.get(), "ratioGap", "0");
    Cbc_setParameter(model_.get(), "allowableGap", "1e-9");
    if (options.max_seconds < 1e9) {
      Cbc_setParameter(model_.get(), "timeMode", "elapsed");
      Cbc_setMaximumSeconds(model_.get(), options.max_seconds);
    }
    Cbc_solve(model_.get());
    solution out;
    if (Cbc_isProvenInfeasible(model_.get()) != 0) {
      out.optimal = true;
      out.bound = std::numeric_limits<double>::infinity();
      return out;
    }
    out.bound = Cbc_getBestPossibleObjValue(model_.get()) * scale_;
    const double* best = Cbc_bestSolution(model_.get());
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
    out.optimal = Cbc_isProvenOptimal(model_.get()) != 0;
    if (out.optimal) out.bound = out.time;
    return out;
  }

  /// The optimum of the relaxed program.
  double bound() {
    run({});
    return Cbc_isProvenOptimal(model_.get()) != 0 ? Cbc_getObjValue(model_.get()) * scale_
                                                  : -std::numeric_limits<double>::infinity();
  }

 private:
  struct deleter {
    void operator()(Cbc_Model* m) const { Cbc_deleteModel(m); }
  };

  int column(double time, bool whole) {
    const bool possible = time < std::numeric_limits<double>::infinity();
    Cbc_addCol(model_.get(), "", 0, possible ? 1 : 0, 0, static_cast<char>(whole), 0, nullptr, nullptr);
    cost_.push_back(possible ? time : 0);
    if (possible) scale_ = std::max(scale_, std::abs(time) / 1000);
    return columns_++;
  }
  void row(const std::vector<int>& columns, const std::vector<double>& factors, char sense, double right) {
    Cbc_addRow(model_.get(), "", static_cast<int>(columns.size()), columns.data(), factors.data(), sense, right);
  }
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
              begin = columns_;
    for (const double t : e.time) column(t, false);
    row(range(begin, columns_), std::vector<double>(e.time.size(), 1.0), 'E', 1);
    for (int a = 0; a < rows; ++a) {
      std::vector<int> of = range(begin + a * columns, begin + (a + 1) * columns);
      std::vector<double> factors(of.size(), 1.0);
      of.push_back(first_[from] + a);
      factors.push_back(-1);
      row(of, factors, 'L', 0);
    }
    for (int b = 0; b < columns; ++b) {
      std::vector<int> of;
      for (int a = 0; a < rows; ++a) of.push_back(begin + a * columns + b);
      std::vector<double> factors(of.size(), 1.0);
      of.push_back(first_[to] + b);
      factors.push_back(-1);
      row(of, factors, 'L', 0);
    }
  }

  // Memory of all nodes, and one more column for the largest transient. In parts of the limit, so that the numbers stay
  // small.
  void add_limit() {
    const double limit = std::max(1.0, static_cast<double>(*g_.memory_limit));
    const int largest = columns_++;
    Cbc_addCol(model_.get(), "", 0, 1e9, 0, 0, 0, nullptr, nullptr);
    cost_.push_back(0);
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
      row(mine, transient, 'L', 0);
    }
    row(of, factors, 'L', static_cast<double>(*g_.memory_limit) / limit);
  }

  const cost_graph& g_;
  std::unique_ptr<Cbc_Model, deleter> model_;
  std::vector<int> first_;    // column of each node's first choice
  std::vector<double> cost_;  // of each column
  int columns_ = 0;
  double scale_ = 1e-12;
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
