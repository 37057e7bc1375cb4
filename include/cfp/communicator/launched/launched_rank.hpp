// What a launcher tells a process it starts: which rank it is, of how many, and where rank 0 can be reached.
#pragma once

#include <array>
#include <cfp/core/bad_input.hpp>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cfp::inline v0_1 {

/// A process as one of those that a launcher started.
struct launched_rank {
  int rank = 0;
  int size = 1;                       ///< processes
  int local_rank = 0;                 ///< among those on its host; where the launcher does not say, the rank
  std::string address = "127.0.0.1";  ///< of rank 0's host
  int port = 29500;                   ///< there, where ranks meet
  std::string job{};                  ///< tells jobs apart, as far as the launcher does: else empty
};

/// The value of a variable of the environment, or null.
using environment_variable = std::function<const char*(const char* name)>;

namespace detail {

/// The variables of one kind of launcher. The last two may be missing.
struct launcher_names {
  const char *rank, *size, *local_rank, *local_size, *job;
};

inline constexpr std::array<launcher_names, 4> launchers = {{
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", "SLURM_JOB_ID"},
}};

/// The environment of a process, as numbers and texts.
class launch_environment {
 public:
  explicit launch_environment(const environment_variable& of) : of_(of) {}

  /// What is empty is not set.
  std::optional<std::string> text(const char* name) const {
    const char* const value = *name == '\0' ? nullptr : of_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  /// Throws bad_input unless it is a whole number from `least` to `most`.
  std::optional<int> number(const char* name, int least, int most) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    int out = 0;
    const auto [end, code] = std::from_chars(value->data(), value->data() + value->size(), out);
    if (code != std::errc() || end != value->data() + value->size() || out < least || out > most)
      throw bad_input(std::string(name) + " is a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most) + ", got: " + *value + "; start the processes with a launcher " +
                      "(torchrun, mpirun, srun), or set it right for each");
    return out;
  }

 private:
  const environment_variable& of_;
};

inline bool is_slurm(const launcher_names& names) { return names.rank == std::string_view("SLURM_PROCID"); }

/// On how many hosts the processes are cannot always be told; then it is one.
inline bool on_one_host(const launch_environment& is, const launcher_names& names, int size) {
  if (is_slurm(names))
    for (const char* nodes : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})
      if (const auto n = is.number(nodes, 1, 1 << 24)) return *n == 1;
  return is.number(names.local_size, 1, size).value_or(size) == size;
}

inline void find_address(const launch_environment& is, const launcher_names& names, launched_rank& out) {
  if (const auto address = is.text("MASTER_ADDR")) out.address = *address;
  else if (!on_one_host(is, names, out.size))
    throw bad_input("the " + std::to_string(out.size) +
                    " processes are on several hosts, and MASTER_ADDR is not set; set it, for all of them, "
                    "to the name or address of rank 0's host");
  out.port = is.number("MASTER_PORT", 1, 65535).value_or(out.port);
  // torchrun listens there itself, and says so: then ranks meet at the port beside.
  if (is.text("TORCHELASTIC_USE_AGENT_STORE") == "True") out.port += out.port < 65535 ? 1 : -1;
}

}  // namespace detail

/// What the environment says: as torchrun sets it, or a hand (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE); else as
/// Open MPI's mpirun does, MPICH's and Intel's, or Slurm's srun. For all of them MASTER_ADDR and MASTER_PORT say where
/// rank 0 is: port 29500 unless set (beside it, if torchrun uses it), and this host if all ranks are on it. Nothing: no
/// launcher has started this process. Throws bad_input for values that cannot be.
inline std::optional<launched_rank> find_launched_rank(const environment_variable& variable) {
  const detail::launch_environment is(variable);
  for (const detail::launcher_names& names : detail::launchers) {
    const bool has_rank = is.text(names.rank).has_value(), has_size = is.text(names.size).has_value();
    if (!has_rank && !has_size) continue;
    if (!has_size && detail::is_slurm(names)) continue;  // a batch script itself, which srun has not started
    if (!has_rank || !has_size)
      throw bad_input(std::string(has_rank ? names.rank : names.size) + " is set and " +
                      (has_rank ? names.size : names.rank) + " is not; a launcher sets both, so set both or neither");
    launched_rank out;
    out.size = *is.number(names.size, 1, 1 << 20);
    out.rank = *is.number(names.rank, 0, out.size - 1);
    out.local_rank = is.number(names.local_rank, 0, out.size - 1).value_or(out.rank);
    out.job = is.text(names.job).value_or("");
    detail::find_address(is, names, out);
    return out;
  }
  return std::nullopt;
}

/// The same of this process' environment.
inline std::optional<launched_rank> find_launched_rank() {
  return find_launched_rank([](const char* variable) -> const char* { return std::getenv(variable); });
}

/// This process as one of several that a launcher started; nothing if it is alone.
inline std::optional<launched_rank> one_of_several() {
  const std::optional<launched_rank> me = find_launched_rank();
  return me && me->size > 1 ? me : std::nullopt;
}

}  // namespace cfp
