// What a session returns: values that can be printed, kept, and written as JSON.
#pragma once

#include <cfp/backend/number.hpp>
#include <cfp/core/collective.hpp>
#include <cfp/core/config.hpp>
#include <cfp/core/mesh.hpp>
#include <cfp/plan/plan.hpp>
#include <cfp/plan/stages/staged_layout.hpp>
#include <cfp/session/gradient_check.hpp>
#include <cfp/session/verified.hpp>

#include <array>
#include <cmath>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// While something long goes on.
struct progress {
  std::string what;   ///< "measuring h.0.mlp.c_fc.linear [data=hidden]"
  double share = -1;  ///< of the work that is done, from 0 to 1; below 0: not known
};

/// What planning knows of a model before anything runs.
struct structure {
  std::string model{}, mesh{};
  int operators = 0, forward = 0;
  long blocks = 0, unique_blocks = 0, segments = 0, unique_segments = 0;
  long strategies = 0;                           ///< to measure
  double log10_operators = 0, log10_blocks = 0;  ///< of the number of plans: a choice per operator, per block
  double parameters = 0;
  std::vector<std::string> uneven{};  ///< what is left out because it does not divide
  double seconds = 0;                 ///< that finding all this took
  /// What the plans people use need of a device, in bytes; what they leave open is solved for a plain machine.
  struct need {
    std::string plan{};
    long weights = 0, state = 0, arena = 0, sent = 0;
  };
  std::vector<need> needs{};

  std::string json() const;
};

/// A decision of a plan.
struct plan_line {
  std::string decision{}, choice{};
  bool of_part = true;      ///< what a parallel block splits; else what a shared tensor does
  double ms = 0;            ///< what it computes takes so long, by itself; 0: nothing, or not known
  collective_count sent{};  ///< for it, by each rank
  long times = 1;           ///< decisions of so many layers in a row it stands for (`repeat_layers`)
};

/// What memory of a rank holds under a plan, bytes.
struct memory_split {
  long weight_bytes = 0, state_bytes = 0, kept_bytes = 0, transient_bytes = 0;
  long host_state_bytes = 0, host_kept_bytes = 0;  ///< in memory of its host; state: with weights that rest there
};

/// What planning found.
struct found_plan : memory_split {
  std::string model{}, mesh{};
  plan best{};
  std::vector<plan_line> lines{};
  std::optional<staged_layout> stages{};  ///< of a plan in stages
  std::vector<plan> others{};             ///< plans people use, and those given to compare with, priced alike

  int measured = 0;  ///< programs that were run
  int figures = 0, figures_measured = 0,
      below_bound = 0;   ///< of a lazy search: all there could be, those it needed, and
  double below_by = 0;   ///< those that were less than their bound said, by at most so many ms
  double tolerance = 0;  ///< of a lazy search: within which, relatively, no other plan is faster
  double profile_seconds = 0, solve_seconds = 0;
  int tried = 0;           ///< plans whose segments were run whole
  double gap = 0;          ///< how much faster, relatively, an untried plan might be
  bool from_file = false;  ///< nothing was measured
  long peak_bytes = 0;     ///< of a rank, with what is beside a plan
  long limit_bytes = 0;    ///< most that a rank may take, of which `peak_bytes` is; 0: there is no limit
  /// Of a rank's GPU: all its memory, and what contexts, NCCL, libraries and others take of it. 0: there is none.
  long device_bytes = 0, taken_bytes = 0;

  std::string json() const;
};

/// What a training did.
struct training_report {
  long first = 1, last = 0;  ///< steps
  std::vector<double> loss{}, ms{};

  /// Goes on with what was trained next.
  void append(const training_report& next) {
    if (loss.empty()) first = next.first;
    last = next.last;
    loss.insert(loss.end(), next.loss.begin(), next.loss.end());
    ms.insert(ms.end(), next.ms.begin(), next.ms.end());
  }
  /// The first step whose loss is no finite number; 0: none.
  long lost_at() const {
    for (std::size_t i = 0; i < loss.size(); ++i)
      if (!std::isfinite(loss[i])) return first + static_cast<long>(i);
    return 0;
  }
  std::string json() const;
};

/// Plans run in turn, the found one first.
struct plan_comparison {
  struct entry {
    std::string plan{};
    double predicted_ms = 0, measured_ms = 0;    ///< per step; measured: the median
    std::array<double, 3> ratio{};               ///< of its time to the found plan's: median, 95% interval
    long predicted_peak = 0, measured_peak = 0;  ///< bytes of a rank
    collective_count sent{}, inferred{};         ///< by each rank in a step: counted, and as the rules say
    double outside = 0;                          ///< share of a step outside kernels and conversions
    bool fits = true;                            ///< within the limit of memory, by what is predicted
  };
  std::vector<entry> plans{};
  double tokens = 0;  ///< of a step, as the shapes of the inputs say: elements of the largest input of indices
  bool oversubscribed = false;  ///< more ranks than cores: these times are no timings
  int ranks_here = 0;

  /// Whether what was counted in the communicators is what the rules say.
  bool counts_agree() const {
    for (const entry& e : plans)
      if (!(e.sent == e.inferred)) return false;
    return true;
  }
  /// Whether a compared plan that fits is faster than the found one, on fresh steps too.
  bool beaten() const {
    for (const entry& e : plans)
      if (e.fits && e.ratio[2] < 0.95) return true;
    return false;
  }
  std::string json() const;
};

std::ostream& operator<<(std::ostream&, const structure&);
std::ostream& operator<<(std::ostream&, const found_plan&);
std::ostream& operator<<(std::ostream&, const verification&);
std::ostream& operator<<(std::ostream&, const gradient_check&);
std::ostream& operator<<(std::ostream&, const training_report&);
std::ostream& operator<<(std::ostream&, const plan_comparison&);

}  // namespace cfp
