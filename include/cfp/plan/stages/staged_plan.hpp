// A plan of a model in stages, and what is asked of one.
#pragma once

#include <cfp/plan/machine_options.hpp>
#include <cfp/plan/stages/staged_price.hpp>

#include <functional>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// A plan people use, in stages of as many layers each.
struct staged_usual {
  std::string name, kept;  ///< "zero1+tensor_sequence", "cheap recomputed"
  staged_layout layout;
  std::vector<int> ends;
  std::vector<int> choices;
  sharding plan{};
  staged_price price{};
  std::vector<long> needs{};  ///< bytes that it would take with more kept, which do not fit
};

struct staged_plan {
  staged_layout layout;
  long rows = 1;            ///< of a micro-batch, of all ranks of a stage together
  int micro_batches = 1;    ///< of a step
  std::vector<int> ends{};  ///< of each stage, the first segment that is not its
  std::vector<int> choices{};
  sharding plan{};
  staged_price price{};
  double sums_ms = 0;                 ///< what it takes by sums of parts; 0: not known, of what people use
  std::vector<staged_usual> usual{};  ///< in its layout
  double bound_ms = 0;  ///< that no plan of its mesh, micro-batches and schedule, made of choices looked at, is below
};

struct staged_options {
  machine_options machine{};            ///< memory, what is recomputed, what it is lowered for
  std::vector<int> places{};            ///< along the stages; none: all that the machine's devices can be
  std::vector<int> chunks{1, 2, 4, 5};  ///< stages of a rank that are tried
  bool split_backward = true;           ///< whether schedules are tried that do (zb_h1)
  int axes = 2;                         ///< most of the mesh inside
  int micro_batches = 0;                ///< of a step; 0: those that take least
  int most_micro_batches = 512;
  /// Every choice of every stage is compared, many times as slow; else those that equal stages take of each decision.
  bool all_choices = false;
  std::function<void(const std::string&)> tell{};
};

/// A model of so many rows in a pass, in so many passes.
using graph_of_rows = std::function<graph(long rows, int micro_batches)>;

}  // namespace cfp
