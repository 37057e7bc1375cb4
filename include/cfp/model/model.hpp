// A model as it is traced: the graph of the operators that its function calls, with the shapes of what they make.
#pragma once

#include <cfp/core/error.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/model/shape_error.hpp>

#include <initializer_list>

namespace cfp::inline v0_1 {

/// A named dimension of a weight or an input.
struct dimension {
  name label;
  long size = 0;

  constexpr dimension(const name& called, long elements) : label(called), size(elements) {}
};

/// Size of a factor that the operands do not show: `split_qkv(x, size_of{"three", 3}, size_of{"h", 12})`.
struct size_of {
  name factor;
  long size = 0;
};

class model;

/// A handle of a value of the graph being traced.
struct tensor {
  model* net = nullptr;
  int id = -1;
};

class model {
 public:
  graph recorded;
  shape_error problem;  ///< the first, where problems are kept

  /// What an operator that does not fit its operands does: at run time it throws cfp::error; a model that the
  /// compiler traces keeps the first and goes on with empty tensors.
  enum class on_problem : std::uint8_t { raise, keep };
  constexpr explicit model(on_problem then = on_problem::raise) : then_(then) {}

  constexpr tensor input(std::string_view label, std::initializer_list<dimension> dims, element type, filling fill) {
    return declare(label, dims, type, value_role::input, fill);
  }
  constexpr tensor weight(std::string_view label, std::initializer_list<dimension> dims, filling fill) {
    return declare(join(scope_, label), dims, dims.size() > 1 ? element::real : element::wide, value_role::weight,
                   fill);
  }
  /// What a layer gets from the one before it: its gradient is wanted too.
  constexpr tensor activation(std::string_view label, std::initializer_list<dimension> dims) {
    return declare(label, dims, element::real, value_role::activation, {});
  }
  /// Names a tensor that was computed.
  constexpr tensor called(std::string_view label, tensor t) {
    recorded[t.id].label = join(scope_, label);
    return t;
  }
  constexpr long size(tensor t, int dim) const { return recorded[t.id].shape[dim]; }

  /// Names of what follows start with this, as parameters of checkpoints do ("h.0.attn").
  constexpr void scope(std::string_view prefix) { scope_ = long_name(prefix); }
  constexpr const long_name& scope() const { return scope_; }

  constexpr int record(const op_info& op, const list<int, max_operands>& operands, const list<double, 8>& scalars,
                       const list<size_of, 4>& given);

  static constexpr long_name join(std::string_view a, std::string_view b) {
    long_name out(a);
    if (!out.empty()) out += ".";
    out += b;
    return out;
  }

 private:
  constexpr tensor declare(std::string_view label, std::initializer_list<dimension> dims, element type, value_role role,
                           filling fill) {
    value v;
    v.label = long_name(label);
    for (const dimension& d : dims) {
      v.group.push(static_cast<signed char>(v.shape.size()));
      v.shape.push(d.size);
      v.dims.push(d.label);
    }
    v.type = type;
    v.role = role;
    v.fill = fill;
    if (!holdable(v.shape))
      return {this, fail("a tensor has a size below one, or more elements than memory can hold", v.label, v.dims[0],
                         v.shape[0], most_elements)};
    return {this, recorded.add(v)};
  }
  static constexpr long most_elements = 1l << 56;
  static constexpr bool holdable(const extents& shape) {
    long n = 1;
    for (long e : shape) {
      if (e < 1 || e > most_elements / n) return false;
      n *= e;
    }
    return true;
  }

  constexpr int fail(const char* what, const op_info& op, const name& factor, long left, long right) {
    return fail(what, join(scope_, op.label), factor, left, right);
  }
  constexpr int fail(const char* what, const long_name& where, const name& factor, long left, long right) {
    if (problem.what == nullptr) problem = {what, where, factor, left, right};
    if (then_ == on_problem::raise) throw error(words(problem));
    const int first = recorded.value_count();
    for (int i = 0; i < max_results; ++i) recorded.add(value{});
    return first;
  }
  constexpr value result_of(const operation& o, int k) const;
  constexpr factor_sizes bind(const op_info& op, const rule& r, const list<int, max_operands>& operands,
                              const list<size_of, 4>& given);
  constexpr long_name label_of(const op_info& op, const list<int, max_operands>& operands) const;

