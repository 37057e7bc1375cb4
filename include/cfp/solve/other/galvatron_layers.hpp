// Galvatron's search over the layers of a stage with memory as an axis (Miao et al., VLDB 2023, arXiv 2211.13878): f(i,
// m, s) = min over s' of f(i - 1, m - mem(i, s), s') + convert(s', s) + t(i, s). Cuts are even.
#pragma once

#include <cfp/solve/other/layer_chain.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace cfp::inline v0_1 {

/// A strategy for each of some layers.
struct layer_choice {
  std::vector<int> strategies;                          ///< none: nothing fits
  double ms = std::numeric_limits<double>::infinity();  ///< of a step

  bool feasible() const { return !strategies.empty(); }
};

namespace detail {

class layer_search {
 public:
  layer_search(const layer_chain& c, int first, int end, int under_way, double unit)
      : c_(c), first_(first), end_(end), under_way_(under_way), unit_(unit) {}

  layer_choice run() {
    long all = 0;
    for (int i = first_; i < end_; ++i) {
      long most = 0;
      for (int s = 0; s < count(i); ++s) most = std::max(most, units(i, s));
      all += most;
    }
    const double room = std::floor(c_.memory / unit_);
    cap_ = room < static_cast<double>(all) ? static_cast<long>(room) : all;
    if (cap_ < 0) return {};
    for (int i = first_; i < end_; ++i) {
      best_.emplace_back(at(count(i)) * at(cap_ + 1));
      for (int s = 0; s < count(i); ++s)
        for (long m = units(i, s); m <= cap_; ++m) state_of(i, m, s) = least(i, m, s);
    }
    return follow();
  }

 private:
  struct state {
    double ms = std::numeric_limits<double>::infinity();
    int before = 0;  // strategy of the layer before
  };
  static std::size_t at(long i) { return static_cast<std::size_t>(i); }
  int count(int layer) const { return static_cast<int>(c_.strategies[at(layer)].size()); }
  long units(int layer, int s) const {
    const stage_option& o = c_.option(layer, s);
    return static_cast<long>(std::ceil((o.always + o.kept * under_way_) / unit_));
  }
  state& state_of(int layer, long m, int s) { return best_[at(layer - first_)][at(m) * at(count(layer)) + at(s)]; }

  // With at most m units for the layers up to this one.
  state least(int layer, long m, int s) {
    const stage_option& o = c_.option(layer, s);
    const double own = c_.micro_batches * (o.forward + o.backward) + o.update;
    if (layer == first_) return {own, 0};
    state out;
    for (int before = 0; before < count(layer - 1); ++before) {
      const border_cost from = c_.conversion(layer, before, s);
      const double ms =
          state_of(layer - 1, m - units(layer, s), before).ms + c_.micro_batches * (from.forward + from.backward) + own;
      if (ms < out.ms) out = {ms, before};
    }
    return out;
  }
  layer_choice follow() {
    layer_choice out;
    int s = -1;
    for (int last = 0; last < count(end_ - 1); ++last)
      if (state_of(end_ - 1, cap_, last).ms < out.ms) out.ms = state_of(end_ - 1, cap_, last).ms, s = last;
    if (s < 0) return out;
    long m = cap_;
    for (int i = end_ - 1; i >= first_; --i) {
      out.strategies.insert(out.strategies.begin(), s);
      const int before = state_of(i, m, s).before;
      m -= units(i, s), s = before;
    }
    return out;
  }

  const layer_chain& c_;
  const int first_, end_, under_way_;
  const double unit_;
  long cap_ = 0;
  std::vector<std::vector<state>> best_;  // of each layer, [units][strategy]
};

}  // namespace detail

/// The strategies of layers [first, end) that take the least time one after the other, while `under_way` micro-batches
/// are kept. Memory is counted in units of `unit` bytes, of each layer rounded up: its time grows with how many of them
/// a device has or all layers may take. Throws bad_input for layers that are not there, or no unit.
inline layer_choice galvatron_layers(const layer_chain& c, int first, int end, int under_way, double unit) {
  if (first < 0 || end <= first || end > c.layers() || !(unit > 0))
    throw bad_input("strategies are chosen for some of " + std::to_string(c.layers()) +
                    " layers by units of memory above 0, not for layers " + std::to_string(first) + " to " +
                    std::to_string(end) + " by " + std::to_string(unit) + " bytes");
  return detail::layer_search(c, first, end, under_way, unit).run();
}

/// Stages of as many layers each (the first of one more, where they do not divide), each with its own search. `ms` is
/// that of the slowest stage.
inline layer_plan galvatron_stages(const layer_chain& c, staged_schedule kind, double unit) {
  detail::check_sizes(c);
  layer_plan out, none;
  out.ms = 0, out.proven = none.proven = true;
  for (int s = 0, first = 0; s < c.stages; ++s) {
    const int end = first + c.layers() / c.stages + (s < c.layers() % c.stages ? 1 : 0);
    const layer_choice mine = galvatron_layers(c, first, end, kept_with(kind, c.stages - s, c.micro_batches), unit);
    if (!mine.feasible()) return none;
    out.strategies.insert(out.strategies.end(), mine.strategies.begin(), mine.strategies.end());
    out.ends.push_back(end), out.ms = std::max(out.ms, mine.ms);
    first = end;
  }
  return out;
}

}  // namespace cfp
