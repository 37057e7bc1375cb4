// What Adafactor does for a weight, as operations with rules: mean squares are sums over what rows or columns lack.
#pragma once

#include <cfp/model/weight_operations.hpp>
#include <cfp/op/adafactor.hpp>

namespace cfp::inline v0_1::detail {

struct adafactor_update {
  weight_operations& w;
  using dimensions = weight_operations::dimensions;

  // A mean square that lasts, of what has some of the weight's dimensions, from squares that are added up over the
  // others.
  constexpr int mean_square(int weight, int gradient, const char* square, const char* suffix, const char* next,
                            const dimensions& some) {
    operation squared = w.of_weight(weight, info<square_sum_t>, {w.all_of(weight)}, {some}, phase::update);
    squared.operands.push(gradient);
    const int sum = w.result(squared, w.made(weight, square, some));
    operation o = w.of_weight(weight, info<mean_square_t>, {some, some}, {some}, phase::update);
    o.operands = {{w.made(weight, suffix, some, value_role::state), sum}, 2};
    o.scalars = {{static_cast<double>(elements(w.g[weight].shape)) / static_cast<double>(elements(w.g[sum].shape)),
                  w.options.epsilon * w.options.epsilon},
                 2};
    return w.result(o, w.made(weight, next, some, value_role::state));
  }

  // Of a weight: one mean square, or of a matrix those of its rows and of its columns, and the sum of those of rows.
  struct mean_squares {
    list<int, 3> values;
    list<dimensions, 3> dims;
    double rows = 0;  // none: one for each number

    constexpr void push(int value, const dimensions& some) {
      values.push(value);
      dims.push(some);
    }
  };
  constexpr mean_squares mean_squares_of(int weight, int gradient) {
    mean_squares out;
    const int rank = w.written_rank(weight);
    if (rank < 2) {
      const dimensions all = w.all_of(weight);
      out.push(mean_square(weight, gradient, ".grad.square", ".exp_avg_sq", ".exp_avg_sq.next", all), all);
      return out;
    }
    const dimensions many = w.some_of(weight, 0, rank - 2);
    dimensions row = many, column = many;
    out.rows = 1;
    for (const signed char d : w.some_of(weight, rank - 2, rank - 1)) {
      row.push(d);
      out.rows *= static_cast<double>(w.g[weight].shape[d]);
    }
    for (const signed char d : w.some_of(weight, rank - 1, rank)) column.push(d);
    out.push(mean_square(weight, gradient, ".grad.square_row", ".exp_avg_sq_row", ".exp_avg_sq_row.next", row), row);
    out.push(mean_square(weight, gradient, ".grad.square_col", ".exp_avg_sq_col", ".exp_avg_sq_col.next", column),
             column);
    operation sum = w.of_weight(weight, info<copy_t>, {row}, {many}, phase::update);
    sum.operands.push(out.values[0]);
    out.push(w.result(sum, w.made(weight, ".exp_avg_sq_row.sum", many)), many);
    return out;
  }

  constexpr void update(int weight, int gradient, int factor) {
    const dimensions all = w.all_of(weight);
    if (factor >= 0) {
      operation o = w.of_weight(weight, info<clipped_t>, {all, {}}, {all}, phase::update);
      o.operands = {{gradient, factor}, 2};
      gradient = w.result(o, w.made(weight, ".grad.clipped", all));
    }
    const mean_squares means = mean_squares_of(weight, gradient);
    const bool is_matrix = means.rows > 0;
    const auto with_means = [&](operation& o) {
      for (int k = 0; k < means.values.size(); ++k) {
        o.r.operands.push(weight_operations::pattern_of(o.r, means.dims[k]));
        o.operands.push(means.values[k]);
      }
    };
    operation relative = w.of_weight(weight, is_matrix ? info<relative_square_of_matrix_t> : info<relative_square_t>,
                                     {all}, {{}}, phase::update);
    relative.operands.push(gradient);
    with_means(relative);
    if (is_matrix) relative.scalars.push(means.rows);
    const int size = w.result(relative, w.number(weight, ".change.square"));
    operation o = w.of_weight(weight, is_matrix ? info<adafactor_of_matrix_t> : info<adafactor_t>, {all, all}, {all},
                              phase::update);
    o.operands = {{weight, gradient}, 2};
    with_means(o);
    o.r.operands.push({});
    o.operands.push(size);
    o.scalars = {{static_cast<double>(elements(w.g[weight].shape)), w.decay_of(weight), w.options.rate,
                  static_cast<double>(w.options.warmup), static_cast<double>(w.options.steps), w.options.last_rate},
                 6};
    if (is_matrix) o.scalars.push(means.rows);
    w.result(o, w.made(weight, ".next", all, value_role::weight));
  }
};

}  // namespace cfp::detail
