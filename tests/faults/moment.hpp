// One fault at one moment of a program: at an instruction, a collective, or a system call that writes a file.
#pragma once

#include <array>
#include <atomic>
#include <string>

namespace faults {

/// Who stops does so for so many times the deadline of others.
inline constexpr double asleep_for = 2;

enum class kind { instruction, collective, write };
enum class what { none, raise, kill, stop, full, brief };

inline constexpr std::array kinds{"instruction", "collective", "write"};
inline constexpr std::array whats{"none", "throw", "kill", "stop", "full", "short"};

/// What happens, to whom and when: before the `at`-th moment of its kind, from 0.
struct fault {
  faults::what what = faults::what::none;
  faults::kind kind = faults::kind::instruction;
  int rank = 0;
  long at = 0;
  double deadline = 3;    ///< seconds that others wait
  bool is_thread = true;  ///< of a process that goes on; else the process stops
  std::string folder{};   ///< files in it are written: elsewhere nothing is counted

  std::string text() const {
    return std::string(whats[static_cast<std::size_t>(what)]) + " of rank " + std::to_string(rank) + " at " +
           kinds[static_cast<std::size_t>(kind)] + " " + std::to_string(at);
  }
};

inline fault planned;
/// Moments that were passed, by rank and kind; files are written by the first rank of a process.
inline std::array<std::array<std::atomic<long>, kinds.size()>, 8> passed{};

/// Seconds of the clock that all processes have in common.
double now();
/// To be called at each such moment; what is planned for it happens. `full`: from then on no write succeeds.
void pass(int rank, kind of);

}  // namespace faults
