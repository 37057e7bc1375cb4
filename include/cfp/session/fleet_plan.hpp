// Which machine to take, and how many of its devices: what is fastest, what costs least, what just fits.
//
//   const cfp::fleet_plan found = cfp::plan_for(my_model, 256, fleet);  // as read_fleet reads it, or built in place
//   std::cout << cfp::fleet_text(found, tokens_of_a_step) << found.fastest()->plan;  // print_fleet.hpp
#pragma once

#include <cfp/profile/machine/fleet.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/session/plan_in_copies.hpp>
#include <cfp/session/plan_in_stages.hpp>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct fleet_question {
  /// What plans are looked for. `front`: all than which no other takes less of time and money.
  enum wanted_t { front, least_devices } wanted = front;
  double budget = std::numeric_limits<double>::infinity();  ///< most that all devices may cost in an hour
  bool prune = true;  ///< do not plan for what a bound says is no answer; false: for tests
  /// Plans in stages too; and where the fleet says what joins its pools, in two of them together: in stages, or with a
  /// copy of the model in each.
  bool stages = false;
};

/// A part of a machine, or of two that are joined.
struct fleet_offer {
  enum state_t { planned, unfit, above_budget, beaten, not_asked };
  std::string machine{};  ///< "a100-8", "4 of a100-8 + 8 of h100-8"
  int devices = 0;
  std::vector<std::pair<std::size_t, int>> parts{};  ///< of which pools of the fleet, how many devices
  double hourly = 0;                                 ///< price of all its devices
  double least_ms = 0;  ///< that no plan there is below, or, of those that are beaten, none that fits
  double within = std::numeric_limits<double>::infinity();  ///< beyond which others beat it: none slower was looked for
  state_t state = not_asked;
  double ms = std::numeric_limits<double>::infinity();  ///< of the fastest plan's step
  machine_plan plan{};                                  ///< of what was planned on one machine, without stages
  std::optional<stages_plan> in_stages{};               ///< where that is the fastest, or all there is
  std::optional<copies_plan> in_copies{};               ///< the same

  double price() const { return hourly * ms / 3.6e6; }  ///< of a step
  double least_price() const { return hourly * least_ms / 3.6e6; }
};

struct fleet_plan {
  std::string name{}, currency{};
  std::vector<fleet_offer> offers{};  ///< of each machine, from few devices to many

  /// What none beats in both time and money, the fastest first; of a question for the least devices those that fit.
  std::vector<const fleet_offer*> front() const;
  /// Of the front the fastest, the cheapest, that of the fewest devices; or nullptr, where nothing fits.
  const fleet_offer* fastest() const;
  const fleet_offer* cheapest() const;
  const fleet_offer* smallest() const;

  int count(fleet_offer::state_t s) const;
};

/// Plans on parts of the machines of a fleet. What is dearer than the budget is left out, and what a bound shows to be
/// beaten in time and money by a plan that was found: the front is that of all. `rows`: of a step. Throws bad_input as
/// `plan_for` a machine does, and for a table of operators, which is of one kind of device.
fleet_plan plan_for(const forward_of_rows& model, long rows, const fleet& f, const machine_plan_options& options = {},
                    const fleet_question& question = {});

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/session/fleet_plan_implementation.hpp>
#endif
