// What the ranks of an MPI job tell each other beside their collectives: who has failed, and who has left the job.
#pragma once

#include <cfp/communicator/mpi/process_group.hpp>
#include <cfp/communicator/rank_failure.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// All that one rank has heard, and how far others had come in each group when they ended.
class job_news {
 public:
  explicit job_news(const std::deque<process_group>& groups) : groups_(groups) {}
  job_news(const job_news&) = delete;

  /// Called by all processes together.
  void open(int rank, int size) {
    rank_ = rank;
    ended_.resize(static_cast<std::size_t>(size));
    mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  /// The same, where no rank has failed.
  void close() { MPI_Comm_free(&comm_); }

  bool failed() const {
    const std::lock_guard lock(mutex_);
    return !errors_.empty();
  }

  /// The same of what has been told meanwhile.
  bool stopped() {
    listen();
    return failed();
  }

  /// The error of each rank that is known to have failed, causes first, then by rank: clocks of processes are not one
  /// clock.
  std::vector<rank_error> errors() const {
    const std::lock_guard lock(mutex_);
    std::vector<rank_error> out = errors_;
    std::sort(out.begin(), out.end(), [](const rank_error& a, const rank_error& b) {
      return std::pair(a.consequence, a.rank) < std::pair(b.consequence, b.rank);
    });
    return out;
  }

  /// Of a rank's errors the first is kept; all others are told.
  void record(const rank_error& e) {
    listen();
    {
      const std::lock_guard lock(mutex_);
      if (known(e.rank)) return;
      errors_.push_back(e);
    }
    tell(e);
  }

  /// This rank's part of a job ends well, unless it has failed.
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      if (known(rank_)) return;
      ++ended_[static_cast<std::size_t>(rank_)].left;
    }
    tell({rank_, "", false});
  }

  enum class ending : std::uint8_t { open, left, failed };

  /// How the job ends: all ranks have left it, so that the next can begin, or some have failed; open while some have
  /// done neither.
  ending end() {
    listen();
    const std::lock_guard lock(mutex_);
    int left = 0, over = 0;
    for (int r = 0; r < size(); ++r) {
      left += has_left(r);
      over += has_left(r) || known(r);
    }
    const bool sent = std::all_of(told_.begin(), told_.end(), [](announcement& m) { return all_done(m.going); });
    if (sent) told_.clear();
    if (sent && left == size()) {  // what some say of the next job already, is the next job's
      ++job_;
      for (ended& e : ended_)
        if (e.left == job_) e.made.clear();
      return ending::left;
    }
    return sent && over == size() ? ending::failed : ending::open;
  }

  /// Counts a call of this rank, unless some rank is known to have failed.
  bool may_call(process_group& g) {
    listen();
    const std::lock_guard lock(mutex_);
    if (!errors_.empty()) return false;
    ++g.made;
    return true;
  }

  struct absence {
    int rank = -1;  // none
    bool failing = false;
  };
  /// Who has ended without making the call that this rank makes in a group, and whether any rank has failed.
  absence absent(const process_group& g) {
    listen();
    const std::lock_guard lock(mutex_);
    for (const int r : g.ranks) {
      const ended& e = ended_[static_cast<std::size_t>(r)];
      if (r != rank_ && !e.made.empty() && e.made[index_of(g)] < g.made) return {r, !errors_.empty()};
    }
    return {};
  }

 private:
  static constexpr int tag = 2;
  static constexpr std::size_t longest = 1000;

  int size() const { return static_cast<int>(ended_.size()); }

  bool known(int r) const {
    return std::any_of(errors_.begin(), errors_.end(), [r](const rank_error& e) { return e.rank == r; });
  }
  bool has_left(int r) const { return ended_[static_cast<std::size_t>(r)].left > job_; }

  std::size_t index_of(const process_group& g) const {
    std::size_t index = 0;
    while (&groups_[index] != &g) ++index;
    return index;
  }

  // To every other rank: an error, or with no message that this rank has left; and what it has called. Short enough to
  // be sent at once.
  void tell(const rank_error& e) {
    std::string text = e.message.empty() ? "l" : e.consequence ? "c" : "e";
    const std::lock_guard lock(mutex_);
    for (const process_group& g : groups_) text.append(reinterpret_cast<const char*>(&g.made), sizeof g.made);
    told_.push_back({text + (e.message.size() <= longest ? e.message : e.message.substr(0, longest) + " ..."), {}});
    announcement& m = told_.back();
    m.going.assign(static_cast<std::size_t>(size()), MPI_REQUEST_NULL);
    for (int r = 0; r < size(); ++r)
      if (r != rank_)
        MPI_Isend(m.text.data(), static_cast<int>(m.text.size()), MPI_CHAR, r, tag, comm_,
                  &m.going[static_cast<std::size_t>(r)]);
  }

  void listen() {
    const std::lock_guard lock(mutex_);
    for (int empty = 0; empty < 2;) {  // a look at what has arrived lets more arrive
      MPI_Status status;
      int here = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &here, &status);
      if (here == 0) {
        ++empty;
        continue;
      }
      int length = 0;
      MPI_Get_count(&status, MPI_CHAR, &length);
      std::string text(static_cast<std::size_t>(length), ' ');
      MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, tag, comm_, MPI_STATUS_IGNORE);
      ended& e = ended_[static_cast<std::size_t>(status.MPI_SOURCE)];
      e.made.resize(groups_.size());
      std::memcpy(e.made.data(), text.data() + 1, e.made.size() * sizeof(std::int64_t));
      if (text[0] == 'l') ++e.left;
      else
        errors_.push_back({status.MPI_SOURCE, text.substr(1 + e.made.size() * sizeof(std::int64_t)), text[0] == 'c'});
    }
  }

  // What was told, while it is on its way.
  struct announcement {
    std::string text;
    std::vector<MPI_Request> going;
  };
  // What a rank that has ended a job said.
  struct ended {
    long left = 0;                   // jobs
    std::vector<std::int64_t> made;  // calls, per group; empty: nothing was said in this job
  };

  const std::deque<process_group>& groups_;
  int rank_ = 0;
  MPI_Comm comm_ = MPI_COMM_NULL;
  mutable std::mutex mutex_;  // of what follows
  std::vector<rank_error> errors_;
  std::vector<ended> ended_;  // by rank
  long job_ = 0;              // that all had left before
  std::deque<announcement> told_;
};

}  // namespace cfp::detail
