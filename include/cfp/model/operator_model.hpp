// The model of one operator: its operands are weights, its loss a weighted sum of its results.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/op/catalogue.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// What an operator is tried on.
struct operator_sample {
  std::vector<size_of> sizes{};     ///< of factors of its rule; others are of 4, 6, 8, 2, 4, ... elements
  std::vector<double> scalars{};    ///< those that follow its operands; 0.5 each, where there are less
  std::vector<filling> operands{};  ///< what they are filled with; others by normal numbers around 0.3, deviation 0.8
  int dots = 1;                     ///< dimensions that "..." of its rule stands for: "any0", "any1", ...
};

/// What `op` makes: a rule with a name, perhaps a functor.
template <class Op>
concept operator_object = requires {
  typename Op::self;
  Op::rule_source;
};

namespace detail {

struct operator_model_maker {
  const op_info& op;
  const operator_sample& sample;
  model net{};
  rule r = parse(op.rule, sample.dots);
  factor_sizes sizes{};

  // What "..." stands for is called as a dimension may be.
  static name called(const factor& f) {
    const std::string label(f.label.view());
    return label.starts_with("..") ? name("any" + label.substr(2)) : f.label;
  }

  void take_sizes() {
    static constexpr long usual[] = {4, 6, 8, 2};
    for (int f = 0; f < r.factors.size(); ++f) sizes.push(usual[f % 4]);
    for (const size_of& s : sample.sizes) {
      int f = 0;
      while (f < r.factors.size() && !(called(r.factors[f]) == s.factor)) ++f;
      if (f == r.factors.size())
        throw bad_input("operator '" + std::string(op.label) + "': its rule \"" + std::string(op.rule) +
                        "\" has no factor '" + std::string(s.factor.view()) + "'");
      sizes[f] = s.size;
    }
  }

  // A tensor of the model whose dimensions are those of a pattern, or of another tensor.
  tensor declare(std::string label, value v, value_role role, element type, const filling& fill) {
    v.label = long_name(label);
    v.role = role;
    v.type = type;
    v.fill = fill;
    v.producer = -1;
    if (const sentence why = size_problem(v); !why.empty()) throw bad_input(std::string(why.view()));
    return {&net, net.recorded.add(v)};
  }

  // What says that it is linear, and is more than its rule, is given sums, whose parts a plan may pass on.
  bool of_sums() const { return op.linear == linearity::all && !op.unit; }

  // A tensor of one dimension more, added up along it.
  tensor sum(const std::string& label, const value& like, const filling& fill) {
    static constexpr cfp::op<"addend ..., addend -> ..."> added_up;
    static constexpr long addends = 12;  // divides by the sizes of most axes
    value all, ones;
    for (value* v : {&all, &ones}) {
      v->group.push(0);
      v->shape.push(addends);
      v->dims.push("addend");
      v->lent.push(false);
    }
    for (int d = 0; d < like.rank(); ++d) {
      all.group.push(static_cast<signed char>(like.group[d] + 1));
      all.shape.push(like.shape[d]);
      all.dims.push(like.dims[d]);
      all.lent.push(like.lent[d]);
    }
    const tensor x = declare(label, all, value_role::weight, element::real, fill);
    return added_up(x, declare("addends of " + label, ones, value_role::constant, element::real, {0.25}));
  }

  tensor operand(int k) {
    const pattern& p = r.operands[k];
    value v;
    for (int i = 0; i < p.factors.size(); ++i) {
      const int f = p.factors[i];
      if (p.group[i] < v.shape.size()) {  // a dimension of several
        v.shape.back() *= sizes[f];
        v.lent.back() = true;
        continue;
      }
      v.group.push(static_cast<signed char>(v.shape.size()));
      v.shape.push(sizes[f]);
      v.dims.push(called(r.factors[f]));
      v.lent.push(false);
    }
    const std::string label = "operand " + std::to_string(k);
    if (k != op.index_operand) {
      const auto at = static_cast<std::size_t>(k);
      const filling usual{0.3, 0.8}, fill = at < sample.operands.size() ? sample.operands[at] : usual;
      if (of_sums() && v.rank() < max_dims) return sum(label, v, fill);
      return declare(label, v, value_role::weight, element::real, fill);
    }
    long bound = 0;
    for (int f = 0; f < r.factors.size(); ++f)
      if (r.factors[f].one_hot) bound = sizes[f];
    return declare(label, v, value_role::input, element::index, {0, 0, bound});
  }

  // Sizes of factors that no operand shows by themselves.
  list<size_of, 4> given() const {
    list<size_of, 4> out;
    for (int f = 0; f < r.factors.size(); ++f) {
      bool shown = false;
      for (const pattern& p : r.operands)
        if (const int d = p.dim_of(f); d >= 0)
          shown = shown || std::count(p.group.begin(), p.group.end(), p.group[d]) == 1;
      if (!shown && out.size() < 4) out.push({r.factors[f].label, sizes[f]});
    }
    return out;
  }

  graph run() {
    take_sizes();
    list<int, max_operands> operands;
    for (int k = 0; k < r.operands.size(); ++k) operands.push(operand(k).id);
    list<double, 8> scalars;
    for (int s = 0; s < op.scalars; ++s)
      scalars.push(static_cast<std::size_t>(s) < sample.scalars.size() ? sample.scalars[static_cast<std::size_t>(s)]
                                                                       : 0.5);
    const int first = net.record(op, operands, scalars, given());
    static constexpr cfp::op<"..., ... -> "> sum_of_products;
    tensor loss;
    for (int k = 0; k < r.results.size(); ++k) {
      const tensor y{&net, first + k};
      value like = net.recorded[y.id];
      for (bool& lent : like.lent) lent = true;
      for (const bool again : {false, true}) {
        if (again && !of_sums()) continue;  // what two read is made apart from what they make of it
        const std::string label = "weights of result " + std::to_string(k) + (again ? ", again" : "");
        const tensor part = sum_of_products(y, declare(label, like, value_role::constant, element::real, {0.1, 1.0}));
        loss = loss.id < 0 ? part : add(loss, part);
      }
    }
    net.recorded.loss = loss.id;
    return net.recorded;
  }
};

}  // namespace detail

/// A forward graph: the operator on random operands ("operand 0", ...; one that says it is linear on sums of such), and
/// the sum of its results' elements, each times a random number, as loss. Throws bad_input for a factor its rule has
/// not, cfp::error for sizes that do not fit.
inline graph operator_model(const op_info& op, const operator_sample& sample = {}) {
  return detail::operator_model_maker{op, sample}.run();
}
template <operator_object Op>
graph operator_model(const Op&, const operator_sample& sample = {}) {
  return operator_model(info<typename Op::self>, sample);
}

}  // namespace cfp
