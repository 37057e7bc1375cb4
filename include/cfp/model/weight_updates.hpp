// What a step does for weights once their gradients are complete: adds them up, measures them, updates the weights.
#pragma once

#include <cfp/model/gradient_graph.hpp>
#include <cfp/model/training.hpp>
#include <cfp/op/adafactor.hpp>
#include <cfp/op/optimizer.hpp>

#include <initializer_list>
#include <string_view>

namespace cfp::inline v0_1::detail {

struct weight_updates {
  gradient_graph& sums;
  const training& options;
  graph& g = sums.g;
  std::vector<index> waiting{};  // weights that are updated at the end
  int squares = -1;              // of all gradients

  using dimensions = list<signed char, max_dims>;  // of a weight, ascending

  constexpr dimensions all_of(int weight) const {
    dimensions out;
    for (int d = 0; d < g[weight].rank(); ++d) out.push(static_cast<signed char>(d));
    return out;
  }
  // Those of some written dimensions: [first, end).
  constexpr dimensions some_of(int weight, int first, int end) const {
    dimensions out;
    for (int d = 0; d < g[weight].rank(); ++d)
      if (g[weight].group[d] >= first && g[weight].group[d] < end) out.push(static_cast<signed char>(d));
    return out;
  }
  constexpr int written_rank(int weight) const { return g[weight].group.empty() ? 0 : g[weight].group.back() + 1; }

  // An operation of the step that belongs to a weight. Its operands and results have some of the weight's dimensions
  // each.
  constexpr operation of_weight(int weight, const op_info& op, std::initializer_list<dimensions> operands,
                                std::initializer_list<dimensions> results, phase when) const {
    operation o;
    o.op = &op;
    o.when = when;
    o.hub = weight;
    for (int d = 0; d < g[weight].rank(); ++d) {
      bool has = false;
      for (const dimensions& some : operands) has = has || some.contains(static_cast<signed char>(d));
      if (!has) continue;
      o.r.factors.push({hub_factor(d)});
      o.sizes.push(g[weight].shape[d]);
    }
    for (const dimensions& some : operands) o.r.operands.push(pattern_of(o.r, some));
    for (const dimensions& some : results) o.r.results.push(pattern_of(o.r, some));
    return o;
  }
  static constexpr pattern pattern_of(const rule& r, const dimensions& some) {
    pattern p;
    for (const signed char d : some) {
      p.factors.push(static_cast<signed char>(r.find(hub_factor(d).view())));
      p.group.push(static_cast<signed char>(p.group.size()));
    }
    return p;
  }
  constexpr operation of_weight(int weight, const op_info& op, int operands, int results, phase when) const {
    operation o = of_weight(weight, op, {all_of(weight)}, {all_of(weight)}, when);
    while (o.r.operands.size() < operands) o.r.operands.push(o.r.operands[0]);
    while (o.r.results.size() < results) o.r.results.push(o.r.results[0]);
    return o;
  }

  // A tensor of the step that has some of a weight's dimensions; it is wide.
  constexpr int made(int weight, const char* suffix, const dimensions& some, value_role role = value_role::gradient) {
    const int v = sums.gradient_value(weight, suffix);
    value& x = g[v];
    x.role = role;
    x.type = element::wide;
    x.shape = {};
    x.dims = {};
    x.group = {};
    for (const signed char d : some) {
      x.shape.push(g[weight].shape[d]);
      x.dims.push(g[weight].dims[d]);
      x.group.push(g[weight].group[d]);
    }
    return v;
  }
  constexpr int number(int of, const char* suffix) { return made(of, suffix, {}); }
  constexpr int result(operation& o, int v) {
    o.results.push(v);
    g.add(o);
    return v;
  }

  // The gradient is complete. It is added up, measured, and the weight updated: at once, if nothing has to be waited
  // for.
  constexpr void finish(int weight) {
    int gradient = sums.total(weight);
    if (gradient < 0) return;
    if (options.micro_batches > 1) {
      operation o = of_weight(weight, info<accumulate_t>, 2, 1, phase::backward);
      o.operands = {{made(weight, ".grad.accumulated", all_of(weight), value_role::accumulator), gradient}, 2};
      gradient = result(o, made(weight, ".grad.all", all_of(weight), value_role::accumulator));
      sums.contributions[static_cast<std::size_t>(weight)].clear();
      sums.contributions[static_cast<std::size_t>(weight)].push_back(gradient);
    }
    if (options.micro_batches > 1 || options.clip > 0) waiting.push_back({weight});
    else update(weight, gradient, -1);
  }

  constexpr void measure(int weight) {
    operation o = of_weight(weight, info<square_norm_t>, {all_of(weight)}, {{}}, phase::update);
    o.operands.push(sums.total(weight));
    const int square = result(o, number(weight, ".grad.square_norm"));
    if (squares < 0) {
      squares = square;
      return;
    }
    operation sum;
    sum.op = &info<add_t>;
    sum.r = parse(add_t::rule_source, 0);
    sum.when = phase::update;
    sum.operands = {{squares, square}, 2};
    squares = result(sum, number(weight, ".grad.square_norm.sum"));
  }

