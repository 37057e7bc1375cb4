// A plan for a machine that is described, not here: nothing runs.
//
//   std::cout << cfp::plan_for(my_model(config), cfp::load_machine("h100-8.json"));
#pragma once

#include <cfp/export/plan_outline.hpp>
#include <cfp/export/report/report_view.hpp>
#include <cfp/profile/machine/machine.hpp>
#include <cfp/profile/machine/time_terms.hpp>
#include <cfp/session/machine_plan_options.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// The forward graph of a model for so many rows.
using forward_of_rows = std::function<graph(long rows)>;

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

  std::string model{};    ///< of a micro-batch's rows; what plans that are saved bear, and `trained`
  std::string trained{};  ///< how, where it is not as usual
  std::string machine{}, type{}, optimizer{};
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

  int micro_batches = 1;
  struct pieces {
    int micro_batches = 1;
    double ms = std::numeric_limits<double>::infinity();  ///< of the fastest plan, unless none fits or is faster
  };
  std::vector<pieces> passes{};  ///< where no number of micro-batches was given, those that were looked at

  /// Where nothing fits, a sentence: what the leanest plan needs against the limit, and what was not allowed.
  std::string unfit{};

  bool fits() const { return !meshes.empty() && meshes.front().fastest() != nullptr; }
  /// Whether the found plan's program has all layers, not few that stand for many.
  bool is_whole() const { return memory.weight_bytes > 0; }
  std::string json() const;  ///< of all plans
  /// Of the found plan, with all others beside it: what `write_report` makes a page of. Throws bad_input where nothing
  /// fits, or layers stand for many.
  report_view report() const;
  /// Where the time of a step goes, of the found plan: they sum up to it. Throws as `report` does.
  std::vector<time_term> terms() const;
  void save_plan(const std::string& path) const;
  void save_header(const std::string& path) const;

  struct details;
  std::shared_ptr<const details> of{};  ///< what the found plan was made of
};
std::ostream& operator<<(std::ostream&, const machine_plan&);

/// Throws invalid_machine, which names file, key and value.
machine load_machine(const std::string& path);

/// Throws bad_input for options that do not fit the machine or the model. What it returns may not fit the memory:
/// `fits`.
machine_plan plan_for(const graph& forward, const machine& m, const machine_plan_options& options = {});

/// The same of a model by rows, and so many of them a step: with 0 micro-batches in the options in 1, 2, 4, ... of
/// them, whatever takes least.
machine_plan plan_for(const forward_of_rows& model, long rows, const machine& m,
                      const machine_plan_options& options = {});

/// What a saved plan says of itself. Throws bad_input for what is none.
plan_outline saved_outline(const std::string& path);

/// A plan that was saved, priced there beside those people use on its mesh; it may not fit either. Throws bad_input
/// where it is of another model or in stages, too.
machine_plan price_saved(const graph& forward, const machine& m, const std::string& path,
                         const machine_plan_options& options = {});

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/session/machine_report.hpp>
#include <cfp/session/plan_for_implementation.hpp>
#include <cfp/session/print_machine_plan.hpp>
#endif
