// A plan for a machine that is described, not here: nothing runs.
//
//   std::cout << cfp::plan_for(my_model(config), cfp::load_machine("h100-8.json"));
#pragma once

#include <cfp/model/training.hpp>
#include <cfp/plan/machine_options.hpp>
#include <cfp/profile/instruction_device.hpp>
#include <cfp/profile/machine/machine.hpp>
#include <cfp/session/values.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct machine_plan_options {
  std::string mesh{};              ///< "x=2,y=4"; none: every mesh that the machine allows
  int axes = 2;                    ///< without a mesh: the most axes of those tried, 1 to 3
  number type = number::bfloat16;  ///< what numbers are stored as
  bool unfused = false;            ///< every operator by itself; else as kernels for GPUs compute them together
  recomputing recompute = recomputing::where_needed;  ///< what plans may compute again for backward
  long memory = 0;        ///< most bytes a device may use; 0: what the machine's devices have
  int micro_batches = 1;  ///< pieces a step's batch comes in; the model is of one piece
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
  /// Most strategies, of parts that differ, up to which three axes are solved together (`machine_options`).
  double together = machine_options().together;
};

/// Plans on one or several meshes of a machine, the fastest mesh first.
struct machine_plan {
  struct priced {
    std::string plan{}, kind{};  ///< kind: "found", "usual", "alpa"
    double ms = 0;               ///< of a step
    long peak_bytes = 0;         ///< of a device
    bool fits = true;
    double gap = 0;  ///< how far its sum of parts may be above the least, relative to it; infinite: nobody knows
  };
  struct on_mesh {
    std::string mesh{};  ///< "x=2,y=4"
    std::vector<priced> plans{};
    long least_bytes = 0;  ///< of the leanest plan that was tried
    bool searched = true;  ///< false: `seconds` were over before

    /// The fastest that fits, of one kind or of all ("").
    const priced* fastest(const std::string& kind = "") const;
  };

  std::string model{}, machine{}, type{}, optimizer{};
  std::string times{};    ///< where they are from, in words
  std::string kernels{};  ///< what computes operators, in words
  double memory_gib = 0;  ///< of a device
  int devices = 0;        ///< of the machine; a mesh that was asked for may use fewer
  std::vector<on_mesh> meshes{};
  double operators_ms = 0, exposed_ms = 0;  ///< of the found plan: operators, and what they wait for collectives
  std::vector<plan_line> lines{};           ///< of the found plan
  memory_split memory{};  ///< of the found plan; nothing of a folded model, whose program is not whole
  cfp::plan best{};

  struct point : priced {
    std::string mesh{};
  };
  /// What memory is worth, if that was asked for: of all plans that were priced, those than which none takes less of
  /// time and memory; the fastest first. Some may not fit.
  std::vector<point> curve{};

  struct form {
    std::string optimizer{};
    double ms = 0;
    bool fits = false;
  };
  std::vector<form> forms{};  ///< where several were allowed, what was found for each

  /// Where nothing fits, a sentence: what the leanest plan needs against the limit, and what was not allowed.
  std::string unfit{};

  bool fits() const { return !meshes.empty() && meshes.front().fastest() != nullptr; }
  std::string json() const;  ///< of all plans
  void save_plan(const std::string& path) const;
  void save_header(const std::string& path) const;

  struct details;
  std::shared_ptr<const details> of{};  ///< graph, mesh and decisions of the found plan
};
std::ostream& operator<<(std::ostream&, const machine_plan&);

/// Throws invalid_machine, which names file, key and value.
machine load_machine(const std::string& path);

/// Throws bad_input for options that do not fit the machine or the model. What it returns may not fit the memory:
/// `fits`.
machine_plan plan_for(const graph& forward, const machine& m, const machine_plan_options& options = {});

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/session/plan_for_implementation.hpp>
#endif
