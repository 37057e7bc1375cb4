// Ranks as processes of an MPI job: the groups in which they meet, and what happens when one of them fails.
//
// A collective begins with the members telling each other what they call. So a rank knows who has not come when its deadline passes, and
// members that call different things find it out before any data move. Whether a collective takes place must look the same to all: it does
// if every member has called. So a rank that has called waits on, whatever fails elsewhere, until all calls are there or a member says that
// it will not call: who fails or leaves tells all others, with the number of calls it has made in each group. Also a rank whose deadline has
// passed says so and waits on, for as long again: those who come later learn of it before they call. Once all have called only the death of
// a process can hold others up, which ends the job.
#pragma once

#include <cfp/runtime/mpi/process_group.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace cfp::inline v0_1 {

/// The state of this process' rank: one group of all, and one per mesh axis. MPI must have been initialised, with MPI_THREAD_MULTIPLE if
/// streams run beside (`process_job` does it). All processes construct it together.
class process_world : public rank_grid {
 public:
  static constexpr bool one_process = false;

  /// Throws std::invalid_argument unless the mesh has as many ranks as the job has processes.
  explicit process_world(std::vector<int> mesh) : rank_grid(std::move(mesh)) {
    int processes = 0;
    detail::mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &processes), "MPI_Comm_size");
    detail::mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    if (processes != size())
      throw std::invalid_argument("the mesh has " + std::to_string(size()) + " ranks and the job " + std::to_string(processes) + " processes; start it with mpirun -n " +
                                  std::to_string(size()));
    detail::mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &alarm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(alarm_, MPI_ERRORS_RETURN);
    for (int axis = whole; axis < static_cast<int>(this->mesh().size()); ++axis) {
      detail::process_group& g = groups_.emplace_back();
      g.where = axis == whole ? "" : " on axis " + std::to_string(axis);
      g.ranks = members(rank_, axis);
      detail::mpi_check(MPI_Comm_split(MPI_COMM_WORLD, g.ranks.front(), rank_, &g.comm), "MPI_Comm_split");
      MPI_Comm_set_errhandler(g.comm, MPI_ERRORS_RETURN);
      g.calls.resize(g.ranks.size());
      g.coming.assign(g.ranks.size(), MPI_REQUEST_NULL);
      g.going = g.coming;
    }
    ended_.resize(static_cast<std::size_t>(size()));
    MPI_Comm machine = MPI_COMM_NULL;
    detail::mpi_check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine), "MPI_Comm_split_type");
    detail::mpi_check(MPI_Comm_size(machine, &on_this_machine_), "MPI_Comm_size");
    MPI_Comm_free(&machine);
  }
  process_world(const process_world&) = delete;
  ~process_world() {
    for (detail::process_group& g : groups_) {
      for (std::vector<MPI_Request>* of : {&g.coming, &g.going})
        for (MPI_Request& r : *of)
          if (r != MPI_REQUEST_NULL) {
            MPI_Cancel(&r);
            MPI_Request_free(&r);
          }
      if (!failed()) MPI_Comm_free(&g.comm);
    }
    if (!failed()) MPI_Comm_free(&alarm_);
  }

  int rank() const { return rank_; }
  int on_this_machine() const { return on_this_machine_; }  ///< ranks
  detail::process_group& group(int axis) { return groups_[static_cast<std::size_t>(axis + 1)]; }

  /// How long a rank waits for the others before it fails: 10 minutes unless set.
  void set_deadline(std::chrono::nanoseconds limit) { deadline_ = limit; }

  /// This rank ends with an error: whoever calls a collective later throws communicator_error, and whoever waits in one that cannot take
  /// place any more. (A stream of this rank that waits in one is released when a member of its group says that it will not call.)
  /// As a `consequence` of another's error it adds where that met it, "stopped in ...".
  void fail(int rank, const std::string& what, bool consequence = false) { record(detail::failure(rank, what, consequence)); }

  /// This rank's part of a job ends well, unless it has failed: whoever still waits for it throws.
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      if (known(rank_)) return;
      ++ended_[static_cast<std::size_t>(rank_)].left;
    }
    tell({rank_, "", false});
  }

  /// Waits until every rank has left the job or failed. True if all have left it: the next can begin. If some rank does neither within the
  /// deadline after a failure became known, all processes are ended.
  bool end() {
    std::chrono::steady_clock::time_point since;
    for (bool failing = false;; std::this_thread::yield()) {
      listen();
      {
        const std::lock_guard lock(mutex_);
        int left = 0, over = 0;
        for (int r = 0; r < size(); ++r) {
          left += has_left(r);
          over += has_left(r) || known(r);
        }
        const bool sent = std::all_of(told_.begin(), told_.end(), [](announcement& m) { return done(m.going); });
        if (sent) told_.clear();
        if (sent && left == size()) {  // what some say of the next job already, is the next job's
          ++job_;
          for (ended& e : ended_)
            if (e.left == job_) e.made.clear();
          return true;
        }
        if (sent && over == size()) return false;
        if (!failing && !errors_.empty()) {
          failing = true;
          since = std::chrono::steady_clock::now();
        }
      }
      if (failing && std::chrono::steady_clock::now() - since >= deadline_)
        give_up(rank_failure(errors()).what() + std::string("\n  then rank ") + std::to_string(rank_) + " waited " + detail::milliseconds(deadline_) + " for the others to end");
    }
  }

  bool failed() const {
    const std::lock_guard lock(mutex_);
    return !errors_.empty();
  }

  /// The same of what has been told meanwhile.
  bool stopped() {
    listen();
    return failed();
  }

  /// The error of each rank that is known to have failed, causes first, then by rank: clocks of processes are not one clock.
  std::vector<rank_error> errors() const {
    const std::lock_guard lock(mutex_);
    std::vector<rank_error> out = errors_;
    std::sort(out.begin(), out.end(), [](const rank_error& a, const rank_error& b) { return std::pair(a.consequence, a.rank) < std::pair(b.consequence, b.rank); });
    return out;
  }

  /// Returns once all members have made equal calls.
  void enter(detail::process_group& g, const detail::collective_call& call) {
    begin(g, call);
    g.mine = detail::sent_call(call);
    for (std::size_t i = 0; i < g.ranks.size(); ++i) {
      if (g.ranks[i] == rank_) {
        g.calls[i] = g.mine;
        continue;
      }
      const int member = static_cast<int>(i);
      detail::mpi_check(MPI_Irecv(&g.calls[i], sizeof(detail::sent_call), MPI_BYTE, member, call_tag, g.comm, &g.coming[i]), "MPI_Irecv");
      detail::mpi_check(MPI_Isend(&g.mine, sizeof(detail::sent_call), MPI_BYTE, member, call_tag, g.comm, &g.going[i]), "MPI_Isend");
    }
    auto start = std::chrono::steady_clock::now();
    bool is_late = false;
    for (long turn = 1; !done(g.coming) || !done(g.going); ++turn) {
      if (turn % 64 != 0) continue;
      check(g, call);
      if (std::chrono::steady_clock::now() - start >= deadline_) {
        if (is_late) give_up(rank_failure(errors()).what());
        record({rank_, lateness(g, call), false});
        is_late = true;
        start = std::chrono::steady_clock::now();
      }
      std::this_thread::yield();
    }
    for (std::size_t i = 0; i < g.ranks.size(); ++i)
      if (!(g.calls[i].call() == g.calls[0].call())) mismatch(g, g.calls[0].call(), g.calls[i].call(), g.ranks[i], call);
  }

  /// Returns once what was begun is done. All members are there: if it takes ten minutes and the deadline, one has died, and the job ends here.
  void finish(detail::process_group& g, const detail::collective_call& call, MPI_Request& request) {
    const auto begin = std::chrono::steady_clock::now();
    int arrived = 0;
    for (long turn = 1;; ++turn) {
      detail::mpi_check(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), "MPI_Test");
      if (arrived != 0) return;
      if (turn % 64 != 0) continue;
      const auto waited = std::chrono::steady_clock::now() - begin;
      if (waited >= deadline_ + std::chrono::minutes(10))
        give_up("rank " + std::to_string(rank_) + " waited " + detail::milliseconds(waited) + " in " + call.text() + g.where + " for its data");
      std::this_thread::yield();
    }
  }

  /// Ends all processes, where going on is not possible.
  [[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

 private:
  static constexpr int call_tag = 1, error_tag = 2;
  static constexpr std::size_t longest = 1000;

  // One by one: those that are done are then known to be.
  static bool done(std::vector<MPI_Request>& requests) {
    bool all = true;
    for (MPI_Request& r : requests) {
      int is = 1;
      if (r != MPI_REQUEST_NULL) detail::mpi_check(MPI_Test(&r, &is, MPI_STATUS_IGNORE), "MPI_Test");
      all = all && is != 0;
    }
    return all;
  }

  bool known(int r) const {
    return std::any_of(errors_.begin(), errors_.end(), [r](const rank_error& e) { return e.rank == r; });
  }
  bool has_left(int r) const { return ended_[static_cast<std::size_t>(r)].left > job_; }

  // Before a call: throws if any rank is known to have failed.
  void begin(detail::process_group& g, const detail::collective_call& call) {
    listen();
    std::unique_lock lock(mutex_);
    if (errors_.empty()) {
      ++g.made;
      return;
    }
    lock.unlock();
    stop_for(errors().front().message, g, call);
  }

  // While others' calls are awaited: throws if a member has ended without making this one.
  void check(const detail::process_group& g, const detail::collective_call& call) {
    listen();
    std::unique_lock lock(mutex_);
    for (const int r : g.ranks) {
      const ended& e = ended_[static_cast<std::size_t>(r)];
      if (r == rank_ || e.made.empty() || e.made[static_cast<std::size_t>(axis_of(g) + 1)] >= g.made) continue;
      const bool failed = !errors_.empty();
      lock.unlock();
      if (failed) stop_for(errors().front().message, g, call);
      stop("rank " + std::to_string(r) + " left while rank " + std::to_string(rank_) + " waits in " + call.text() + g.where);
    }
  }

  int axis_of(const detail::process_group& g) const {
    int axis = whole;
    while (&groups_[static_cast<std::size_t>(axis + 1)] != &g) ++axis;
    return axis;
  }

  [[noreturn]] void stop_for(const std::string& cause, const detail::process_group& g, const detail::collective_call& call) {
    const std::string brief = "rank " + std::to_string(rank_) + " stopped in " + call.text() + g.where;
    record({rank_, brief, true});
    throw communicator_error(brief + ": " + cause);
  }

  // The call of a rank has arrived.
  static bool calls(const detail::process_group& g, int r) {
    const auto i = static_cast<std::size_t>(std::find(g.ranks.begin(), g.ranks.end(), r) - g.ranks.begin());
    return g.coming[i] == MPI_REQUEST_NULL;
  }

  std::string lateness(const detail::process_group& g, const detail::collective_call& call) const {
    std::string missing;
    for (const int r : g.ranks)
      if (r != rank_ && !calls(g, r)) missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(r);
    return "rank " + std::to_string(rank_) + " waited " + detail::milliseconds(deadline_) + " in " + call.text() + g.where + " for " + missing;
  }

  [[noreturn]] void stop(const std::string& message) {
    record({rank_, message, false});
    throw communicator_error(message);
  }

  /// All members find the same: each compares with the first, in order.
  [[noreturn]] void mismatch(const detail::process_group& g, const detail::collective_call& a, const detail::collective_call& b, int other,
                             const detail::collective_call& mine) {
    const bool same_text = a.text() == b.text();
    const std::string message = "rank " + std::to_string(g.ranks.front()) + " calls " + a.text() + (same_text ? a.details() : "") +
                                " while rank " + std::to_string(other) + " calls " + b.text() + (same_text ? b.details() : "") + g.where;
    if (rank_ == g.ranks.front()) record({rank_, message, false});
    else record({rank_, "rank " + std::to_string(rank_) + " stopped in " + mine.text() + g.where, true});
    throw communicator_error(message);
  }

  // Of a rank's errors the first is kept; all others are told.
  void record(const rank_error& e) {
    listen();
    {
      const std::lock_guard lock(mutex_);
      if (known(e.rank)) return;
      errors_.push_back(e);
    }
    tell(e);
  }

  // To every other rank: an error, or with no message that this rank has left; and what it has called. Short enough to be sent at once.
  void tell(const rank_error& e) {
    std::string text = e.message.empty() ? "l" : e.consequence ? "c" : "e";
    const std::lock_guard lock(mutex_);
    for (const detail::process_group& g : groups_) text.append(reinterpret_cast<const char*>(&g.made), sizeof g.made);
    told_.push_back({text + (e.message.size() <= longest ? e.message : e.message.substr(0, longest) + " ..."), {}});
    announcement& m = told_.back();
    m.going.assign(static_cast<std::size_t>(size()), MPI_REQUEST_NULL);
    for (int r = 0; r < size(); ++r)
      if (r != rank_) MPI_Isend(m.text.data(), static_cast<int>(m.text.size()), MPI_CHAR, r, error_tag, alarm_, &m.going[static_cast<std::size_t>(r)]);
  }

  void listen() {
    const std::lock_guard lock(mutex_);
    for (int empty = 0; empty < 2;) {  // a look at what has arrived lets more arrive
      MPI_Status status;
      int here = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, error_tag, alarm_, &here, &status);
      if (here == 0) {
        ++empty;
        continue;
      }
      int length = 0;
      MPI_Get_count(&status, MPI_CHAR, &length);
      std::string text(static_cast<std::size_t>(length), ' ');
      MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, error_tag, alarm_, MPI_STATUS_IGNORE);
      ended& e = ended_[static_cast<std::size_t>(status.MPI_SOURCE)];
      e.made.resize(groups_.size());
      std::memcpy(e.made.data(), text.data() + 1, e.made.size() * sizeof(std::int64_t));
      if (text[0] == 'l') ++e.left;
      else errors_.push_back({status.MPI_SOURCE, text.substr(1 + e.made.size() * sizeof(std::int64_t)), text[0] == 'c'});
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

  int rank_ = 0, on_this_machine_ = 1;
  std::chrono::nanoseconds deadline_ = std::chrono::minutes(10);
  MPI_Comm alarm_ = MPI_COMM_NULL;
  std::deque<detail::process_group> groups_;  // all, then one per axis
  mutable std::mutex mutex_;                  // of what follows
  std::vector<rank_error> errors_;
  std::vector<ended> ended_;  // by rank
  long job_ = 0;              // that all had left before
  std::deque<announcement> told_;
};

}  // namespace cfp
