// What a report shows of a plan: data alone, in the words and units that people read.
#pragma once

#include <cfp/core/collective.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct report_view {
  /// What else a decision could choose: milliseconds more than the plan takes, by sums of parts. No number: not known.
  struct alternative {
    static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    std::string choice{};
    double alone_ms = unknown;           ///< all others as they are; infinite: they do not go with it
    double best_ms = unknown;            ///< all others at their best for it
    std::optional<long> memory_bytes{};  ///< more than what is chosen keeps
    bool proven = true;                  ///< else `best_ms` is a lower bound
  };
  /// Decisions that are alike, of equal layers: one choice. Sums are of all of them.
  struct decision {
    std::string label{}, kind{}, choice{};
    long count = 1, choices = 1;
    int segment = 0;
    double operators_ms = 0;            ///< of the timeline's operators
    double collectives_ms = 0;          ///< and of its other streams
    double parts_ms = 0, edges_ms = 0;  ///< by sums of parts: itself, and what conversions to it take
    long memory_bytes = 0;              ///< that it keeps, by sums of parts
    collective_count sent{};            ///< by each rank
    std::vector<alternative> others{};  ///< of one of them, the best first
  };
  struct block {
    std::string label{};
    std::vector<int> decisions{};
  };
  /// Equal runs of blocks that choose alike, one after another.
  struct segment {
    std::string label{};
    long count = 1;
    int kind = 0, stage = 0;
    std::vector<block> blocks{};
    std::vector<int> shared{};  ///< decisions of tensors that several blocks read
  };

  struct work {
    double begin = 0, end = 0;  ///< milliseconds since the step began
    int name = 0;               ///< of `names`
    int decision = -1;          ///< -1: of none
    std::uint8_t when = 0;      ///< of `phases`
    int pass = 0;               ///< micro-batch
  };
  struct lane {
    std::string label{};
    std::vector<work> done{};
  };
  struct memory_point {
    double at = 0;
    std::vector<long> bytes{};  ///< by kind
  };
  /// What the ranks of a place along the stages do; without stages there is one.
  struct place {
    std::string label{};
    double busy_ms = 0;  ///< in which operators work
    std::vector<lane> lanes{};
    long peak_bytes = 0;
    std::vector<memory_point> memory{};  ///< over a step; each point's bytes are `peak_bytes` together
  };

  struct axis {
    std::string label{};
    int size = 1;
    std::vector<std::string> along{};  ///< what joins the devices of one group
  };
  struct level {
    std::string label{}, kind{};
    int joins = 1;
    double bandwidth = 0;  ///< bytes a second and direction
  };
  struct device {
    std::string label{};
    long memory_bytes = 0;
    double bandwidth = 0, host_bandwidth = 0, launch_us = 0, contention = 1;
    std::vector<std::pair<std::string, double>> product_rates{};  ///< operations a second, by type
  };
  struct compared {
    std::string plan{}, kind{}, mesh{};
    double ms = 0;
    long peak_bytes = 0;
    bool fits = true, found = false;
  };

  std::string model{}, machine{}, type{}, optimizer{}, mesh{}, schedule{};
  std::string times{}, kernels{};        ///< where times are from and what computes, in words
  double predicted_ms = 0;               ///< of a step
  double timeline_ms = 0;                ///< of the timeline, which ends then
  double additive_ms = 0;                ///< sums of parts; 0: not known
  double unowned_ms = 0;                 ///< of the timeline's operators, what no decision is about
  double idle = 0;                       ///< of the time of all ranks, the part in which operators do nothing
  long peak_bytes = 0, limit_bytes = 0;  ///< limit 0: none
  int passes = 1;                        ///< micro-batches
  long operators = 0, parameters = 0;
  bool in_order = true;  ///< lanes tell when things happen; else only how long they take
  std::string memory_axis = "ms", notes{};
  std::vector<axis> axes{};
  device each{};  ///< what it is a plan for; no name: not described
  std::vector<level> levels{};
  std::vector<std::pair<std::string, std::string>> sources{};  ///< of the machine's figures
  std::vector<decision> decisions{};
  std::vector<segment> segments{};
  std::vector<std::string> names{}, memory_kinds{};
  std::vector<place> places{};
  std::vector<compared> plans{};  ///< the found one first
  std::vector<compared> curve{};  ///< what memory is worth, the fastest first
};

/// Of `report_view::work::when`.
inline constexpr const char* report_phases[] = {"forward", "backward", "update", "forward again"};

}  // namespace cfp
