// Plans for conditions that change, such as lengths of sequences or what is left of a machine, each priced under all of
// them, with what it takes to go from one to another.
#pragma once

#include <cfp/program/moved_state.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/solve/course.hpp>

#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct condition {
  std::string name{};
  graph forward{};  ///< of a step, or of one of its micro-batches
  machine on{};
};

struct course_plan {
  course_table table{};                          ///< plans are named by the condition they were found for
  std::vector<machine_plan> plans{};             ///< of the table
  std::vector<std::vector<state_move>> moves{};  ///< from each plan to each
  std::vector<int> of_condition{};               ///< the fastest plan there, by number; -1: nothing fits
};

/// Plans for each condition and prices every plan under every one: what is taken for one is no slower than what was
/// found for another. A plan does not run where it does not fit the memory, or a choice of it is not there. What a
/// change takes is what the device that gets most gets, through the slowest link of the machine it goes to. Throws
/// bad_input as `plan_for` does, where there is no condition, and for models that are not the same.
course_plan plan_course(const std::vector<condition>& all, const machine_plan_options& options = {});

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/session/course_plan_implementation.hpp>
#endif
