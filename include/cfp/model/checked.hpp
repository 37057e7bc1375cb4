// A forward graph, and how it is trained, as they must be before anything is planned: what a session and a plan for a
// described machine ask alike.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/model/training.hpp>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

inline std::string shortest(double x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

inline std::string said_shape(const value& v) {
  std::string out;
  for (int d = 0; d < v.rank(); ++d)
    out += (d ? " " : "") + std::string(v.dims[d].view()) + "=" + std::to_string(v.shape[d]);
  return "[" + out + "]";
}

/// What stands for many layers can be planned, not be run.
inline void check_runs(const graph& g) {
  for (const operation& o : g.operations)
    if (o.times > 1)
      throw bad_input(
          "operation '" + std::string(g[o.results[0]].label.view()) + "' stands for " + std::to_string(o.times) +
          " equal ones (cfp::repeat_layers): such a graph can only be planned for a machine that is described; "
          "make it without `folded`");
}

inline void check_loss(const graph& g) {
  if (g.loss < 0) throw bad_input("the model has no loss: set net.recorded.loss to the tensor that is minimised");
  if (g.loss >= g.value_count())
    throw bad_input("the loss is tensor " + std::to_string(g.loss) + " of a model that has " +
                    std::to_string(g.value_count()) + ": is it another model's?");
  const value& v = g[g.loss];
  const std::string label(v.label.view());
  if (v.producer < 0) throw bad_input("the loss is '" + label + "', which is given, not computed");
  if (v.rank() > 0)
    throw bad_input("the loss is '" + label + "' " + said_shape(v) +
                    ", not one number: sum it up, for example by cfp::op<\"a b -> \">");
}

// Names are keys of batches, states and plans, and stand in headers.
inline void check_names(const graph& g) {
  std::map<std::string, int> first;
  for (int i = 0; i < g.value_count(); ++i) {
    const value& v = g[i];
    if (v.producer >= 0 || (v.role != value_role::weight && v.role != value_role::input)) continue;
    const std::string label(v.label.view());
    if (label.empty()) throw bad_input("a weight or an input " + said_shape(v) + " has no name");
    for (const char c : label)
      if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ')
        throw bad_input("the name '" + label + "' has a quote, a backslash or a control character in it");
    const auto [at, added] = first.try_emplace(label, i);
    if (!added)
      throw bad_input("two tensors are called '" + label + "', " + said_shape(g[at->second]) + " and " + said_shape(v) +
                      ": give each a name of its own");
  }
}

// What the loss does not depend on is not trained.
inline void check_dependence(const graph& g) {
  std::vector<bool> needed(static_cast<std::size_t>(g.value_count()));
  needed[static_cast<std::size_t>(g.loss)] = true;
  bool trains = false;
  for (int o = g.size() - 1; o >= 0; --o) {
    bool counts = false;
    for (const int r : g.at(o).results) counts = counts || needed[static_cast<std::size_t>(r)];
    if (!counts) continue;
    for (const int x : g.at(o).operands) needed[static_cast<std::size_t>(x)] = true;
  }
  for (int v = 0; v < g.value_count(); ++v) {
    if (g[v].role != value_role::weight || g[v].producer >= 0) continue;
    trains = true;
    if (!needed[static_cast<std::size_t>(v)])
      throw bad_input("the loss does not depend on weight '" + std::string(g[v].label.view()) +
                      "': use it, or leave it out");
  }
  if (!trains) throw bad_input("the model has no weights: there is nothing to train");
}

// Numbers that begin a training, or stand behind operands.
inline void check_numbers(const graph& g) {
  for (const value& v : g.values) {
    if (v.producer >= 0 || (v.role != value_role::weight && v.role != value_role::input)) continue;
    if (std::isfinite(v.fill.constant) && std::isfinite(v.fill.deviation) && v.fill.deviation >= 0) continue;
    throw bad_input("'" + std::string(v.label.view()) + "' is filled around " + shortest(v.fill.constant) +
                    " with a deviation of " + shortest(v.fill.deviation) +
                    ": both must be finite numbers, and the deviation 0 or more");
  }
  for (const operation& o : g.operations)
    for (int s = 0; s < o.scalars.size(); ++s)
      if (std::isnan(o.scalars[s]))
        throw bad_input("'" + std::string(g[o.results[0]].label.view()) + "' is computed by " +
                        std::string(o.op->label) + " with nan as its number " + std::to_string(s));
}

// An index selects a row of a table: what a batch may give ends where the table does.
inline void check_indices(const graph& g) {
  for (const operation& o : g.operations) {
    if (o.op->index_operand < 0 || o.op->index_operand >= o.operands.size()) continue;
    const value& index = g[o.operands[o.op->index_operand]];
    if (index.producer >= 0 || index.role != value_role::input) continue;
    if (index.fill.may_be_ignored && o.op->unit)
      throw bad_input("input '" + std::string(index.label.view()) + "' may hold ignored targets, and " +
                      std::string(o.op->label) + " has no row for them: declare it with {0, 0, " +
                      std::to_string(index.fill.bound) + "}");
    for (int f = 0; f < o.r.factors.size(); ++f) {
      if (!o.r.factors[f].one_hot) continue;
      const std::string label(index.label.view());
      if (index.fill.bound < 1)
        throw bad_input("input '" + label + "' holds indices and says no bound: declare it with {0, 0, " +
                        std::to_string(o.sizes[f]) + "}");
      if (index.fill.bound > o.sizes[f])
        throw bad_input("input '" + label + "' holds indices below " + std::to_string(index.fill.bound) +
                        ", what they select from ('" + std::string(o.r.factors[f].label.view()) + "' of " +
                        std::string(o.op->label) + ") has " + std::to_string(o.sizes[f]));
    }
  }
}

}  // namespace detail

