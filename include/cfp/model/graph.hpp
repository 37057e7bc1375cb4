// The operator graph: values (tensors) and the operations between them, in an order in which they can run.
#pragma once

#include <cfp/core/compression.hpp>
#include <cfp/model/source_place.hpp>
#include <cfp/op/element.hpp>
#include <cfp/op/info.hpp>

#include <vector>

namespace cfp::inline v0_1 {

enum class value_role : std::uint8_t {
  activation,   ///< computed forward
  input,        ///< given anew in every step
  weight,       ///< trained
  state,        ///< optimizer state of a weight
  gradient,     ///< computed backward
  constant,     ///< filled once
  accumulator,  ///< a gradient added up over the micro-batches of a step
};

enum class phase : std::uint8_t { forward, backward, update };

/// How a tensor is filled before the first step.
struct filling {
  double constant = 0;
  double deviation = 0;   ///< of a normal distribution around the constant; counter-based, so independent of the mesh
  long bound = 0;         ///< for indices: values are in [0, bound)
  bool periodic = false;  ///< repeats 4096 random numbers: quick to make, where only their being random matters
  bool may_be_ignored = false;  ///< for indices: `ignored_target` is one of the values
};

/// A target that does not count, in loss and gradient both.
inline constexpr int ignored_target = -100;

/// What targets are: indices below `bound`, and `ignored_target` where it is let in.
constexpr filling targets_below(long bound, bool may_be_ignored = true) { return {0, 0, bound, false, may_be_ignored}; }

struct value {
  long_name label;
  extents shape;
  list<name, max_dims> dims;          ///< names of the dimensions
  list<bool, max_dims> lent;          ///< as it is traced: whether a rule gave the name, which is equal to every one
  list<signed char, max_dims> group;  ///< written dimension each (refined) dimension belongs to
  element type = element::real;
  value_role role = value_role::activation;
  int producer = -1;  ///< operation, or -1
  int of = -1;        ///< the value this is a gradient or state of, or an input that this one is a slice of
  long first = 0;     ///< of a slice: where in the dimension that it is cut along it begins
  filling fill;
  source_place at{};  ///< the call that made it, or what it is a gradient or state of

  constexpr int rank() const { return shape.size(); }
  /// Bytes of one element as it is computed with and sent, where a number takes `real_bytes`. Weights rest as wide
  /// ones.
  constexpr long width(long real_bytes) const { return width_of(type, real_bytes); }
};

struct operation {
  const op_info* op = nullptr;
  rule r;
  factor_sizes sizes;
  list<int, max_operands> operands;
  list<int, max_results> results;
  list<double, 8> scalars;
  phase when = phase::forward;
  int origin = -1;     ///< backward operations: the forward operation this is a gradient of
  int hub = -1;        ///< sums of gradients and updates: the value they belong to
  factor_sizes first;  ///< of a slice (`in_slices`): where in the whole each factor begins; else empty
  factor_sizes whole;  ///< and how long that is
  int slice_of = -1;   ///< number of the forward operation of the model as it was traced
  long times = 1;      ///< how many equal ones, one behind the other, a forward operation stands for (`repeat_layers`)

  constexpr long first_of(int f) const { return first.empty() ? 0 : first[f]; }
  constexpr long whole_of(int f) const { return whole.empty() ? sizes[f] : whole[f]; }
};

/// What a vector holds per value or operation. Classes, because not every standard library fills a vector of plain
/// numbers in a constant expression.
struct index {
  int id = -1;
};
struct mark {
  bool set = false;
};

struct graph {
  std::vector<value> values;
  std::vector<operation> operations;
  int loss = -1;
  int passes = 1;  ///< how often a step runs forward and backward, each time on a micro-batch; updates run once
  compression gradients = compression::none;  ///< what sums of gradients may be sent as

  constexpr int add(value v) {
    values.push_back(v);
    return static_cast<int>(values.size()) - 1;
  }
  constexpr int add(operation o) {
    const int id = static_cast<int>(operations.size());
    for (int r : o.results) (*this)[r].producer = id;
    operations.push_back(o);
    return id;
  }
  constexpr value& operator[](int id) { return values[static_cast<std::size_t>(id)]; }
  constexpr const value& operator[](int id) const { return values[static_cast<std::size_t>(id)]; }
  constexpr operation& at(int id) { return operations[static_cast<std::size_t>(id)]; }
  constexpr const operation& at(int id) const { return operations[static_cast<std::size_t>(id)]; }
  constexpr int size() const { return static_cast<int>(operations.size()); }
  constexpr int value_count() const { return static_cast<int>(values.size()); }