  constexpr void update_all() {
    int factor = -1;
    if (options.clip > 0 && !waiting.empty()) {
      for (const index& w : waiting) measure(w.id);
      operation o;
      o.op = &info<clip_factor_t>;
      o.r = parse(clip_factor_t::rule_source, 0);
      o.scalars.push(options.clip);
      o.when = phase::update;
      o.operands.push(squares);
      factor = result(o, number(g.loss, ".clip_factor"));
    }
    for (const index& w : waiting) update(w.id, sums.total(w.id), factor);
  }

  constexpr void update(int weight, int gradient, int factor) {
    if (options.optimizer == optimizer_form::adafactor) update_by_adafactor(weight, gradient, factor);
    else update_by_adamw(weight, gradient, factor);
  }

  constexpr double decay_of(int weight) const { return written_rank(weight) > 1 ? options.decay : 0.0; }

  constexpr void update_by_adamw(int weight, int gradient, int factor) {
    operation o = of_weight(weight, info<adamw_t>, 4, 3, phase::update);
    o.operands = {{weight, gradient}, 2};
    const auto moment = [&](const char* suffix) {
      const int m = made(weight, suffix, all_of(weight), value_role::state);
      g[m].type = moments_of(options.optimizer);
      return m;
    };
    for (const char* suffix : {".exp_avg", ".exp_avg_sq"}) o.operands.push(moment(suffix));
    if (factor >= 0) {
      o.r.operands.push({});
      o.operands.push(factor);
    }
    o.results.push(made(weight, ".next", all_of(weight), value_role::weight));
    for (const char* suffix : {".exp_avg.next", ".exp_avg_sq.next"}) o.results.push(moment(suffix));
    o.scalars = {{options.rate, options.beta1, options.beta2, options.epsilon, decay_of(weight),
                  static_cast<double>(options.warmup), static_cast<double>(options.steps), options.last_rate},
                 8};
    g.add(o);
  }

  // A mean square that lasts, of what has some of the weight's dimensions, from squares that are added up over the
  // others.
  constexpr int mean_square(int weight, int gradient, const char* square, const char* suffix, const char* next,
                            const dimensions& some) {
    operation squared = of_weight(weight, info<square_sum_t>, {all_of(weight)}, {some}, phase::update);
    squared.operands.push(gradient);
    const int sum = result(squared, made(weight, square, some));
    operation o = of_weight(weight, info<mean_square_t>, {some, some}, {some}, phase::update);
    o.operands = {{made(weight, suffix, some, value_role::state), sum}, 2};
    o.scalars = {{static_cast<double>(elements(g[weight].shape)) / static_cast<double>(elements(g[sum].shape)), 1e-30},
                 2};
    return result(o, made(weight, next, some, value_role::state));
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
    const int rank = written_rank(weight);
    if (rank < 2) {
      const dimensions all = all_of(weight);
      out.push(mean_square(weight, gradient, ".grad.square", ".exp_avg_sq", ".exp_avg_sq.next", all), all);
      return out;
    }
    const dimensions many = some_of(weight, 0, rank - 2);
    dimensions row = many, column = many;
    out.rows = 1;
    for (const signed char d : some_of(weight, rank - 2, rank - 1)) {
      row.push(d);
      out.rows *= static_cast<double>(g[weight].shape[d]);
    }
    for (const signed char d : some_of(weight, rank - 1, rank)) column.push(d);
    out.push(mean_square(weight, gradient, ".grad.square_row", ".exp_avg_sq_row", ".exp_avg_sq_row.next", row), row);
    out.push(mean_square(weight, gradient, ".grad.square_col", ".exp_avg_sq_col", ".exp_avg_sq_col.next", column),
             column);
    operation sum = of_weight(weight, info<copy_t>, {row}, {many}, phase::update);
    sum.operands.push(out.values[0]);
    out.push(result(sum, made(weight, ".exp_avg_sq_row.sum", many)), many);
    return out;
  }

  constexpr void update_by_adafactor(int weight, int gradient, int factor) {
    const dimensions all = all_of(weight);
    if (factor >= 0) {
      operation o = of_weight(weight, info<clipped_t>, {all, {}}, {all}, phase::update);
      o.operands = {{gradient, factor}, 2};
      gradient = result(o, made(weight, ".grad.clipped", all));
    }
    const mean_squares means = mean_squares_of(weight, gradient);
    const bool is_matrix = means.rows > 0;
    const auto with_means = [&](operation& o) {
      for (int k = 0; k < means.values.size(); ++k) {
        o.r.operands.push(pattern_of(o.r, means.dims[k]));
        o.operands.push(means.values[k]);
      }
    };
    operation relative = of_weight(weight, is_matrix ? info<relative_square_of_matrix_t> : info<relative_square_t>,
                                   {all}, {{}}, phase::update);
    relative.operands.push(gradient);
    with_means(relative);
    if (is_matrix) relative.scalars.push(means.rows);
    const int size = result(relative, number(weight, ".change.square"));
    operation o = of_weight(weight, is_matrix ? info<adafactor_of_matrix_t> : info<adafactor_t>, {all, all}, {all},
                            phase::update);
    o.operands = {{weight, gradient}, 2};
    with_means(o);
    o.r.operands.push({});
    o.operands.push(size);
    o.scalars = {{static_cast<double>(elements(g[weight].shape)), decay_of(weight), options.rate,
                  static_cast<double>(options.warmup), static_cast<double>(options.steps), options.last_rate},
                 6};
    if (is_matrix) o.scalars.push(means.rows);
    result(o, made(weight, ".next", all, value_role::weight));
  }
};

}  // namespace cfp::detail
