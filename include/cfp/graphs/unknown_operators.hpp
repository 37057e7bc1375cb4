// Operators that nobody here knows: a rule says what may be split of them, and no kernel computes them. They are
// planned, and so are their gradients.
#pragma once

#include <cfp/graphs/graph_builder.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace detail {

// A factor for each dimension; of more than a rule has room for those of one size are one.
inline factor_lists whole_dims(rule_sketch& s, const std::vector<long>& shape, bool shared) {
  factor_lists out;
  std::vector<int> taken;
  for (const long n : without_ones(shape)) {
    const int count = static_cast<int>(s.factors.size());
    const auto free = [&](int k) { return s[k].size == n && std::find(taken.begin(), taken.end(), k) == taken.end(); };
    int f = shared ? 0 : count;
    while (f < count && !free(f)) ++f;
    if (f == count) s.add(name_of_size(n), n, true);
    taken.push_back(f);
    out.push_back({f});
  }
  return out;
}

inline op_info unknown_form(std::string_view label, std::string_view type, std::string_view rule, op_body body) {
  op_info out;
  out.label = label, out.type = type, out.rule = rule, out.body = body;
  return out;
}

// The gradient along operand i: an operator of all gradients and operands, as many as an operator may have.
inline rule_sketch gradient_sketch(const rule_sketch& s, std::size_t i) {
  rule_sketch back = s;
  back.operands = s.results;
  back.operands.insert(back.operands.end(), s.operands.begin(), s.operands.end());
  if (back.operands.size() > static_cast<std::size_t>(max_operands))
    back.operands.resize(static_cast<std::size_t>(max_operands));
  back.results = {s.operands[i]};
  for (int f = 0; f < static_cast<int>(back.factors.size()); ++f)
    if (!back.stands_in(back.operands, f) && !back.stands_in(back.results, f)) back[f].whole = false;
  return back;
}

}  // namespace detail

/// The operator of a rule, its name in the file and what its attributes tell it from others of that name; whole numbers
/// have no gradients.
inline const op_info& unknown_operator(const std::string& called, const std::string& attributes, const rule_sketch& s,
                                       bool is_whole, op_body body = op_body::routine) {
  const std::string text = s.text(), type = called + "<" + attributes + ">", of_gradient = called + "_gradient";
  op_info form = detail::unknown_form(called, type, text, body);
  form.statistic = is_whole;
  std::vector<gradient_step> steps;
  std::vector<std::string> texts(s.operands.size());
  for (std::size_t i = 0; i < s.operands.size() && !is_whole; ++i) {
    const rule_sketch back = detail::gradient_sketch(s, i);
    texts[i] = back.text();
    gradient_step step;
    for (std::size_t k = 0; k < back.operands.size(); ++k) {
      const bool is_gradient = k < s.results.size();
      step.operands.push({is_gradient ? gradient_source::gradient : gradient_source::operand,
                          static_cast<int>(is_gradient ? k : k - s.results.size())});
    }
    const std::string number = of_gradient + "<" + std::to_string(i) + " " + attributes + ">";
    step.op = &operator_pool::of(detail::unknown_form(of_gradient, number, texts[i], body));
    step.rule = texts[i];
    step.targets.push(static_cast<signed char>(i));
    steps.push_back(step);
  }
  return operator_pool::of(form, std::move(steps));
}

/// All of every tensor at once.
inline std::vector<held> all_of(graph_builder& build, const std::string& called, const std::string& attributes,
                                const std::vector<held>& in, const std::vector<std::vector<long>>& shapes,
                                bool is_whole = false) {
  if (in.size() > static_cast<std::size_t>(max_operands) || shapes.size() > static_cast<std::size_t>(max_results))
    throw bad_input("an operator that is not known may have 8 operands and 4 results, it has " +
                    std::to_string(in.size()) + " and " + std::to_string(shapes.size()));
  rule_sketch s;
  std::size_t dims = 0;
  for (const held& h : in) dims += without_ones(h.shape).size();
  for (const std::vector<long>& shape : shapes) dims += without_ones(shape).size();
  const bool shared = dims > static_cast<std::size_t>(max_factors);
  std::vector<int> operands;
  for (const held& h : in) {
    operands.push_back(build.numbers(h));
    s.operands.push_back(detail::whole_dims(s, h.shape, shared));
  }
  for (const std::vector<long>& shape : shapes) s.results.push_back(detail::whole_dims(s, shape, shared));
  const std::vector<int> made = build.record(unknown_operator(called, attributes, s, is_whole), s, operands);
  std::vector<held> out;
  for (std::size_t k = 0; k < shapes.size(); ++k) out.push_back(build.computed(made[k], shapes[k], is_whole));
  return out;
}

/// All of some dimensions, element by element in the others: `dims` number the dimensions of each operand and then of
/// each result, and one number is one dimension; `whole` are those that stay together.
inline std::vector<held> some_of(graph_builder& build, const std::string& called, const std::string& attributes,
                                 const std::vector<held>& in, const std::vector<std::vector<long>>& shapes,
                                 const std::vector<std::vector<int>>& dims, const std::vector<int>& whole,
                                 bool is_whole = false, op_body body = op_body::routine) {
  rule_sketch s;
  std::vector<int> operands, factors;
  const auto lists = [&](const std::vector<long>& shape, const std::vector<int>& numbers, int id) {
    factor_lists out;
    int own = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      const auto number = static_cast<std::size_t>(numbers[d]);
      if (number >= factors.size()) factors.resize(number + 1, -1);
      const bool stays = std::find(whole.begin(), whole.end(), numbers[d]) != whole.end();
      if (factors[number] < 0)
        factors[number] = s.add(id < 0 ? name_of_size(shape[d]) : build.g[id].dims[own].view(), shape[d], stays);
      ++own;
      out.push_back({factors[number]});
    }
    return out;
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    operands.push_back(build.numbers(in[i]));
    s.operands.push_back(lists(in[i].shape, dims[i], operands.back()));
  }
  for (std::size_t k = 0; k < shapes.size(); ++k) s.results.push_back(lists(shapes[k], dims[in.size() + k], -1));
  const std::vector<int> made = build.record(unknown_operator(called, attributes, s, is_whole, body), s, operands);
  std::vector<held> out;
  for (std::size_t k = 0; k < shapes.size(); ++k) out.push_back(build.computed(made[k], shapes[k], is_whole));
  return out;
}

/// Element by element, operands broadcast to a shape.
inline std::vector<held> element_by_element(graph_builder& build, const std::string& called,
                                            const std::string& attributes, const std::vector<held>& in,
                                            const std::vector<long>& shape, bool is_whole) {
  std::vector<int> all(shape.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int>> dims;
  for (const held& h : in) dims.emplace_back(all.end() - static_cast<std::ptrdiff_t>(h.shape.size()), all.end());
  dims.push_back(all);
  // A dimension that no operand has more than one element of comes from a known number: it stays whole.
  std::vector<int> whole;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    bool shown = false;
    for (const held& h : in)
      shown = shown || (d + h.shape.size() >= shape.size() && h.shape[d + h.shape.size() - shape.size()] != 1);
    if (!shown) whole.push_back(static_cast<int>(d));
  }
  return some_of(build, called, attributes, in, {shape}, dims, whole, is_whole, op_body::map);
}

}  // namespace cfp::graphs