  long_name scope_;
  on_problem then_;
};

// Sizes of the factors, from the operands' shapes and the sizes given.
constexpr factor_sizes model::bind(const op_info& op, const rule& r, const list<int, max_operands>& operands,
                                   const list<size_of, 4>& given) {
  factor_sizes sizes;
  for (int f = 0; f < r.factors.size(); ++f) {
    sizes.push(0);
    for (const size_of& s : given)
      if (s.factor == r.factors[f].label) sizes[f] = s.size;
  }
  for (int i = 0; i < operands.size(); ++i) {
    const pattern& p = r.operands[i];
    const value& v = recorded[operands[i]];
    for (int d = 0; d < v.rank(); ++d) {
      long rest = v.shape[d];
      int unknown = -1;
      for (int k = 0; k < p.factors.size(); ++k) {
        if (p.group[k] != d) continue;
        const int f = p.factors[k];
        if (sizes[f] == 0) {
          if (unknown >= 0)
            return fail("give the size of one more factor", op, r.factors[f].label, 0, v.shape[d]), sizes;
          unknown = f;
        } else {
          if (rest % sizes[f] != 0)
            return fail("sizes of a factor differ", op, r.factors[f].label, sizes[f], v.shape[d]), sizes;
          rest /= sizes[f];
        }
      }
      if (unknown >= 0) sizes[unknown] = rest;
      else if (rest != 1)
        return fail("sizes of a dimension differ", op, v.dims[d], v.shape[d] / rest, v.shape[d]), sizes;
    }
  }
  for (int f = 0; f < r.factors.size(); ++f)
    if (sizes[f] <= 0) return fail("the size of a factor is not known", op, r.factors[f].label, sizes[f], 1), sizes;
  return sizes;
}

// "h.0.attn.c_attn.linear": the weight's name, but for "weight" or "bias" at its end, else the scope; then the
// operator.
constexpr long_name model::label_of(const op_info& op, const list<int, max_operands>& operands) const {
  for (int v : operands) {
    if (recorded[v].role != value_role::weight) continue;
    const std::string_view w = recorded[v].label.view();
    const bool said = w.ends_with(".weight") || w.ends_with(".bias");
    return join(said ? w.substr(0, w.rfind('.')) : w, op.label);
  }
  return join(scope_, op.label);
}

// Result number k of an operation, with the names its operands have for its dimensions.
constexpr value model::result_of(const operation& o, int k) const {
  const pattern& p = o.r.results[k];
  value v;
  v.label = label_of(*o.op, o.operands);
  if (o.r.results.size() > 1) {
    const char index[3] = {'.', static_cast<char>('0' + k), '\0'};
    v.label += index;
  }
  for (int i = 0; i < p.factors.size(); ++i) {
    const int f = p.factors[i];
    if (p.group[i] < v.shape.size()) {
      v.shape.back() *= o.sizes[f];
      continue;
    }
    name label = o.r.factors[f].label;
    for (int q = o.operands.size() - 1; q >= 0; --q) {  // the first operand that has the factor alone names it
      const pattern& from = o.r.operands[q];
      const int at = from.dim_of(f);
      if (at < 0) continue;
      int members = 0;
      for (signed char g : from.group) members += g == from.group[at];
      if (members == 1) label = recorded[o.operands[q]].dims[from.group[at]];
    }
    v.shape.push(o.sizes[f]);
    v.dims.push(label);
    v.group.push(p.group[i]);
  }
  v.type = stored_as(o, k);
  return v;
}

constexpr int model::record(const op_info& op, const list<int, max_operands>& operands, const list<double, 8>& scalars,
                            const list<size_of, 4>& given) {
  if (problem.what != nullptr) return fail(problem.what, op, {}, 0, 0);
  int ranks[max_operands]{};
  for (int i = 0; i < operands.size(); ++i) {
    if (operands[i] < 0 || operands[i] >= recorded.value_count())
      return fail("an operand is no tensor of this model", op, {}, i, recorded.value_count());
    ranks[i] = recorded[operands[i]].rank();
  }
  operation o;
  o.op = &op;
  const parsed_rule read = read_rule(op.rule, ranks);
  if (read.problem) return fail(read.problem.what, op, {}, ranks[0], operands.empty() ? 0 : ranks[operands.size() - 1]);
  o.r = read.value;
  if (o.r.operands.size() != operands.size())
    return fail("wrong number of operands", op, {}, operands.size(), o.r.operands.size());
  if (op.body == op_body::product)
    for (int f = 0; f < o.r.factors.size(); ++f)
      if (o.r.is_reduction(f) && (o.r.operands[0].dim_of(f) < 0 || o.r.operands[1].dim_of(f) < 0))
        return fail("a factor summed over by a product must stand in both operands", op, o.r.factors[f].label, 1, 2);
  if (scalars.size() != op.scalars) return fail("wrong number of scalars", op, {}, scalars.size(), op.scalars);
  for (int i = 0; i < operands.size(); ++i) {
    const int written = o.r.operands[i].group.empty() ? 0 : o.r.operands[i].group.back() + 1;
    if (written != ranks[i])
      return fail("an operand has another number of dimensions than its rule", op, {}, ranks[i], written);
    if ((recorded[operands[i]].type == element::index) != (i == op.index_operand))
      return fail("an index where numbers belong, or numbers where an index belongs; operand", op, {}, i,
                  op.index_operand);
  }
  o.sizes = bind(op, o.r, operands, given);
  if (problem.what != nullptr) return fail(problem.what, op, {}, 0, 0);
  o.operands = operands;
  o.scalars = scalars;
  const int first = recorded.value_count();
  for (int k = 0; k < o.r.results.size(); ++k) {
    const value v = result_of(o, k);
    if (!holdable(v.shape))
      return fail("a result has more elements than memory can hold", v.label, v.dims[0], v.shape[0], most_elements);
    o.results.push(recorded.add(v));
  }
  recorded.add(o);
  return first;
}

}  // namespace cfp
