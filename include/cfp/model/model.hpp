// A model as it is traced: the graph of the operators that its function calls, with the shapes of what they make.
#pragma once

#include <cfp/core/binding_explainer.hpp>
#include <cfp/core/shape_error.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/model/shape_problem.hpp>
#include <cfp/model/tensor.hpp>

#include <initializer_list>

namespace cfp::inline v0_1 {

class model {
 public:
  graph recorded;
  shape_problem problem;  ///< the first, where problems are kept

  /// What an operator that does not fit its operands does: at run time it throws cfp::error; a model that the
  /// compiler traces keeps the first and goes on with empty tensors.
  enum class on_problem : std::uint8_t { raise, keep };
  constexpr explicit model(on_problem then = on_problem::raise) : then_(then) {}

  // What is wrong is said with the place of the call, which default arguments know.
  constexpr tensor input(std::string_view label, std::initializer_list<dimension> dims, element type, filling fill,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return declare(label, dims, type, value_role::input, fill, {file, line});
  }
  constexpr tensor weight(std::string_view label, std::initializer_list<dimension> dims, filling fill,
                          const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    const element type = dims.size() > 1 ? element::real : element::wide;
    return declare(join(scope_, label, {file, line}), dims, type, value_role::weight, fill, {file, line});
  }
  /// What a layer gets from the one before it: its gradient is wanted too.
  constexpr tensor activation(std::string_view label, std::initializer_list<dimension> dims,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return declare(label, dims, element::real, value_role::activation, {}, {file, line});
  }
  /// Names a tensor that was computed.
  constexpr tensor called(std::string_view label, tensor t, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
    recorded[t.id].label = join(scope_, label, {file, line});
    return t;
  }
  /// Calls a dimension of a tensor otherwise from here on: where two names are meant to be one.
  constexpr tensor renamed(tensor t, std::string_view from, std::string_view to, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) {
    at_ = {file, line};
    value& v = recorded[t.id];
    int found = -1, taken = -1;
    for (int d = 0; d < v.rank(); ++d) {
      if (v.dims[d] == from) found = d;
      else if (v.dims[d] == to) taken = d;
    }
    if (found >= 0 && taken < 0) {
      v.dims[found] = named_at<name>(at_, to);
      v.lent[found] = false;
      return t;
    }
    sentence why;
    if (found < 0) say(why, v.label.view(), ": no dimension is called '", from, "', they are (");
    else say(why, v.label.view(), ": '", from, "' cannot be called '", to, "', as another dimension of (");
    for (int d = 0; d < v.rank(); ++d) say(why, d ? " " : "", v.dims[d].view());
    say(why, found < 0 ? ")" : ") is");
    return {this, fail(why)};
  }
  constexpr long size(tensor t, int dim) const { return recorded[t.id].shape[dim]; }

  /// Names of what follows start with this, as parameters of checkpoints do ("h.0.attn").
  constexpr void scope(std::string_view prefix, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    scope_ = named_at<long_name>({file, line}, prefix);
  }
  constexpr const long_name& scope() const { return scope_; }

  long times = 1;  ///< as many equal operations what is recorded stands for (`repeat_layers`)

  constexpr int record(const op_info& op, const list<int, max_operands>& operands, const list<double, 8>& scalars,
                       const list<size_of, 4>& given, const source_place& at = {});

  static constexpr long_name join(std::string_view a, std::string_view b, const source_place& at = {}) {
    return named_at<long_name>(at, a, a.empty() ? "" : ".", b);
  }

 private:
  constexpr tensor declare(std::string_view label, std::initializer_list<dimension> dims, element type, value_role role,
                           filling fill, const source_place& at) {
    at_ = at;
    value v;
    v.label = named_at<long_name>(at, label);
    v.at = at;
    for (const dimension& d : dims) {
      v.group.push(static_cast<signed char>(v.shape.size()));
      v.shape.push(d.size);
      const bool lent = d.label.view().starts_with('~');
      v.dims.push(lent ? name(d.label.view().substr(1)) : d.label);
      v.lent.push(lent);
    }
    v.type = type;
    v.role = role;
    v.fill = fill;
    for (const sentence& why : {name_problem(v), size_problem(v)})
      if (!why.empty()) return {this, fail(why)};
    return {this, recorded.add(v)};
  }

  template <class... Piece>
  constexpr int fail_at(const op_info& op, const Piece&... piece) {
    sentence why;
    say(why, join(scope_, op.label, at_).view(), ": ", piece...);
    return fail(why);
  }
  constexpr int fail(const sentence& why) { return fail(shape_problem{"operands do not fit", {}, {}, 0, 0, why}); }
  constexpr int fail(const shape_problem& e) {
    if (then_ == on_problem::raise) throw shape_error(words(e, at_));
    if (problem.what == nullptr) problem = e;
    const int first = recorded.value_count();
    for (int i = 0; i < max_results; ++i) recorded.add(value{});
    return first;
  }
  constexpr parsed_rule rule_of(const op_info& op, const list<int, max_operands>& operands) const;
  constexpr binding bind(const op_info& op, const parsed_rule& read, const list<int, max_operands>& operands,
                         const list<size_of, 4>& given);
  constexpr value result_of(const operation& o, const binding& b, int k) const;
  constexpr long_name label_of(const op_info& op, const list<int, max_operands>& operands) const;

