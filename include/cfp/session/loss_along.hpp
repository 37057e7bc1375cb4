// The loss of one rank along single elements of a tensor: slopes by central differences, and how exact they are.
#pragma once

#include <cfp/backend/backend.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class loss_along {
 public:
  static constexpr double step = 1e-5;  ///< to either side

  /// A program in float64 whose tensor `value` holds `whole`, and its loss there. The tensor is given back in the end.
  loss_along(loaded_program& on, int value, std::vector<double>& whole, double loss)
      : on_(on), value_(value), whole_(whole), loss_(loss) {}
  loss_along(const loss_along&) = delete;
  ~loss_along() { on_.give(value_, std::span<const double>(whole_)); }

  double slope(long element) const { return (at(element, step) - at(element, -step)) / (2 * step); }

  /// How far a slope may be from a right one, in a tensor whose largest is `largest`: the differences leave out what is
  /// of the order of the step squared, and divide the rounding of the loss by the step.
  double bound(double largest) const { return 1e-7 * largest + rounding(2 * step); }

  /// Whether the loss has a kink here and a slope is between those to either side, taken from closer by.
  bool at_kink(long element, double slope, double bound) const {
    constexpr double closer = step / 16;
    const double here = at(element, 0), right = (at(element, closer) - here) / closer,
                 left = (here - at(element, -closer)) / closer;
    const double open = bound + 2 * rounding(closer);
    return std::abs(right - left) > open && slope >= std::min(left, right) - open &&
           slope <= std::max(left, right) + open;
  }

 private:
  double at(long element, double further) const {
    double& x = whole_[static_cast<std::size_t>(element)];
    const double kept = std::exchange(x, x + further);
    on_.give(value_, std::span<const double>(whole_));
    x = kept;
    on_.step(1, 1);
    return on_.loss();
  }

  // What the rounding of the loss makes of a difference over `width`.
  double rounding(double width) const {
    return 16 * std::numeric_limits<double>::epsilon() * std::max(1.0, std::abs(loss_)) / width;
  }

  loaded_program& on_;
  const int value_;
  std::vector<double>& whole_;
  const double loss_;
};

}  // namespace cfp::detail
