// What operators of files are taken apart into. Each derives its rule from shapes; dimensions of one element stand in
// no rule.
#pragma once

#include <cfp/graphs/unknown_operators.hpp>
#include <cfp/op/elementary.hpp>

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

using axes = std::vector<std::size_t>;

/// The number of an axis that may be counted from the end.
inline std::size_t axis_of(long given, std::size_t rank) {
  const long n = static_cast<long>(rank), at = given < 0 ? given + n : given;
  if (at < 0 || at >= n)
    throw bad_input("axis " + std::to_string(given) + " of a tensor that has " + std::to_string(n));
  return static_cast<std::size_t>(at);
}

struct primitives {
  graph_builder build{};
  bool whole_reshapes = false;  ///< what cuts or joins dimensions is an operator of all of them

  /// A functor on corresponding elements, operands broadcast to one shape.
  held elementwise(const op_info& op, const std::vector<held>& in, const std::vector<double>& scalars = {},
                   bool is_whole = false) {
    std::vector<long> shape;
    for (const held& h : in)
      if (!broadcast(shape, h.shape)) throw bad_input("its operands do not fit each other: " + shapes_of(in));
    rule_sketch s;
    std::vector<int> factor(shape.size(), -1), operands;
    for (const held& h : in) operands.push_back(build.numbers(h));
    for (std::size_t i = 0; i < in.size(); ++i) {
      factor_lists dims;
      int own = 0;
      for (std::size_t d = 0; d < in[i].shape.size(); ++d) {
        if (in[i].shape[d] == 1) continue;
        int& f = factor[shape.size() - in[i].shape.size() + d];
        if (f < 0) f = s.add(build.g[operands[i]].dims[own].view(), in[i].shape[d]);
        ++own;
        dims.push_back({f});
      }
      s.operands.push_back(dims);
    }
    s.results.push_back({});
    for (const int f : factor)
      if (f >= 0) s.results[0].push_back({f});
    return build.computed(build.record(op, s, operands, scalars).front(), shape, is_whole);
  }

  /// The sum over products: `left`, `right` and `out` number the dimensions of each. What one operand alone has, and
  /// the result has not, is summed up before.
  held einsum(const held& a, std::vector<int> left, const held& b, std::vector<int> right,
              const std::vector<int>& out) {
    rule_sketch s;
    std::map<int, int> factor;
    std::map<int, long> size;
    const held x = without_own_sums(a, left, right, out), y = without_own_sums(b, right, left, out);
    const std::vector<int> ids = {operand(x, left, s, factor, size), operand(y, right, s, factor, size)};
    s.results.push_back({});
    std::vector<long> shape;
    for (const int d : out) {
      shape.push_back(size.count(d) > 0 ? size[d] : 1);
      if (factor.count(d) > 0) s.results[0].push_back({factor[d]});
    }
    return build.computed(build.multiply(s, ids[0], ids[1]), shape);
  }

