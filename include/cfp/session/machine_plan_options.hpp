// What is asked of a plan for a machine that is described.
#pragma once

#include <cfp/model/training.hpp>
#include <cfp/plan/machine_options.hpp>
#include <cfp/profile/instruction_device.hpp>
#include <cfp/session/values.hpp>

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct machine_plan_options {
  std::string mesh{};              ///< "x=2,y=4"; none: every mesh that the machine allows
  int axes = 2;                    ///< without a mesh: the most axes of those tried, 1 to 3
  number type = number::bfloat16;  ///< what numbers are stored as
  bool unfused = false;            ///< every operator by itself; else as kernels for GPUs compute them together
  recomputing recompute = recomputing::where_needed;  ///< what plans may compute again for backward
  long memory = 0;  ///< most bytes a device may use; 0: what the machine's devices have
  /// Pieces a step's batch comes in; the model is of one piece. 0: those that take least, of a model by rows.
  int micro_batches = 1;
  training how{};
  /// Forms of the optimizer that are allowed: the fastest plan of all is taken, of equal ones the first form's. None:
  /// that of `how`.
  std::vector<optimizer_form> optimizers{};
  int curve = 0;  ///< limits of memory more to plan for, on the fastest mesh of one or two axes: a dozen tell a lot
  std::string table{};                          ///< what operators take, measured on such devices (cfp plan --measure)
  instruction_device measure_on{};              ///< what the table lacks is measured there, and kept
  std::string name = "model";                   ///< in plans and headers
  std::function<bool(const progress&)> tell{};  ///< false: stop, and throw `cancelled`
  stage_clock* clock = nullptr;                 ///< counts where the time goes
  /// After which no more is begun, and the best known is the answer, meshes left out. Without it what is found depends
  /// on no clock.
  double seconds = std::numeric_limits<double>::infinity();
  /// Milliseconds of a step: whether there is a slower plan is not asked.
  double within = std::numeric_limits<double>::infinity();
  /// Most strategies, of parts that differ, up to which three axes are solved together (`machine_options`).
  double together = machine_options().together;
};

}  // namespace cfp