  long_name scope_;
  source_place at_;  // the call that is recorded
  on_problem then_;
};

constexpr parsed_rule model::rule_of(const op_info& op, const list<int, max_operands>& operands) const {
  int ranks[max_operands]{};
  for (int i = 0; i < operands.size(); ++i) ranks[i] = recorded[operands[i]].rank();
  return read_rule(op.rule, ranks);
}

// The rule of an operator, read for its operands, meets their dimensions, or says why it does not fit them. Names are
// views of either.
constexpr binding model::bind(const op_info& op, const parsed_rule& read, const list<int, max_operands>& operands,
                              const list<size_of, 4>& given) {
  const partition anywhere = partition::replicated(max_dims);
  list<dimensions, max_operands> shapes;
  list<operand_view, max_operands> views;
  for (int i = 0; i < operands.size(); ++i) {
    const value& v = recorded[operands[i]];
    dimensions d;
    for (int k = 0; k < v.rank(); ++k) d.push(v.dims[k].view(), v.shape[k], k, v.lent[k]);
    shapes.push(d);
  }
  for (int i = 0; i < operands.size(); ++i) views.push({&shapes[i], &anywhere, recorded[operands[i]].label.view()});
  list<given_size, 4> sizes;
  for (const size_of& s : given) sizes.push({s.factor.view(), s.size});

  inference it;
  it.bound.problem = fits(outline(op.rule), views);
  if (!it.bound.problem && read.problem)
    it.bound.problem = {binding_problem::unreadable, -1, -1, 0, 0, {}, read.problem};
  if (!it.bound.problem) it.bound = cfp::bind(read.value, views, sizes);
  if (it.bound.problem) {
    const long_name where = join(scope_, op.label, at_);
    const operator_view seen{where.view(), op.rule, op.linear, true};
    fail(detail::binding_explainer{{seen, it, views, mesh_shape{}}}.words());
  }
  return it.bound;
}

// "h.0.attn.c_attn.linear": the weight's name, but for "weight" or "bias" at its end, else the scope; then the
// operator.
constexpr long_name model::label_of(const op_info& op, const list<int, max_operands>& operands) const {
  for (int v : operands) {
    if (recorded[v].role != value_role::weight) continue;
    const std::string_view w = recorded[v].label.view();
    const bool said = w.ends_with(".weight") || w.ends_with(".bias");
    return join(said ? w.substr(0, w.rfind('.')) : w, op.label, at_);
  }
  return join(scope_, op.label, at_);
}

// Result number k of an operation, with the names its operands have for its dimensions.
constexpr value model::result_of(const operation& o, const binding& b, int k) const {
  const pattern& p = o.r.results[k];
  const dimensions named = result_dimensions(b, k);
  value v;
  v.label = label_of(*o.op, o.operands);
  if (o.r.results.size() > 1) {
    const char index[3] = {'.', static_cast<char>('0' + k), '\0'};
    v.label = named_at<long_name>(at_, v.label, index);
  }
  v.at = at_;
  for (int i = 0; i < p.factors.size(); ++i) {
    if (p.group[i] < v.shape.size()) {  // a dimension of several: the rule gave its name
      v.shape.back() *= o.sizes[p.factors[i]];
      v.dims.back() = o.r.factors[p.factors[p.group.find(p.group[i])]].label;
      v.lent.back() = true;
      continue;
    }
    v.shape.push(o.sizes[p.factors[i]]);
    v.dims.push(name(named.parts[i]));
    v.lent.push(named.lent[i]);
    v.group.push(p.group[i]);
  }
  v.type = stored_as(recorded, o, k);
  return v;
}

constexpr int model::record(const op_info& op, const list<int, max_operands>& operands, const list<double, 8>& scalars,
                            const list<size_of, 4>& given, const source_place& at) {
  at_ = at;
  if (problem.what != nullptr) return fail(problem);
  for (int i = 0; i < operands.size(); ++i)
    if (operands[i] < 0 || operands[i] >= recorded.value_count())
      return fail_at(op, "operand ", static_cast<long>(i), " is no tensor of this model");
  const parsed_rule read = rule_of(op, operands);
  const binding b = bind(op, read, operands, given);
  if (b.problem) return fail(problem);
  operation o;
  o.op = &op, o.r = b.r, o.sizes = b.sizes, o.operands = operands, o.scalars = scalars;
  o.times = times;
  if (scalars.size() != op.scalars)
    return fail_at(op, "is given ", static_cast<long>(scalars.size()), " numbers behind its operands, takes ",
                   static_cast<long>(op.scalars));
  for (int i = 0; i < operands.size(); ++i)
    if (const bool is_index = recorded[operands[i]].type == element::index; is_index != (i == op.index_operand)) {
      return fail_at(op, "operand ", static_cast<long>(i), " '", recorded[operands[i]].label.view(),
                     is_index ? "' holds indices, the operator takes numbers there"
                              : "' holds numbers, the operator takes indices there (element::index)");
    }
  for (int f = 0; f < o.r.factors.size(); ++f) {
    const name& label = o.r.factors[f].label;
    if (op.body == op_body::product && o.r.is_reduction(f) &&
        (o.r.operands[0].dim_of(f) < 0 || o.r.operands[1].dim_of(f) < 0))
      return fail_at(op, "'", label.view(), "' is summed over by a product and must stand in both operands");
    if (o.sizes[f] > 0) continue;
    return fail_at(op, "the operands do not show the size of '", label.view(), "' in \"", op.rule,
                   "\": give cfp::size_of{\"", label.view(), "\", its size} behind them");
  }
  list<value, max_results> results;  // before any is added: names are views of what is recorded
  for (int k = 0; k < o.r.results.size(); ++k) {
    results.push(result_of(o, b, k));
    const value& v = results.back();
    if (const sentence why = size_problem(v); !why.empty()) return fail(why);
  }
  const int first = recorded.value_count();
  for (const value& v : results) o.results.push(recorded.add(v));
  recorded.add(o);
  return first;
}

}  // namespace cfp
