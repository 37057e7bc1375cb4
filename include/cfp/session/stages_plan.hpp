// A plan in stages for a machine that is described, as people and programs read it.
#pragma once

#include <cfp/block/decision.hpp>
#include <cfp/export/report/report_view.hpp>
#include <cfp/plan/plan.hpp>
#include <cfp/plan/stages/staged_plan.hpp>
#include <cfp/profile/machine/time_terms.hpp>
#include <cfp/session/values.hpp>

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct stages_plan {
  struct stage {
    int place = 0;                           ///< along the stages: whose ranks run it
    std::string pool{};                      ///< the machine that these are of, where there are several
    std::string first{};                     ///< what its first operator makes
    double forward_ms = 0, backward_ms = 0;  ///< of a micro-batch, by sums of parts; sends apart
    double once_ms = 0;                      ///< of a step: its update, and what is brought for that
  };
  std::string model{}, machine{}, type{}, optimizer{}, kernels{};
  double memory_gib = 0;  ///< of a device, of the pool that has least
  int devices = 0;
  staged_plan plan{};
  bool ended_early = false;  ///< the seconds given were over: the best known by then
  std::vector<stage> stages{};
  std::vector<plan_line> lines{};  ///< what its decisions chose, times left out

  /// What the programs of the plan are made of.
  struct details {
    graph g;
    decision_graph decisions;
    machine_pools on;
    machine_options options{};
    std::string trained{};  ///< of the model's name in files, behind `model`
  };
  std::shared_ptr<const details> of{};

  std::string json() const;
  bool fits(const staged_price&) const;  ///< whether each place's devices have the memory for it
  report_view report() const;            ///< what `write_report` makes a page of
  /// Where the time of a step goes, of each place: each place's sum up to the step of the programs, all micro-batches.
  std::vector<std::vector<time_term>> terms() const;
  /// Writes what a session of mesh "stage=..." reads (`use_plan`); `model` must be its name. Throws bad_input.
  void save_plan(const std::string& path) const;
  /// Writes C++ that the compiler checks; its namespace is the file's name.
  void save_header(const std::string& path) const;
  /// What else the decisions of each stage could choose and what that costs, what more memory would gain, as text.
  std::string explain() const;

 private:
  cfp::plan made() const;
  struct simulation;
  simulation simulated() const;
};

std::ostream& operator<<(std::ostream&, const stages_plan&);

}  // namespace cfp
