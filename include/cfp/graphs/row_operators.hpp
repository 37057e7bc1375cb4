// What sees all of a row: softmax, normalisation, maxima, cross entropy. As the catalogue has them, so that kernels and
// gradients are there; rows are moved to the end first.
#pragma once

#include <cfp/graphs/piece_operators.hpp>
#include <cfp/op/normalization.hpp>
#include <cfp/op/softmax.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

struct row_operators : piece_operators {
  held scaled_by(const held& x, double by) { return by == 1.0 ? x : elementwise(info<scaled_t>, {x}, {by}); }

  held mean(const held& x, const axes& over, bool keep) {
    double count = 1;
    for (const std::size_t d : over) count *= static_cast<double>(x.shape[d]);
    return scaled_by(sum(x, over, keep), 1 / count);
  }

  /// The largest, or smallest, along some dimensions.
  held extreme(const held& x, const axes& over, bool keep, bool largest) {
    const auto [order, kept] = rows_last(x, over);
    std::vector<long> shape = kept;
    long row = 1;
    for (const std::size_t d : over) row *= x.shape[d];
    shape.push_back(row);
    std::vector<long> out;
    for (std::size_t d = 0; d < x.shape.size(); ++d)
      if (std::find(over.begin(), over.end(), d) == over.end()) out.push_back(x.shape[d]);
      else if (keep) out.push_back(1);
    const held rows = reshaped(transposed(x, order), shape);
    if (row == 1) return reshaped(rows, out);
    const int id = build.numbers(rows);
    return build.computed(
        build.record_as_written(largest ? info<elementary::largest_t> : info<elementary::smallest_t>, {id}), out);
  }

  held softmax_along(const held& x, std::size_t axis) {
    if (x.shape[axis] == 1) return all_of(build, "Softmax", "", {x}, {x.shape}).front();
    return along_last(x, axis, [&](int id) {
      if (is_score(id)) {
        const int max = build.record_as_written(info<masked_max_t>, {id}, {1, everywhere});
        const int sum = build.record_as_written(info<masked_sum_t>, {id, max}, {1, everywhere});
        return build.record_as_written(info<masked_softmax_t>, {id, max, sum}, {1, everywhere});
      }
      const int max = build.record_as_written(info<logits_max_t>, {id});
      const int sum = build.record_as_written(info<logits_sum_t>, {id, max});
      return build.record_as_written(info<softmax_t>, {id, max, sum});
    });
  }
  /// x - max - log(sum of exp(x - max)), every step with its gradient.
  held log_softmax_along(const held& x, std::size_t axis) {
    const held less = elementwise(info<elementary::subtract_t>, {x, extreme(x, {axis}, true, true)});
    const held all = sum(elementwise(info<elementary::exponential_t>, {less}), {axis}, true);
    return elementwise(info<elementary::subtract_t>, {less, elementwise(info<elementary::logarithm_t>, {all})});
  }

  /// Over the last dimension, by a weight and, unless it is null, a bias of it.
  held layer_normalised(const held& x, const held& weight, const held* bias, double epsilon) {
    const int id = build.numbers(x), w = build.numbers(weight);
    const double per = 1 / static_cast<double>(x.shape.back());
    const int sum = build.record_as_written(info<norm_sum_t>, {id});
    const int square = build.record_as_written(info<norm_square_t>, {id, sum}, {per});
    if (bias == nullptr)
      return build.computed(build.record_as_written(info<layer_norm_unbiased_t>, {id, sum, square, w}, {per, epsilon}),
                            x.shape);
    const int b = build.numbers(*bias);
    return build.computed(build.record_as_written(info<layer_norm_t>, {id, sum, square, w, b}, {per, epsilon}),
                          x.shape);
  }
  held rms_normalised(const held& x, const held& weight, double epsilon) {
    const int id = build.numbers(x), w = build.numbers(weight);
    const int square = build.record_as_written(info<rms_square_t>, {id});
    const double per = 1 / static_cast<double>(x.shape.back());
    return build.computed(build.record_as_written(info<rms_norm_t>, {id, square, w}, {per, epsilon}), x.shape);
  }

  /// The mean, or the sum, of -log softmax(x)[target] over the rows along an axis. False where targets are computed.
  bool cross_entropy_along(const held& x, std::size_t axis, const held& targets, bool is_mean, held& out) {
    const int at = x.shape[axis] > 1 ? build.indices(targets, x.shape[axis]) : -1;
    if (at < 0 || (!targets.known && !targets.view.is_stored_so())) return false;
    axes order = all_but(x, axis);
    order.push_back(axis);
    const int id = build.numbers(transposed(x, order));
    const int max = build.record_as_written(info<logits_max_t>, {id});
    const int sum = build.record_as_written(info<logits_sum_t>, {id, max});
    const double per = is_mean ? 1 / static_cast<double>(elements_of(targets.shape)) : 1;
    out = build.computed(build.record_as_written(info<cross_entropy_t>, {id, at, max, sum}, {per}), {});
    return true;
  }

 private:
  static axes all_but(const held& x, std::size_t axis) {
    axes out;
    for (std::size_t d = 0; d < x.shape.size(); ++d)
      if (d != axis) out.push_back(d);
    return out;
  }
  // The order with some dimensions last, and the sizes of the others.
  static std::pair<axes, std::vector<long>> rows_last(const held& x, const axes& over) {
    axes order;
    std::vector<long> kept;
    for (std::size_t d = 0; d < x.shape.size(); ++d)
      if (std::find(over.begin(), over.end(), d) == over.end()) order.push_back(d), kept.push_back(x.shape[d]);
    axes last = over;
    std::sort(last.begin(), last.end());
    order.insert(order.end(), last.begin(), last.end());
    return {order, kept};
  }
  template <class Rows>
  held along_last(const held& x, std::size_t axis, const Rows& rows) {
    axes order = all_but(x, axis), back(order.size() + 1);
    order.push_back(axis);
    for (std::size_t k = 0; k < order.size(); ++k) back[order[k]] = k;
    const held moved = transposed(x, order);
    const int id = build.numbers(moved);
    return transposed(build.computed(rows(id), moved.shape), back);
  }
  // Products of two tensors that are no weights, perhaps scaled or masked: what attention takes shares of.
  bool is_score(int id) const {
    if (build.g[id].rank() < 2) return false;
    for (int steps = 0; steps < 4 && id >= 0 && build.g[id].producer >= 0; ++steps) {
      const operation& o = build.g.at(build.g[id].producer);
      if (o.op->body == op_body::product)
        return build.g[o.operands[0]].role == value_role::activation &&
               build.g[o.operands[1]].role == value_role::activation;
      const bool chooses = o.op == &info<elementary::chosen_t>;
      id = o.op->body == op_body::map ? o.operands[chooses ? 1 : 0] : -1;
    }
    return false;
  }
};

}  // namespace cfp::graphs