/// The graph itself. Throws bad_input for a loss that is none, names that stand twice, weights that the loss does not
/// depend on, indices without bound, numbers that are none.
inline const graph& checked(const graph& forward) {
  detail::check_loss(forward);
  detail::check_names(forward);
  detail::check_dependence(forward);
  detail::check_indices(forward);
  detail::check_numbers(forward);
  return forward;
}

/// What plans, tables and headers call a model. Throws bad_input.
inline const std::string& checked_name(const std::string& label) {
  if (label.empty()) throw bad_input("name must be a text: plans and tables call the model so");
  for (const char c : label)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ')
      throw bad_input("name must be a text without quotes, backslashes and control characters: it stands in headers");
  return label;
}

/// The same training in so many micro-batches, where that is said beside. Throws bad_input where both say otherwise.
inline training in_micro_batches(training how, int pieces) {
  if (pieces < 1) throw bad_input("micro_batches must be at least 1, is " + std::to_string(pieces));
  if (pieces > 1 && how.micro_batches > 1 && pieces != how.micro_batches)
    throw bad_input("micro_batches is " + std::to_string(pieces) + ", and of how it is trained " +
                    std::to_string(how.micro_batches) + ": say it once");
  if (pieces > 1) how.micro_batches = pieces;
  return how;
}

/// Throws bad_input for numbers that no training has.
inline const training& checked(const training& how) {
  using detail::shortest;
  const auto need = [](const char* what, double is, double least, double below) {
    if (!(is >= least && is < below))
      throw bad_input("how it is trained: " + std::string(what) + " must be at least " + shortest(least) +
                      (below < HUGE_VAL ? " and below " + shortest(below) : "") + ", is " + shortest(is));
  };
  need("rate", how.rate, 0, HUGE_VAL);
  need("beta1", how.beta1, 0, 1);
  need("beta2", how.beta2, 0, 1);
  need("epsilon", how.epsilon, 0, HUGE_VAL);
  need("decay", how.decay, 0, HUGE_VAL);
  need("warmup", static_cast<double>(how.warmup), 0, HUGE_VAL);
  need("steps", static_cast<double>(how.steps), 0, HUGE_VAL);
  need("last_rate", how.last_rate, 0, HUGE_VAL);
  need("clip", how.clip, 0, HUGE_VAL);
  need("micro_batches", how.micro_batches, 1, HUGE_VAL);
  if (how.steps > 0 && how.warmup > how.steps)
    throw bad_input("how it is trained: a warmup of " + std::to_string(how.warmup) + " steps is longer than all " +
                    std::to_string(how.steps) + " steps");
  return how;
}

}  // namespace cfp
