// A plan of a model in stages, and what is asked of one.
#pragma once

#include <cfp/plan/machine_options.hpp>
#include <cfp/plan/stages/staged_price.hpp>
#include <cfp/profile/machine/machine_pools.hpp>

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

/// Throws bad_input for what no search of so many rows a step can be asked.
inline void check(const staged_options& o, long rows, const machine_pools& m) {
  if (rows < 1) throw bad_input("a step has at least 1 row, not " + std::to_string(rows));
  if (o.axes < 1 || o.axes > 2) throw bad_input("axes inside stages must be 1 or 2, are " + std::to_string(o.axes));
  for (const int p : o.places)
    if (p < 2 || m.devices() % p != 0)
      throw bad_input("stages on " + std::to_string(p) +
                      " places along them: the number must be 2 or more and divide the machine's " +
                      std::to_string(m.devices()) + " devices");
  for (const int c : o.chunks)
    if (c < 1) throw bad_input("chunks, stages of each place, must be 1 or more, one is " + std::to_string(c));
  if (o.micro_batches != 0 && (o.micro_batches < 2 || rows % o.micro_batches != 0))
    throw bad_input("a step of " + std::to_string(rows) + " rows in " + std::to_string(o.micro_batches) +
                    " micro-batches: the number must be 2 or more and divide the rows; 0 tries all");
  if (o.most_micro_batches < 2)
    throw bad_input("most_micro_batches must be 2 or more, is " + std::to_string(o.most_micro_batches));
  if (o.machine.memory < 0)
    throw bad_input("memory must be bytes, or 0 for the machine's own, is " + std::to_string(o.machine.memory));
}

/// A model of so many rows in a pass, in so many passes.
using graph_of_rows = std::function<graph(long rows, int micro_batches)>;

}  // namespace cfp