  constexpr int find(std::string_view label) const {
    for (int i = 0; i < value_count(); ++i)
      if ((*this)[i].label == label) return i;
    return -1;
  }
};

/// Whether a value is the gradient of a whole weight, or a part of its sum.
constexpr bool is_weight_gradient(const graph& g, int v) {
  return g[v].role == value_role::accumulator ||
         (g[v].role == value_role::gradient && g[g[v].of].role == value_role::weight);
}
/// What sums of a value may be sent as.
constexpr compression sent_as(const graph& g, int v) {
  return is_weight_gradient(g, v) ? g.gradients : compression::none;
}

/// What sums of gradients and updates of a tensor call its dimension d.
constexpr name hub_factor(int d) {
  const char label[4] = {'.', '.', static_cast<char>('0' + d), '\0'};
  return name(label);
}
/// Which factor that is; -1: none of it is left, as of a mean over it.
constexpr int hub_factor_of(const operation& o, int d) { return o.r.find(hub_factor(d).view()); }

/// The operand that result k of an operation overwrites, or -1.
constexpr int overwritten(const operation& o, int k) {
  if (o.op->body == op_body::accumulate) return 0;
  if (o.op->body == op_body::update) return k == 0 ? 0 : k + 1;  // weight and moments, not the gradient
  return -1;
}

/// How an operation reads operand k: an update reads weights and states as they last, all else what was made of them.
/// What is only added is read as narrow as the sum is stored: so matrix libraries want what they add to a product.
constexpr element read_as(const graph& g, const operation& o, int k) {
  const value& v = g[o.operands[k]];
  for (int r = 0; r < o.results.size(); ++r)
    if (overwritten(o, r) == k) return v.role == value_role::state ? v.type : element::wide;
  const bool added = o.op->body == op_body::map && o.op->unit && v.role == value_role::weight;
  return added && v.type == element::wide ? element::real : v.type;
}

/// How result k of an operation is held: what is overwritten, single numbers, what a routine counts, row statistics,
/// products of wide numbers and what a map sums up are wide, unless it sums the whole at once. Gradients of what was
/// only added are as narrow as it is read.
constexpr element stored_as(const graph& g, const operation& o, int k) {
  const bool overwrites = o.op->body == op_body::accumulate || o.op->body == op_body::update;
  const bool counts = o.op->statistic && o.op->body != op_body::map;
  bool all_wide = o.op->body == op_body::product;
  for (int v : o.operands) all_wide = all_wide && g[v].type == element::wide;
  if (overwrites || counts || all_wide || o.r.results[k].factors.empty()) return element::wide;
  const bool of_added = o.op->unit && o.op->index_operand < 0 && o.origin >= 0 && g.at(o.origin).op->unit;
  if (o.op->body == op_body::map && !of_added)
    for (int f = 0; f < o.r.factors.size(); ++f)
      if (o.r.is_reduction(f) && (o.op->statistic || (!o.r.factors[f].one_hot && !o.r.factors[f].whole)))
        return element::wide;
  return element::real;
}

/// What a factor of an operation is called: as its operands name the dimension, else as its rule does.
constexpr name factor_name(const graph& g, const operation& o, int f) {
  for (int i = 0; i < o.operands.size(); ++i)
    if (const int d = o.r.operands[i].dim_of(f); d >= 0) return g[o.operands[i]].dims[d];
  return o.r.factors[f].label;
}

/// Operations that read each value.
constexpr std::vector<std::vector<int>> consumers(const graph& g) {
  std::vector<std::vector<int>> out(g.values.size());
  for (int i = 0; i < g.size(); ++i)
    for (int v : g.at(i).operands) {
      auto& list = out[static_cast<std::size_t>(v)];
      if (list.empty() || list.back() != i) list.push_back(i);
    }
  return out;
}

}  // namespace cfp
