// What operators of files are taken apart into. Each derives its rule from shapes; dimensions of one element stand in
// no rule.
#pragma once

#include <cfp/graphs/unknown_operators.hpp>
#include <cfp/op/elementary.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
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
  /// How much of what may cut a dimension where another operator needs it in one piece is an operator nobody knows:
  /// from 1 on pieces along an axis, from 2 on reshapes.
  int caution = 0;

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
      if (caution > 1 || !x.view.reshape(without_ones(shape)))
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

  static std::string shapes_of(const std::vector<held>& in) {
    std::string out;
    for (const held& h : in) out += (out.empty() ? "" : ", ") + shape_text(h.shape);
    return out;
  }

 private:
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
};

}  // namespace cfp::graphs
