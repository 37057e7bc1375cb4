// Cuts of a chain into stages, walked from the last stage to the first: the table that searches by a formula fill.
#pragma once

#include <cfp/solve/stage_problem.hpp>

#include <limits>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// How many stages a plan has, and how many devices they share.
struct stage_range {
  int fewest = 1, most = 1;
  int devices = 0;  ///< all of which are used; 0: each stage has its own, they are not counted
};

namespace detail {

/// As many stages as the problem says, devices not counted.
inline stage_range said_stages(const stage_problem& p) { return {p.stages, p.stages, 0}; }
/// As many stages as there may be on so many devices.
inline stage_range any_stages(const stage_problem& p, int devices) { return {1, std::min(p.layers, devices), devices}; }

inline void check_range(const stage_problem& p, const stage_range& r) {
  stage_problem sizes = p;
  sizes.stages = r.most;
  check_sizes(sizes);
}

/// Stages from layer `first` on, `left` of them on `devices` devices; the first of them ends before `end`.
struct stage_step {
  int left = 0, first = 0, end = 0, devices = 0;
  const stage_option* option = nullptr;
  int rest() const { return devices == 0 ? 0 : devices - option->devices; }  // devices of the stages behind it
};

/// A value for each number of stages left, first layer and devices left.
template <class T>
class stage_table {
 public:
  stage_table(int layers, const stage_range& r, const T& of)
      : layers_(layers), devices_(r.devices), all_(at(r.most + 1) * at(layers + 1) * at(r.devices + 1), of) {}
  T& here(const stage_step& s) { return (*this)(s.left, s.first, s.devices); }
  T& behind(const stage_step& s) { return (*this)(s.left - 1, s.end, s.rest()); }
  T& operator()(int left, int first, int devices) {
    return all_[(at(left) * at(layers_ + 1) + at(first)) * at(devices_ + 1) + at(devices)];
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int layers_, devices_;
  std::vector<T> all_;
};

/// Calls `visit` with each stage that fits, behind it those that were visited before.
template <class Visit>
void walk_stages(const stage_problem& p, staged_schedule kind, const stage_range& r, Visit visit) {
  for (int left = 1; left <= r.most; ++left)
    for (int first = 0; first + left <= p.layers; ++first)
      for (int end = left > 1 ? first + 1 : p.layers; end + left - 1 <= p.layers; ++end)
        for (const stage_option& o : p.options(p.stages - left, first, end)) {
          if (!fits(p, kind, o, left)) continue;
          for (int devices = r.devices == 0 ? 0 : o.devices; devices <= r.devices; ++devices)
            visit(stage_step{left, first, end, devices, &o});
        }
}

/// The partition of the least value, where a value is made of a stage and of the value behind it.
class least_partition {
 public:
  least_partition(const stage_problem& p, const stage_range& r) : p_(p), r_(r), best_(p.layers, r, {}) {
    best_(0, p.layers, 0).value = 0;
  }

  /// `value(step, behind)`: infinity for what may not be. Returns the least.
  template <class Value>
  double fill(staged_schedule kind, Value value) {
    walk_stages(p_, kind, r_, [&](const stage_step& s) {
      const double behind = best_.behind(s).value;
      if (behind == infinity) return;
      state& mine = best_.here(s);
      const double v = value(s, behind);
      if (v < mine.value) mine = {v, s.end, *s.option};
    });
    double least = infinity;
    for (int n = r_.fewest; n <= r_.most; ++n)
      if (best_(n, 0, r_.devices).value < least) least = best_(n, 0, r_.devices).value, stages_ = n;
    return least;
  }

  /// The plan that was found, and the time it takes by the schedule; empty where none was.
  stage_solution plan(staged_schedule kind) {
    stage_solution out;
    for (int left = stages_, first = 0, devices = r_.devices; left > 0; --left) {
      const state& s = best_(left, first, devices);
      out.ends.push_back(s.end), out.option.push_back(s.option);
      first = s.end, devices -= r_.devices == 0 ? 0 : s.option.devices;
    }
    if (out.feasible()) out.ms = time_of(p_, kind, out.ends, out.option), out.simulated = 1;
    return out;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  struct state {
    double value = infinity;
    int end = 0;
    stage_option option{};
  };
  const stage_problem& p_;
  const stage_range r_;
  stage_table<state> best_;
  int stages_ = 0;
};

/// What is sent over the border behind a stage, there and back; nothing behind the last.
inline double sent_behind(const stage_problem& p, int end) {
  if (!p.border || end >= p.layers) return 0;
  const border_cost send = p.border(0, end);
  return send.forward + send.backward;
}

}  // namespace detail

}  // namespace cfp
