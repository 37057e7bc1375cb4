// A step of a training, and what comparing two trainings shows.
#pragma once

#include <cfp/core/error.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// A step that was trained.
struct step_report {
  long step = 0;  ///< from 1, those of a loaded state included
  double loss = 0;
  double ms = 0;
};

/// Thrown where a callback has said that it is enough.
struct cancelled : error {
  const char* what() const noexcept override { return "stopped, as the callback said"; }
};

/// Elements of the weights that rounding decides: where the gradient is zero but for rounding (key biases; a gradient
/// that crosses zero), Adam turns its noise into whole steps, so that two correct programs differ there.
struct undecided {
  std::vector<std::vector<bool>> elements{};  ///< per weight; empty: none
  long count = 0, of = 0;
  std::string most{};  ///< the weight with the largest share
};

/// How far two trainings are apart. What is no number is as far apart as can be.
struct difference {
  double loss = 0;        ///< largest relative difference of a step's loss
  double parameters = 0;  ///< largest |difference of changes| / |change| over tensors
  std::string worst{};    ///< the tensor it is of

  static void widen(double& most, double apart) {
    if (!(apart <= most)) most = std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
  }
};

/// What verifying a plan showed.
struct verification {
  long steps = 0;
  std::vector<double> alone{}, together{};  ///< the losses on one rank and under the plan, in float32
  difference apart{};
  undecided left_out{};
  std::string stored_as{};  ///< numbers of 16 bits, state or sums of fewer: the plan was also trained so,
  double stored_apart = 0;  ///< its losses this far from those in float32
  long begun_after = 0;     ///< steps of the state it went on from

  static constexpr double most_loss = 1e-4, most_parameters = 1e-3, most_left_out = 0.01, most_stored = 2e-2;
  bool holds() const {
    return apart.loss <= most_loss && apart.parameters <= most_parameters &&
           static_cast<double>(left_out.count) <= most_left_out * static_cast<double>(left_out.of) &&
           stored_apart <= most_stored;
  }
  /// What does not hold, a sentence each, value against bound.
  std::vector<std::string> faults() const;
  std::string json() const;
};

}  // namespace cfp