  /// The sum over some dimensions.
  held sum(const held& x, const axes& over, bool keep) {
    rule_sketch s;
    const int id = build.numbers(x);
    s.operands.push_back({}), s.results.push_back({});
    std::vector<long> shape;
    int own = 0;
    bool sums = false;
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
      const bool summed = std::find(over.begin(), over.end(), d) != over.end();
      if (!summed) shape.push_back(x.shape[d]);
      else if (keep) shape.push_back(1);
      if (x.shape[d] == 1) continue;
      const int f = s.add(build.g[id].dims[own++].view(), x.shape[d]);
      s.operands[0].push_back({f});
      if (!summed) s.results[0].push_back({f});
      sums = sums || summed;
    }
    return build.computed(sums ? build.move(s, id) : id, shape);
  }

  held transposed(held x, const axes& order) {
    if (x.known) return held_constant(permuted(*x.known, order));
    std::vector<std::size_t> place(x.shape.size()), own_order;
    std::size_t own = 0;
    for (std::size_t d = 0; d < x.shape.size(); ++d) place[d] = x.shape[d] == 1 ? x.shape.size() : own++;
    std::vector<long> shape;
    for (const std::size_t d : order) {
      shape.push_back(x.shape[d]);
      if (x.shape[d] != 1) own_order.push_back(place[d]);
    }
    x.shape = std::move(shape);
    x.view = x.view.permuted(own_order);
    x.moved = std::make_shared<int>(-1);
    return x;
  }

  held reshaped(held x, const std::vector<long>& shape) {
    if (elements_of(shape) != elements_of(x.shape))
      throw bad_input("a tensor " + shape_text(x.shape) + " cannot be seen as " + shape_text(shape));
    if (x.known) return held_constant({shape, x.known->at, x.is_whole});
    const bool only_ones = without_ones(x.shape) == without_ones(shape);
    if (!only_ones) {
      if (whole_reshapes || !x.view.reshape(without_ones(shape)))
        return all_of(build, "Reshape", shape_text(shape), {x}, {shape}).front();
      x.moved = std::make_shared<int>(-1);
    }
    x.shape = shape;
    return x;
  }

  /// Repeated along dimensions of one element: a product with ones.
  held expanded(const held& x, const std::vector<long>& to) {
    std::vector<long> shape = x.shape;
    if (!broadcast(shape, to)) throw bad_input("a tensor " + shape_text(x.shape) + " does not fit " + shape_text(to));
    std::vector<int> left, right, out;
    std::vector<long> ones;
    const std::size_t lead = shape.size() - x.shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      out.push_back(static_cast<int>(d));
      if (d >= lead) left.push_back(shape[d] == x.shape[d - lead] ? out.back() : -1 - out.back());
      if (d >= lead && shape[d] == x.shape[d - lead]) continue;
      right.push_back(out.back());
      ones.push_back(shape[d]);
    }
    if (ones.empty()) return reshaped(x, shape);
    const auto count = static_cast<std::size_t>(checked_known(ones));
    return einsum(x, left, held_constant({ones, std::vector<double>(count, 1.0), false}), right, out);
  }

  /// Rows of a table along one of its dimensions. False where the indices are computed: nobody has an operator for
  /// that.
  bool lookup(const held& table, std::size_t axis, const held& at, held& out) {
    std::vector<int> rows, places, all;
    const int rank = static_cast<int>(table.shape.size());
    for (int d = 0; d < rank; ++d) rows.push_back(d);
    for (std::size_t d = 0; d < at.shape.size(); ++d) places.push_back(rank + static_cast<int>(d));
    all = rows;
    const auto place = all.begin() + static_cast<std::ptrdiff_t>(axis);
    all.insert(all.erase(place), places.begin(), places.end());
    return selected(table, rows, static_cast<int>(axis), at, places, all, out);
  }
  /// What indices select along the dimension `along`: `rows`, `places` and `all` number the dimensions of the table, of
  /// the indices and of the result. False where the indices are computed.
  bool selected(const held& table, const std::vector<int>& rows, int along, const held& at,
                const std::vector<int>& places, const std::vector<int>& all, held& out) {
    long size = 1;
    for (std::size_t d = 0; d < rows.size(); ++d)
      if (rows[d] == along) size = table.shape[d];
    const int index = size > 1 && !table.is_whole ? build.indices(at, size) : -1;
    if (index < 0) return false;
    rule_sketch s = at.view.parts();
    const int id = build.numbers(table);
    std::map<int, std::vector<int>> lists;
    std::map<int, long> sizes;
    for (std::size_t d = 0, own = 0; d < places.size(); ++d) {
      sizes[places[d]] = at.shape[d];
      if (at.shape[d] != 1) lists[places[d]] = at.view.seen()[own++];
    }
    s.operands = {{}, at.view.stored()};
    for (std::size_t d = 0, own = 0; d < rows.size(); ++d) {
      if (sizes[rows[d]] < 2) sizes[rows[d]] = table.shape[d];
      if (table.shape[d] == 1) continue;
      const std::string called(build.g[id].dims[static_cast<int>(own++)].view());
      std::vector<int>& list = lists[rows[d]];
      if (list.empty()) list = {s.add(called, table.shape[d])};
      if (s.size_of(list) != table.shape[d]) throw bad_input("indices do not fit what they select from");
      s.operands[0].push_back(list);
      if (rows[d] == along) s[list[0]].one_hot = true;
    }
    s.results.push_back({});
    std::vector<long> shape;
    for (const int d : all) {
      shape.push_back(sizes[d]);
      if (lists.count(d) > 0 && !lists[d].empty()) s.results[0].push_back(lists[d]);
    }
    out = build.computed(build.record(info<lookup_t>, s, {id, index}).front(), shape);
    return true;
  }

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
    bool fits = in.size() <= static_cast<std::size_t>(max_operands);
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
    if (size == 1) return along({x}, "Slice", std::to_string(first), axis, shape);
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

  static std::string shapes_of(const std::vector<held>& in) {
    std::string out;
    for (const held& h : in) out += (out.empty() ? "" : ", ") + shape_text(h.shape);
    return out;
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
  held without_own_sums(const held& x, std::vector<int>& mine, const std::vector<int>& other,
                        const std::vector<int>& out) {
    axes over;
    std::vector<int> left;
    const auto has = [](const std::vector<int>& all, int d) {
      return std::find(all.begin(), all.end(), d) != all.end();
    };
    for (std::size_t d = 0; d < mine.size(); ++d)
      if (has(other, mine[d]) || has(out, mine[d])) left.push_back(mine[d]);
      else over.push_back(d);
    mine = left;
    return over.empty() ? x : sum(x, over, false);
  }
  // A transposed operand is read as it is stored.
  int operand(const held& x, const std::vector<int>& numbers, rule_sketch& s, std::map<int, int>& factor,
              std::map<int, long>& size) {
    const bool as_stored = !x.known && x.view.is_permuted();
    const int id = as_stored ? build.stored(x) : build.numbers(x);
    factor_lists dims(static_cast<std::size_t>(build.g[id].rank()));
    std::size_t own = 0;
    for (std::size_t d = 0; d < numbers.size(); ++d) {
      const auto [known, fresh] = size.try_emplace(numbers[d], x.shape[d]);
      if (!fresh && known->second == 1) known->second = x.shape[d];
      if (!fresh && x.shape[d] != 1 && known->second != x.shape[d])
        throw bad_input("its operands do not fit: " + std::to_string(known->second) + " and " +
                        std::to_string(x.shape[d]) + " elements are multiplied");
      if (x.shape[d] == 1) continue;
      const std::size_t place = as_stored ? stored_place(x.view, own) : own;
      const auto [f, added] = factor.try_emplace(numbers[d], -1);
      if (added) f->second = s.add(build.g[id].dims[static_cast<int>(place)].view(), x.shape[d]);
      dims[place] = {f->second};
      ++own;
    }
    s.operands.push_back(dims);
    return id;
  }
  static std::size_t stored_place(const tensor_view& v, std::size_t seen) {
    const auto at = std::find(v.stored().begin(), v.stored().end(), v.seen()[seen]);
    return static_cast<std::size_t>(at - v.stored().begin());
  }

  std::map<std::tuple<int, std::size_t, long, std::vector<long>>, std::vector<held>> parts_{};
};

}  // namespace cfp::graphs
