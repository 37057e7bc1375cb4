// Who of a launched job has come to the hub, and who is none of it.
#pragma once

#include <cfp/communicator/launched/hub_connection.hpp>
#include <cfp/communicator/launched/launched_rank.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class attendance {
 public:
  struct place {
    hub_connection* connection = nullptr;
    std::uint64_t host = 0;
    std::string gone{};  // why it is
  };

  explicit attendance(launched_rank first) : me_(std::move(first)), ranks_(static_cast<std::size_t>(me_.size)) {}

  int size() const { return me_.size; }
  place& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  int on_host_of(const place& p) const {
    return static_cast<int>(
        std::count_if(ranks_.begin(), ranks_.end(), [&](const place& other) { return other.host == p.host; }));
  }

  /// Why who says this hello is refused; nothing if it is not.
  std::string objection(const message& m, const std::string& job) {
    const std::string who = "rank " + std::to_string(m.rank);
    if (m.version != message::current) return who + " is of another version of this program than rank 0";
    if (m.size != me_.size)
      return who + " is one of " + std::to_string(m.size) + " ranks and rank 0 one of " + std::to_string(me_.size) +
             ": they are not of one job; give each job a port of its own (MASTER_PORT)";
    if (job != me_.job)
      return who + " is of job \"" + job + "\" and rank 0 of job \"" + me_.job +
             "\"; give each job a port of its own (MASTER_PORT)";
    if (m.rank < 0 || m.rank >= me_.size) return who + " is none of " + std::to_string(me_.size) + " ranks";
    if (of(m.rank).connection != nullptr || !of(m.rank).gone.empty())
      return who + " is there twice; start each rank once, and give each job a port of its own (MASTER_PORT)";
    return "";
  }

  void note_refusal(const std::string& what) { refused_ = what; }

  /// Who has not come, when so long has been waited. Nothing if all have.
  std::string missing(std::chrono::nanoseconds waited) const {
    std::string who;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].connection == nullptr) who += (who.empty() ? "rank " : ", rank ") + std::to_string(r);
    if (who.empty()) return who;
    return "rank 0 waited " + milliseconds(waited) + " for " + who + " to connect to " + me_.address + ":" +
           std::to_string(me_.port) + (refused_.empty() ? "" : ", where this was refused: " + refused_) +
           "; start all " + std::to_string(me_.size) + " ranks, with the same MASTER_ADDR and MASTER_PORT";
  }

 private:
  const launched_rank me_;  // rank 0
  std::vector<place> ranks_;
  std::string refused_;  // the last that was
};

}  // namespace cfp::detail
