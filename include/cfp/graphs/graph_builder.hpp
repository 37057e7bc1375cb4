// A graph as it is put together from a file: what the file holds is declared when it is first read, and movements and
// products are recorded under rules that come from shapes.
#pragma once

#include <cfp/graphs/graph_record.hpp>
#include <cfp/graphs/held.hpp>
#include <cfp/graphs/operator_pool.hpp>
#include <cfp/model/batch.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

class graph_builder : public graph_record {
 public:
  batch fixed;                                       ///< inputs that the file tells: masks, positions
  std::vector<std::shared_ptr<given_tensor>> given;  ///< what was asked for of the file

  /// A computed tensor, seen in the shape that the file says.
  held computed(int id, std::vector<long> shape, bool is_whole = false) const {
    held out;
    out.shape = std::move(shape);
    out.is_whole = is_whole;
    out.id = id;
    out.view = tensor_view(dims_of(id));
    return out;
  }

  /// What stands for a tensor in the graph, of numbers, as it is stored: the file's tensors are declared now.
  int stored(const held& h) {
    if (h.id >= 0) return h.id;
    if (h.known) return declared(h);
    given_tensor& t = *h.given;
    if (t.numbers < 0) {
      const bool twin = t.indices >= 0;
      const long dims = static_cast<long>(without_ones(t.shape).size());
      t.numbers = declare(t.label + (twin ? ".numbers" : ""), t.shape, t.names,
                          t.is_weight && dims < 2 ? element::wide : element::real,
                          t.is_weight ? value_role::weight : value_role::input, {0.0, t.is_weight ? 0.02 : 1.0});
      if (!twin) given.push_back(h.given);
    }
    return t.numbers;
  }
  /// The same as it is seen, by one movement where that is another order.
  int numbers(const held& h) {
    const int id = stored(h);
    if (h.known || h.view.is_stored_so()) return id;
    if (*h.moved < 0) *h.moved = move(h.view.movement(), id);
    return *h.moved;
  }
  /// What holds indices below `bound` as it is stored, or -1 where they are computed.
  int indices(const held& h, long bound) {
    if (h.id >= 0) return -1;
    if (h.known) return declared_indices(h, bound);
    given_tensor& t = *h.given;
    if (t.is_weight || !t.is_whole) return -1;
    if (t.indices < 0) {
      if (t.numbers < 0) given.push_back(h.given);
      t.indices = declare(t.label + (t.numbers >= 0 ? ".indices" : ""), t.shape, t.names, element::index,
                          value_role::input, {0, 0, bound});
    }
    g[t.indices].fill.bound = std::min(g[t.indices].fill.bound, bound);
    return t.indices;
  }

  /// Elements in another order, or added up.
  int move(const rule_sketch& sketch, int operand) {
    op_info form;
    const std::string text = sketch.text();
    form.label = "rearrange";
    form.rule = text;
    form.linear = linearity::all;
    form.unit = true;
    return record(operator_pool::of(form), sketch, {operand}).front();
  }
  /// Sums of products.
  int multiply(const rule_sketch& sketch, int left, int right) {
    op_info form;
    const std::string text = sketch.text();
    form.label = "einsum";
    form.rule = text;
    form.body = op_body::product;
    form.linear = linearity::each;
    return record(operator_pool::of(form), sketch, {left, right}).front();
  }

 private:
  int declared(const held& h) {
    const constant& c = *h.known;
    if (c.at.empty()) throw bad_input("a tensor has no elements");
    if (c.is_uniform()) {
      const int id = declare(free_label(), c.shape, {}, element::real, value_role::constant, {c.at.front()});
      return id;
    }
    const std::string called = free_label();
    const int id = declare(called, c.shape, {}, element::real, value_role::input, {0, 1});
    fixed[called] = std::vector<float>(c.at.begin(), c.at.end());
    return id;
  }
  int declared_indices(const held& h, long bound) {
    const constant& c = *h.known;
    std::vector<std::int32_t> at;
    for (const double x : c.at) {
      const double place = x < 0 ? x + static_cast<double>(bound) : x;
      if (!(place >= 0 && place < static_cast<double>(bound)))
        throw bad_input("an index is " + std::to_string(static_cast<long>(x)) + ", and what it selects from has " +
                        std::to_string(bound));
      at.push_back(static_cast<std::int32_t>(place));
    }
    const std::string called = free_label();
    const int id = declare(called, c.shape, {}, element::index, value_role::input, {0, 0, bound});
    fixed[called] = std::move(at);
    return id;
  }
};

}  // namespace cfp::graphs
