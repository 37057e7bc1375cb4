// What a launched rank knows of one of its worlds.
#pragma once

#include <cfp/communicator/rank_failure.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

/// A call of this rank, until it is answered.
struct awaited_answer {
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  bool sent = false;
  enum class state { open, result, stopped } now = state::open;
  std::string why{};   // it is stopped
  bool of_hub = true;  // it says so
};

/// What a rank knows of one world. All of it changes under the link's mutex.
struct launched_channel {
  explicit launched_channel(std::size_t groups) : awaited(groups) {}

  std::vector<awaited_answer*> awaited;  // by number of the group + 1
  std::vector<rank_error> errors;        // as they were told
  int over = 0;                          // jobs that all have ended well
  bool failed = false;                   // and the last one, otherwise

  void end_job(bool well) {
    if (well) ++over;
    else failed = true;
  }
  /// Rank 0 does not speak any more.
  void break_off(const std::string& why) {
    if (!knows(0)) record({0, why, false});
    failed = true;
  }
  bool knows(int rank) const {
    return std::any_of(errors.begin(), errors.end(), [rank](const rank_error& e) { return e.rank == rank; });
  }
  void record(const rank_error& e) {
    const auto same = std::find_if(errors.begin(), errors.end(), [&](const rank_error& o) { return o.rank == e.rank; });
    if (same == errors.end()) errors.push_back(e);
    else *same = e;
  }
};

}  // namespace cfp::detail
