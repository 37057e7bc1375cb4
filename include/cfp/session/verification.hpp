// Whether a plan's program trains as one rank does: compared over steps, but for what rounding alone decides.
#pragma once

#include <cfp/session/train.hpp>

#include <algorithm>
#include <cmath>

namespace cfp::inline v0_1 {

/// Found without any plan: one rank's training against the same in float64. An element is undecided where the two
/// changes differ by more than 1e-3 of the root mean square change of its tensor, or by more than 1e-2 of its own; but
/// not where storing the weight in float32 explains it, half a unit of its last place a step: what hardly moves (a row
/// of a table that no batch asked for) moves alike under every plan.
inline undecided rounding_decides(const trained& a, const trained& exact, const graph& g) {
  undecided u;
  double largest = 0;
  for (std::size_t w = 0; w < a.weights.size(); ++w) {
    const std::size_t n = a.change[w].size();
    double moved = 0;
    for (const double y : exact.change[w]) moved += y * y;
    const double bound = 1e-3 * std::sqrt(moved / static_cast<double>(n));
    const double steps = static_cast<double>(a.loss.size());
    std::vector<bool> out(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double x = a.change[w][i], y = exact.change[w][i];
      const double apart = std::abs(x - y);  // not what is no number: that is no rounding
      out[i] =
          apart > std::min(bound, 1e-2 * std::abs(y)) && apart > steps * std::ldexp(1.0, exact.exponent[w][i] - 24);
    }
    const long count = std::count(out.begin(), out.end(), true);
    if (const double share = static_cast<double>(count) / static_cast<double>(n); share > largest)
      largest = share, u.most = std::string(g[a.weights[w]].label.view());
    u.count += count;
    u.of += static_cast<long>(n);
    u.elements.push_back(std::move(out));
  }
  return u;
}

inline double loss_difference(const trained& a, const trained& b) {
  double most = 0;
  for (std::size_t s = 0; s < a.loss.size(); ++s)
    if (a.loss[s] != b.loss[s]) difference::widen(most, std::abs(a.loss[s] - b.loss[s]) / std::abs(a.loss[s]));
  return most;
}

/// Both began with the same weights, or they are infinitely far apart.
inline difference compare(const trained& a, const trained& b, const graph& g, const undecided& left_out = {}) {
  difference d;
  d.loss = loss_difference(a, b);
  for (std::size_t w = 0; w < a.weights.size(); ++w) {
    double apart = 0, moved = 0;
    for (std::size_t i = 0; i < a.change[w].size(); ++i) {
      if (!left_out.elements.empty() && left_out.elements[w][i]) continue;
      const double x = a.change[w][i], y = b.change[w][i];
      apart += (x - y) * (x - y);
      moved += x * x;
    }
    double ratio = moved == 0 && apart == 0 ? 0.0 : std::sqrt(apart / moved);
    if (a.begun[w] != b.begun[w]) ratio = std::numeric_limits<double>::infinity();
    if (!(ratio <= d.parameters)) d.worst = std::string(g[a.weights[w]].label.view());
    difference::widen(d.parameters, ratio);
  }
  return d;
}

}  // namespace cfp
