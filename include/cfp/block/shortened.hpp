// A training graph and a sharding of it without some of the segments that follow one another alike: all that is left is
// as it was.
#pragma once

#include <cfp/block/repeats.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/model/sharding.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

namespace cfp::inline v0_1 {

/// Segments, first to last, that compute the same, under the same sharding.
struct equal_segments {
  int first = 0, count = 0;
};

/// The longest stretches of segments of which all but the first and the last may be left out: they are alike, and so is
/// what the sharding says of them.
inline std::vector<equal_segments> equally_sharded(const repeats& r, const sharding& plan) {
  const auto same = [&](std::size_t i) {
    if (!r.like_next[i]) return false;
    for (std::size_t k = 0; k < r.operations[i].size(); ++k)
      if (plan.assigned[static_cast<std::size_t>(r.operations[i][k])] !=
          plan.assigned[static_cast<std::size_t>(r.operations[i + 1][k])])
        return false;
    for (std::size_t k = 0; k < r.values[i].size(); ++k)
      if (plan.materialised[static_cast<std::size_t>(r.values[i][k])] !=
          plan.materialised[static_cast<std::size_t>(r.values[i + 1][k])])
        return false;
    return true;
  };
  std::vector<equal_segments> out;
  for (std::size_t i = 0; i < r.operations.size();) {
    std::size_t end = i + 1;
    while (end < r.operations.size() && same(end - 1) && (end - 1 == i || r.may_go[end - 1])) ++end;
    out.push_back({static_cast<int>(i), static_cast<int>(end - i)});
    i = end;
  }
  return out;
}

/// A graph without some of its segments, and where its operations and values were.
struct shortened {
  graph g;
  std::vector<int> operations, values;  ///< of the whole graph, by those of `g`

  sharding of(const sharding& whole) const {
    sharding out;
    for (const int o : operations) out.assigned.push_back(whole.assigned[static_cast<std::size_t>(o)]);
    for (const int v : values) out.materialised.push_back(whole.materialised[static_cast<std::size_t>(v)]);
    return out;
  }
};

namespace detail {

class shortening {
 public:
  shortening(const graph& g, const repeats& r, const std::vector<bool>& left_out)
      : g_(g), r_(r), left_out_(left_out), operation_(g.operations.size(), -1), value_(g.values.size(), -1) {}

  std::optional<shortened> run() {
    for (int v = 0; v < g_.value_count(); ++v)
      if (!gone(r_.of_value[at(v)])) value_[at(v)] = static_cast<int>(out_.values.size()), out_.values.push_back(v);
    out_.operations = order();
    for (std::size_t i = 0; i < out_.operations.size(); ++i) operation_[at(out_.operations[i])] = static_cast<int>(i);
    for (const int v : out_.values) {
      value x = g_[v];
      if (x.producer >= 0) x.producer = operation_[at(x.producer)];
      x.of = instead(x.of, r_.of_value[at(v)]);
      out_.g.values.push_back(x);
    }
    for (const int o : out_.operations) {
      operation x = g_.at(o);
      const int segment = r_.of_operation[at(o)];
      for (int& v : x.operands) {
        v = instead(v, segment);
        if (out_.g[v].producer >= out_.g.size()) return std::nullopt;  // it cannot run in this order
      }
      for (int& v : x.results) v = value_[at(v)];
      if (x.origin >= 0) x.origin = operation_[at(x.origin)];
      x.hub = instead(x.hub, segment);
      out_.g.operations.push_back(x);
    }
    out_.g.loss = instead(g_.loss, -1);
    out_.g.passes = g_.passes;
    out_.g.gradients = g_.gradients;
    return std::move(out_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool gone(int segment) const { return segment >= 0 && left_out_[at(segment)]; }

  // Operations that are left, as they stand once the gaps are closed.
  std::vector<int> order() const {
    std::vector<int> out(g_.operations.size());
    std::iota(out.begin(), out.end(), 0);
    for (std::size_t a = 0; a < left_out_.size(); ++a) {
      std::size_t b = a;
      while (b < left_out_.size() && left_out_[b]) ++b;
      if (b == a) continue;
      close_up(out, a - 1, b);
      std::erase_if(out, [&](int o) {
        const int segment = r_.of_operation[at(o)];
        return segment >= static_cast<int>(a) && segment < static_cast<int>(b);
      });
      a = b;
    }
    return out;
  }

  // Segments are written one after the other, but may overlap: of two neighbours the last operations of one behind the
  // first of the other. What follows a gap between `before` and `behind` moves up by as much as the one that would
  // follow there, so that the two overlap as neighbours do. Segments stand in one order forward, in the other backward.
  void close_up(std::vector<int>& order, std::size_t before, std::size_t behind) const {
    std::vector<long> place(g_.operations.size()), moved(g_.operations.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[at(order[i])] = static_cast<long>(i);
    std::size_t first = before, last = behind;
    while (first > 0 && r_.like_next[first - 1] && !left_out_[first - 1]) --first;
    while (r_.like_next[last] && !left_out_[last + 1]) ++last;
    std::vector<bool> known(g_.operations.size());
    for (std::size_t k = 0; k < r_.operations[before].size(); ++k) {
      const auto of = [&](std::size_t segment) { return at(r_.operations[segment][k]); };
      const bool forward = place[of(before)] < place[of(behind)];
      const long up = forward ? place[of(behind)] - place[of(before + 1)] : place[of(before)] - place[of(behind - 1)];
      for (std::size_t s = first; s <= last; ++s) {
        known[of(s)] = true;
        moved[of(s)] = (forward ? s >= behind : s <= before) ? up : 0;
      }
    }
    long now = 0;  // others move with what stands before them
    for (const int o : order) now = moved[at(o)] = known[at(o)] ? moved[at(o)] : now;
    std::stable_sort(order.begin(), order.end(),
                     [&](int x, int y) { return place[at(x)] - moved[at(x)] < place[at(y)] - moved[at(y)]; });
  }

  // What stands for a value in what `segment` reads: of the nearest segment, on the same side, that is left.
  int instead(int v, int segment) const {
    if (v < 0) return v;
    int from = r_.of_value[at(v)];
    if (!gone(from)) return value_[at(v)];
    const int step = from > segment ? 1 : -1;
    while (gone(from)) from += step;
    return value_[at(r_.values[at(from)][at(r_.place_of_value[at(v)])])];
  }

  const graph& g_;
  const repeats& r_;
  const std::vector<bool>& left_out_;
  std::vector<int> operation_, value_;  // what they are in the shortened one
  shortened out_;
};

}  // namespace detail

/// Leaves out segments, which must lie inside stretches of `equally_sharded`: neither first nor last there. Nothing if
/// the rest cannot run in the order in which it is written.
inline std::optional<shortened> without(const graph& g, const repeats& r, const std::vector<bool>& left_out) {
  return detail::shortening(g, r, left_out).run();
}

}  // namespace cfp
