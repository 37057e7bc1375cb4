// Tensors one behind the other along an axis, and parts of one: what the axis is made of stays whole.
#pragma once

#include <cfp/graphs/selections.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

struct piece_operators : selections {
  /// Equal parts along an axis, and what they are parts of: as many as an operator may have results.
  std::vector<held> parts(const held& x, std::size_t axis, long count) {
    std::vector<long> shape = x.shape;
    shape[axis] /= count;
    const rule_sketch s = stacked(x, axis, count), back = turned(s);
    op_info form = detail::unknown_form("unstack", "", "", op_body::unstack);
    form.linear = linearity::all;
    const std::string text = s.text(), back_text = back.text();
    form.rule = text;
    op_info join = detail::unknown_form("stack", "", back_text, op_body::stack);
    join.linear = linearity::all;
    gradient_step step;
    step.op = &operator_pool::of(join);
    step.rule = back_text;
    for (int k = 0; k < static_cast<int>(count); ++k) step.operands.push({gradient_source::gradient, k});
    step.targets.push(0);
    std::vector<held> out;
    for (const int id : build.record(operator_pool::of(form, {step}), s, {build.numbers(x)}))
      out.push_back(build.computed(id, shape));
    return out;
  }
  /// Tensors one behind the other along an axis, which is all there for each of them.
  held joined(const std::vector<held>& in, std::size_t axis) {
    std::vector<long> shape = in[0].shape, first;
    shape[axis] = 0;
    bool fits = caution == 0;
    for (const held& h : in) {
      fits = fits && h.shape[axis] > 1;
      first.push_back(shape[axis]);
      shape[axis] += h.shape[axis];
    }
    if (!fits) return along(in, "Concat", "", axis, shape);
    op_info form = detail::unknown_form("join", "", "", op_body::pieces);
    return pieces(form, in, axis, first, shape, {});
  }
  /// What lies in a range of an axis. Nobody has a kernel for its gradient.
  held piece(const held& x, std::size_t axis, long first, long size) {
    if (size == x.shape[axis]) return x;
    if (first % size == 0 && x.shape[axis] % size == 0 && x.shape[axis] / size <= max_results)
      return part_of(x, axis, x.shape[axis] / size, static_cast<std::size_t>(first / size));
    std::vector<long> shape = x.shape;
    shape[axis] = size;
    if (size == 1 || caution > 0) return along({x}, "Slice", std::to_string(first), axis, shape);
    op_info form = detail::unknown_form("piece", "", "", op_body::pieces);
    return pieces(form, {x}, axis, {-first}, shape, "Slice");
  }
  /// An operator of some tensors that sees all of an axis and is element by element in the others.
  held along(const std::vector<held>& in, const std::string& called, const std::string& attributes, std::size_t axis,
             const std::vector<long>& shape) {
    std::vector<std::vector<int>> dims;
    std::vector<int> whole;
    const int rank = static_cast<int>(shape.size());
    for (std::size_t i = 0; i <= in.size(); ++i) {
      dims.emplace_back(shape.size());
      std::iota(dims.back().begin(), dims.back().end(), 0);
      dims.back()[axis] = rank + static_cast<int>(i);
      whole.push_back(dims.back()[axis]);
    }
    return some_of(build, called, attributes, in, {shape}, dims, whole).front();
  }

 private:
  // Where in the result each operand begins, `first`, may lie before it.
  held pieces(op_info form, const std::vector<held>& in, std::size_t axis, const std::vector<long>& first,
              const std::vector<long>& shape, const std::string& unknown_gradient) {
    rule_sketch s;
    std::vector<int> ids, factor(shape.size(), -1), own_axis;
    for (const held& h : in) {
      ids.push_back(build.numbers(h));
      s.operands.push_back({});
      int own = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (h.shape[d] == 1) continue;
        int& f = factor[d];
        const name& called = build.g[ids.back()].dims[own++];
        if (d == axis) own_axis.push_back(s.add(called.view(), h.shape[d], true));
        else if (f < 0) f = s.add(called.view(), h.shape[d]);
        s.operands.back().push_back({d == axis ? own_axis.back() : f});
      }
    }
    factor[axis] = s.add(name_of_size(shape[axis]), shape[axis], true);
    s.results.push_back({});
    for (const int f : factor)
      if (f >= 0) s.results[0].push_back({f});
    const std::string text = s.text();
    form.rule = text;
    form.linear = linearity::all;
    std::vector<gradient_step> steps;
    std::string back;
    if (!unknown_gradient.empty()) {
      rule_sketch turned_back = turned(s);
      back = turned_back.text();
      const std::string called = unknown_gradient + "_gradient";
      steps.emplace_back();
      steps.back().op = &operator_pool::of(detail::unknown_form(called, called, back, op_body::routine));
      steps.back().rule = back;
      steps.back().operands.push({gradient_source::gradient, 0});
      steps.back().targets.push(0);
    }
    const std::vector<int> made = build.record(operator_pool::of(form, std::move(steps)), s, ids);
    operation& o = build.g.operations.back();
    for (int f = 0; f < o.r.factors.size(); ++f) {
      const std::string_view called = o.r.factors[f].label.view();
      long begins = 0, whole = o.sizes[f];
      for (std::size_t i = 0; i < own_axis.size(); ++i)
        if (s[own_axis[i]].label == called)
          begins = std::max(0l, first[i]), whole = std::max(shape[axis], in[i].shape[axis]);
      if (s[factor[axis]].label == called)
        begins = std::max(0l, -first[0]), whole = std::max(shape[axis], in[0].shape[axis]);
      o.first.push(begins), o.whole.push(whole);
    }
    return build.computed(made.front(), shape);
  }
  // One of equal parts: they are all made where the first is asked for.
  held part_of(const held& x, std::size_t axis, long count, std::size_t which) {
    auto& known = parts_[{build.numbers(x), axis, count, x.shape}];
    if (known.empty()) known = parts(x, axis, count);
    return known[which];
  }

  // "a (part b) c -> a b c, a b c; whole part".
  rule_sketch stacked(const held& x, std::size_t axis, long count) {
    rule_sketch s;
    s.operands.push_back({});
    factor_lists one;
    int own = 0;
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
      if (x.shape[d] == 1) continue;
      const std::string called =
          own < static_cast<int>(x.view.seen().size()) && x.view.seen()[static_cast<std::size_t>(own)].size() == 1
              ? x.view.parts()[x.view.seen()[static_cast<std::size_t>(own)][0]].label
              : name_of_size(x.shape[d]);
      ++own;
      if (d != axis) {
        one.push_back({s.add(called, x.shape[d])});
        s.operands[0].push_back(one.back());
        continue;
      }
      const int part = s.add("part", count, true);
      std::vector<int> both = {part};
      if (x.shape[d] > count) {
        both.push_back(s.add(name_of_size(x.shape[d] / count), x.shape[d] / count));
        one.push_back({both.back()});
      }
      s.operands[0].push_back(both);
    }
    s.results.assign(static_cast<std::size_t>(count), one);
    return s;
  }
  static rule_sketch turned(rule_sketch s) {
    std::swap(s.operands, s.results);
    return s;
  }
  std::map<std::tuple<int, std::size_t, long, std::vector<long>>, std::vector<held>> parts_{};
};

}  // namespace cfp::graphs
