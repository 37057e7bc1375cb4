// UniAP's program (Lin et al., CVPR 2025, arXiv 2307.16375): the stage P_ui and the strategy S_uk of each
// layer at once, for the least TPI = sum p_i + sum o_j + (c - 1) max(p, o), where p_i is what a stage takes and o_j
// what is sent between two. Products of choices are made linear; CBC solves it.
#pragma once

#include <cfp/solve/other/layer_chain.hpp>
#include <cfp/solve/other/mixed_program.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// UniAP's time of a plan: the sum of its stages and of what is sent, and M - 1 times the longest of these.
inline double uniap_time(const stage_problem& p, const std::vector<int>& ends,
                         const std::vector<stage_option>& chosen) {
  double sum = 0, longest = 0;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    const border_cost send =
        p.border && s + 1 < chosen.size() ? p.border(static_cast<int>(s) + 1, ends[s]) : border_cost{};
    for (const double t : {chosen[s].forward + chosen[s].backward, send.forward + send.backward})
      sum += t, longest = std::max(longest, t);
  }
  return sum + (p.micro_batches - 1) * longest;
}

#if defined(CFP_HAS_CBC)

namespace detail {

class uniap_program {
 public:
  uniap_program(const layer_chain& c, staged_schedule kind) : c_(c), kind_(kind), all_(all_times()) {
    longest_ = program_.column(c.micro_batches - 1, false);
    time_.assign(at(c.stages), {}), sent_.assign(at(c.stages), {}), memory_.assign(at(c.stages), {});
    for (int u = 0; u < c.layers(); ++u) add_layer(u);
    for (int u = 1; u < c.layers(); ++u) add_pair(u);
    for (int i = 0; i < c.stages; ++i) {
      row_within(time_[at(i)]), row_within(sent_[at(i)]);
      if (c.memory < std::numeric_limits<double>::infinity()) row(memory_[at(i)], 'L', 1);
      sum any;
      for (int u = 0; u < c.layers(); ++u) any.push_back({place_[at(u)][at(i)], 1});
      row(any, 'G', 1);  // no stage is empty
    }
  }

  layer_plan run(double max_seconds) {
    program_.solve(max_seconds);
    layer_plan out;
    out.proven = program_.infeasible() || program_.optimal();
    const double* const values = program_.infeasible() ? nullptr : program_.values();
    if (values == nullptr) return out;
    const auto chosen = [&](const std::vector<int>& of) {
      return static_cast<int>(
          std::max_element(of.begin(), of.end(), [&](int a, int b) { return values[a] < values[b]; }) - of.begin());
    };
    for (int u = 0; u < c_.layers(); ++u) {
      out.strategies.push_back(chosen(strategy_[at(u)]));
      if (u > 0 && chosen(place_[at(u)]) != chosen(place_[at(u - 1)])) out.ends.push_back(u);
    }
    out.ends.push_back(c_.layers());
    out.ms = program_.cost() * all_;
    return out;
  }

 private:
  using sum = std::vector<std::pair<int, double>>;  // columns and their factors
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int count(int layer) const { return static_cast<int>(c_.strategies[at(layer)].size()); }

  void row(const sum& of, char sense, double right) {
    std::vector<int> columns;
    std::vector<double> factors;
    for (const auto& [column, factor] : of) columns.push_back(column), factors.push_back(factor);
    program_.row(columns, factors, sense, right);
  }
  // At most the longest of all.
  void row_within(sum of) {
    if (of.empty()) return;
    of.push_back({longest_, -1});
    row(of, 'L', 0);
  }

  // P_ui and S_uk, one of each, and their products.
  void add_layer(int u) {
    sum one_stage, one_strategy;
    place_.emplace_back(), strategy_.emplace_back(), both_.emplace_back();
    for (int i = 0; i < c_.stages; ++i) {
      place_.back().push_back(program_.column(0, true));
      one_stage.push_back({place_.back().back(), 1});
    }
    for (int k = 0; k < count(u); ++k) {
      strategy_.back().push_back(program_.column(0, true));
      one_strategy.push_back({strategy_.back().back(), 1});
    }
    row(one_stage, 'E', 1), row(one_strategy, 'E', 1);
    std::vector<sum> of_strategy(at(count(u)));
    for (int i = 0; i < c_.stages; ++i) {
      sum of_stage{{place_.back()[at(i)], -1}};
      for (int k = 0; k < count(u); ++k) {
        const stage_option& o = c_.option(u, k);
        const double ms = (o.forward + o.backward) / all_;
        const int product = program_.column(ms, false);
        both_.back().push_back(product);
        of_stage.push_back({product, 1}), of_strategy[at(k)].push_back({product, 1});
        time_[at(i)].push_back({product, ms});
        const int kept = kept_with(kind_, c_.stages - i, c_.micro_batches);
        memory_[at(i)].push_back({product, (o.always + o.kept * kept) / c_.memory});
      }
      row(of_stage, 'E', 0);
    }
    for (int k = 0; k < count(u); ++k) {
      of_strategy[at(k)].push_back({strategy_.back()[at(k)], -1});
      row(of_strategy[at(k)], 'E', 0);
    }
  }

  // Products of a layer's choices and those of the layer before, which is in the same stage or in the one before.
  void add_pair(int u) {
    std::map<int, sum> of_before, of_own;
    for (int i = 0; i < c_.stages; ++i)
      for (int j = i; j < std::min(i + 2, c_.stages); ++j)
        for (int k = 0; k < count(u - 1); ++k)
          for (int l = 0; l < count(u); ++l) {
            const border_cost b = i == j ? c_.conversion(u, k, l) : c_.sent(u);
            const double ms = (b.forward + b.backward) / all_;
            const int product = program_.column(ms, false);
            of_before[both_[at(u - 1)][at(i * count(u - 1) + k)]].push_back({product, 1});
            of_own[both_[at(u)][at(j * count(u) + l)]].push_back({product, 1});
            (i == j ? time_ : sent_)[at(i)].push_back({product, ms});
          }
    for (std::map<int, sum>* all : {&of_before, &of_own})
      for (auto& [whole, parts] : *all) {
        parts.push_back({whole, -1});
        row(parts, 'E', 0);
      }
  }

  // What all strategies and conversions take together: times are parts of it.
  double all_times() const {
    double all = 0;
    for (int u = 0; u < c_.layers(); ++u)
      for (int k = 0; k < count(u); ++k) {
        all += c_.option(u, k).forward + c_.option(u, k).backward + c_.sent(u).forward + c_.sent(u).backward;
        for (int before = 0; u > 0 && before < count(u - 1); ++before)
          all += c_.conversion(u, before, k).forward + c_.conversion(u, before, k).backward;
      }
    return all > 0 ? all : 1;
  }

  const layer_chain& c_;
  const staged_schedule kind_;
  const double all_;
  mixed_program program_;
  int longest_ = 0;
  std::vector<std::vector<int>> place_, strategy_, both_;  // columns of each layer; both: [stage][strategy]
  std::vector<sum> time_, sent_, memory_;                  // of each stage
};

}  // namespace detail

/// The plan of the least time by UniAP's formula, found within some seconds; `ms` is what CBC says of it. None where no
/// plan fits, or none was found in time. Throws bad_input for sizes that cannot be.
inline layer_plan uniap_stages(const layer_chain& c, staged_schedule kind, double max_seconds = 1e9) {
  detail::check_sizes(c);
  return detail::uniap_program(c, kind).run(max_seconds);
}

#endif

}  // namespace cfp
