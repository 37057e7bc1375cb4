// What comparing derived gradients with differences of the loss showed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Derived gradients beside central differences of the loss in float64, element by element.
struct gradient_check {
  /// An element of a tensor and its gradient.
  struct entry {
    std::vector<std::pair<std::string, long>> place{};  ///< index in each dimension
    std::string plan{};                                 ///< under which it was derived
    double derived = 0, by_differences = 0;
    double bound = 0;  ///< how far these two may be apart: what the step and the rounding of the loss leave open

    double apart() const {
      const double d = std::abs(derived - by_differences);
      return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
    }
    bool holds() const { return apart() <= bound; }
  };
  struct of_tensor {
    std::string tensor{};
    long elements = 0, tried = 0;  ///< those it has, and those that were compared
    long left_out = 0;             ///< of the tried: where the loss has a kink, and the derived slope is of one side
    double largest = 0;            ///< gradient of those tried, by differences, in size
    entry worst{};                 ///< furthest apart, in bounds

    /// How far it is apart, in shares of the tensor's largest gradient; and the bound.
    double relative() const { return share(worst.apart()); }
    double relative_bound() const { return share(worst.bound); }

   private:
    double share(double x) const { return x == 0 ? 0 : x / (largest > 0 ? largest : std::abs(worst.derived)); }
  };
  std::vector<of_tensor> tensors{};
  std::vector<std::string> plans{};  ///< gradients were derived under
  std::vector<double> losses{};      ///< under each of them
  double loss = 0;
  double step = 0;  ///< of the differences, to either side
  std::uint64_t seed = 0;

  static constexpr double most_left_out = 0.1;
  static constexpr double most_loss_apart = 1e-7;  ///< of the loss, or of 1 where that is less

  /// The tensor whose worst element is the furthest apart, in bounds; none where nothing was compared.
  const of_tensor* worst() const {
    const auto at = std::max_element(tensors.begin(), tensors.end(), [](const of_tensor& a, const of_tensor& b) {
      return a.worst.apart() * b.worst.bound < b.worst.apart() * a.worst.bound;
    });
    return at == tensors.end() ? nullptr : &*at;
  }
  long tried() const {
    long n = 0;
    for (const of_tensor& t : tensors) n += t.tried;
    return n;
  }
  long left_out() const {
    long n = 0;
    for (const of_tensor& t : tensors) n += t.left_out;
    return n;
  }
  /// Where no element that was tried changes the loss, nothing is shown.
  bool depends_on_nothing() const {
    return std::all_of(tensors.begin(), tensors.end(),
                       [](const of_tensor& t) { return t.largest == 0 && t.worst.derived == 0; });
  }
  /// How far the loss under a plan is from that of one rank, in shares of it.
  double loss_apart(std::size_t plan) const {
    const double d = std::abs(losses[plan] - loss) / std::max(1.0, std::abs(loss));
    return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
  }
  bool losses_hold() const {
    for (std::size_t p = 0; p < losses.size(); ++p)
      if (loss_apart(p) > most_loss_apart) return false;
    return true;
  }
  bool holds() const {
    return std::isfinite(loss) && losses_hold() && tried() > 0 && !depends_on_nothing() &&
           static_cast<double>(left_out()) <= most_left_out * static_cast<double>(tried()) &&
           std::all_of(tensors.begin(), tensors.end(), [](const of_tensor& t) { return t.worst.holds(); });
  }
  /// What does not hold, a sentence each, value against bound.
  std::vector<std::string> faults() const;
  std::string json() const;
};

}  // namespace cfp
