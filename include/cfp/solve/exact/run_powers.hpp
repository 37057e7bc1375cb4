// The (min, +) powers of what one copy of a repeated segment takes between two states at its ends.
#pragma once

#include <cfp/solve/problem.hpp>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Of every joint choice outside of the run ("given") one.
class run_powers {
 public:
  run_powers(std::size_t given, std::size_t states) : given_(given), states_(states) {}

  [[nodiscard]] std::size_t place(std::size_t given, std::size_t a, std::size_t b) const {
    return (given * states_ + a) * states_ + b;
  }

  /// Begins with one copy: what it takes, [given][before][after].
  void begin(std::vector<double> copy) {
    powers_.clear();
    powers_.push_back({std::move(copy), 0, 0, {}});
  }

  void raise(std::size_t copies) {
    std::optional<std::size_t> result;
    for (std::size_t square = 0;; square = multiply(square, square)) {
      if (copies % 2 == 1) result = result ? multiply(*result, square) : square;
      copies /= 2;
      if (copies == 0) break;
    }
    whole_ = *result;
  }

  /// The power that was raised to.
  [[nodiscard]] const std::vector<double>& time() const { return powers_[whole_].time; }

  /// The states after each copy of it between two states.
  [[nodiscard]] std::vector<std::size_t> path(std::size_t given, std::size_t before, std::size_t after) const {
    struct piece {
      std::size_t power, before, after;
    };
    std::vector<piece> open{{whole_, before, after}};
    std::vector<std::size_t> out;
    while (!open.empty()) {
      const piece p = open.back();
      open.pop_back();
      const power& what = powers_[p.power];
      if (what.middle.empty()) {
        out.push_back(p.after);
        continue;
      }
      const std::size_t m = what.middle[place(given, p.before, p.after)];
      open.push_back({what.right, m, p.after});
      open.push_back({what.left, p.before, m});
    }
    return out;
  }

 private:
  struct power {
    std::vector<double> time;         // [given][before][after]
    std::size_t left = 0, right = 0;  // of which powers it is the product
    std::vector<std::size_t> middle;  // the best state between them; none for one copy
  };

  std::size_t multiply(std::size_t left, std::size_t right) {
    power product;
    product.left = left;
    product.right = right;
    product.time.assign(powers_[left].time.size(), infinite_time);
    product.middle.assign(product.time.size(), 0);
    for (std::size_t given = 0; given < given_; ++given)
      for (std::size_t a = 0; a < states_; ++a)
        for (std::size_t m = 0; m < states_; ++m) {
          const double first = powers_[left].time[place(given, a, m)];
          if (first == infinite_time) continue;
          for (std::size_t b = 0; b < states_; ++b) {
            const double both = first + powers_[right].time[place(given, m, b)];
            double& best = product.time[place(given, a, b)];
            if (both < best) {
              best = both;
              product.middle[place(given, a, b)] = m;
            }
          }
        }
    powers_.push_back(std::move(product));
    return powers_.size() - 1;
  }

  std::size_t given_, states_;
  std::vector<power> powers_;
  std::size_t whole_ = 0;
};

}  // namespace cfp::detail
