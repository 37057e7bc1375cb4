// The seam between what is planned and what runs it. Above it nothing knows number types, pools or kernels: whoever
// measures, verifies, compares or trains asks a `backend`, whose ranks load programs. Below it one `engine` runs them.
#pragma once

#include <cfp/backend/number.hpp>
#include <cfp/backend/stored_numbers.hpp>
#include <cfp/communicator/communicator.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/core/mesh.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/program/target.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace cfp::inline v0_1 {

/// A whole tensor in row-major order, whatever the mesh: given to a program, or collected from it.
using given_tensor =
    std::variant<std::span<const std::int32_t>, std::span<const float>, std::span<const double>, stored_numbers>;
using collected_tensor = std::variant<std::span<float>, std::span<double>>;

/// Seconds of this rank, waiting for others included, since its program was loaded or `clear_times`.
struct step_times {
  double kernels = 0, conversions = 0, total = 0;
  double passes = 0;                   ///< of the total, in what runs once per micro-batch
  std::vector<double> instructions{};  ///< each when it last ran; none where it is not known
};

/// A program on one rank, with its memory: weights are as their fillings say, states zero.
class loaded_program {
 public:
  virtual ~loaded_program() = default;

  /// Runs a step; `number` counts optimizer steps from 1, `passes` is the program's or, to measure, fewer. Before each
  /// pass `feed(pass)` gives its inputs.
  virtual void step(long number, int passes, const std::function<void(int pass)>& feed = {}) = 0;
  /// The loss of the last step, complete on every rank: the mean over its passes.
  virtual double loss() const = 0;

  /// The same, but it returns while the device still works, if it works by itself (a GPU): at most two passes are on
  /// their way. Such a step is in no times. An error of it may be thrown by a later call.
  virtual void run_ahead(long number, int passes, const std::function<void(int pass)>& feed = {}) = 0;
  /// The losses of steps that ran ahead, in order, each once: the next, or none where it is not known. To `wait` is to
  /// take what is on its way too; none then says that there is none, and that all that was issued is done. How many
  /// are known without waiting depends on nothing but the calls before.
  virtual std::optional<double> ended(bool wait) = 0;

  /// This rank's piece of a whole input, weight or state.
  virtual void give(int value, const given_tensor& whole) = 0;
  /// Writes this rank's piece of a weight or state into the whole. Of the ranks that hold the same piece one writes.
  virtual void collect(int value, const collected_tensor& whole) const = 0;

  virtual step_times times() const = 0;
  virtual void clear_times() = 0;
  /// From now on the times of single instructions are taken too, where that costs time of its own.
  virtual void time_instructions(bool) {}
};

/// What a training begins with in the place of what its fillings say, or goes on after.
struct training_start {
  long step = 0;  ///< steps that were trained
  std::map<int, given_tensor> tensors{};
  std::string path{};  ///< of its file, for sentences
};

/// What the function of a rank is given.
class rank {
 public:
  virtual ~rank() = default;

  virtual int number() const = 0;  ///< from 0
  /// Whether this rank is the one that keeps what its process is to keep: one in each process.
  virtual bool leads() const = 0;

  /// The program must have its memory planned; it and the graph outlive what is returned.
  virtual std::unique_ptr<loaded_program> load(const program&, const graph&, std::uint64_t seed) = 0;

  // Among all ranks; every one calls them.
  virtual void barrier() = 0;
  virtual void combine(std::span<double>, reduction) = 0;
  virtual void agree(std::span<std::byte>) = 0;  ///< what the first rank has
  /// Of a whole tensor that was zero every rank has collected its pieces: makes it whole in every process.
  virtual void complete(const collected_tensor& whole) = 0;

  /// What the device has chosen by timing, by name, so that another run computes by the same: in tables of times.
  virtual std::map<std::string, long> choices() const { return {}; }
  virtual void choose(const std::map<std::string, long>&) {}  ///< before programs are loaded, on every rank the same

  virtual std::vector<traffic> counted() const = 0;  ///< in collectives of programs, per group: see `rank_grid`
  virtual void reset_counted() = 0;
  virtual long bytes() const = 0;       ///< that its loaded programs hold now
  virtual long peak_bytes() const = 0;  ///< the most they ever held

  // Of the device's memory, where it has its own; else 0.
  virtual long total_bytes() const { return 0; }
  /// Those that programs may take, what is loaded included: contexts, NCCL, libraries and others have the rest.
  virtual long free_bytes() const { return 0; }
  /// That a program would take beside what it plans: while instructions run, and because memory comes in pages.
  virtual long beside_bytes(const program&, const graph&) const { return 0; }
};

/// Ranks of a mesh that run one job after another.
class backend {
 public:
  virtual ~backend() = default;

  /// Calls the function on every rank at once, and returns when all have ended. Throws rank_failure, which says what
  /// each rank met, if any has failed.
  virtual void run(const std::function<void(rank&)>&) = 0;
  /// How long a rank waits for others before it fails: 10 minutes unless set. Before the first job.
  virtual void set_deadline(std::chrono::nanoseconds) = 0;

  virtual const mesh_shape& mesh() const = 0;
  virtual number type() const = 0;
  virtual const target& lowered_for() const = 0;  ///< what its programs must be lowered for
  virtual int on_this_machine() const = 0;        ///< ranks
  virtual bool is_first() const { return true; }  ///< of several processes, the one that speaks and writes files
  virtual std::string description() const = 0;    ///< what runs there: in tables of times
};

/// Throws bad_input unless a program is of the mesh of the ranks that are to run it; its axes may be called otherwise.
inline void check_mesh(const program& p, const mesh_shape& ranks) {
  bool same = p.mesh.rank() == ranks.rank();
  for (int a = 0; same && a < ranks.rank(); ++a) same = p.mesh.size(a) == ranks.size(a);
  const auto said = [](const mesh_shape& m) { return m.rank() > 0 ? to_string(m) : std::string("one device"); };
  if (!same)
    throw bad_input("a program is lowered for mesh " + said(p.mesh) + ", and these ranks are of mesh " + said(ranks) +
                    ": make ranks of the program's own mesh");
}

/// Whether more ranks run on a machine than it has cores: then times are no timings.
inline bool is_oversubscribed(backend& on) {
  double over = on.on_this_machine() > static_cast<int>(std::thread::hardware_concurrency());
  on.run([&](rank& r) {
    double mine = over;
    r.combine(std::span(&mine, 1), reduction::max);
    if (r.leads()) over = mine;
  });
  return over > 0;
}

}  // namespace cfp
