// Ranks as processes of an MPI job: the groups in which they meet, and what happens when one of them fails.
//
// A collective begins with the members telling each other what they call. So a rank knows who has not come when its
// deadline passes, and members that call different things find it out before any data move. Whether a collective takes
// place must look the same to all: it does if every member has called. So a rank that has called waits on, whatever
// fails elsewhere, until all calls are there or a member says that it will not call: who fails or leaves tells all
// others, with the number of calls it has made in each group. Also a rank whose deadline has passed says so and waits
// on, for as long again: those who come later learn of it before they call. Once all have called only the death of a
// process can hold others up, which ends the job.
#pragma once

#include <cfp/communicator/communicator.hpp>
#include <cfp/communicator/mpi/job_news.hpp>
#include <cfp/communicator/mpi/process_group.hpp>
#include <cfp/core/bad_input.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// The state of this process' rank: a group of all, one per mesh axis, and per set of several. MPI is initialised, with
/// MPI_THREAD_MULTIPLE if streams run beside (`process_job` does it). All processes construct it together.
class process_world : public rank_grid {
 public:
  static constexpr bool one_process = false;

  /// Throws bad_input unless the mesh has as many ranks as the job has processes.
  explicit process_world(std::vector<int> mesh) : rank_grid(std::move(mesh)) {
    int processes = 0;
    detail::mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &processes), "MPI_Comm_size");
    detail::mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    if (processes != size())
      throw bad_input("the mesh has " + std::to_string(size()) + " ranks and the job " + std::to_string(processes) +
                      " processes; start it with mpirun -n " + std::to_string(size()));
    meet();
    news_.open(rank_, size());
    for (int group = whole; group < groups_and_pairs(); ++group) {
      detail::process_group& g = groups_.emplace_back();
      g.where = where(group);
      g.ranks = members(rank_, group);
      detail::mpi_check(MPI_Comm_split(MPI_COMM_WORLD, g.ranks.front(), rank_, &g.comm), "MPI_Comm_split");
      MPI_Comm_set_errhandler(g.comm, MPI_ERRORS_RETURN);
      g.calls.resize(g.ranks.size());
      g.coming.assign(g.ranks.size(), MPI_REQUEST_NULL);
      g.going = g.coming;
    }
    MPI_Comm machine = MPI_COMM_NULL;
    detail::mpi_check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine),
                      "MPI_Comm_split_type");
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
    if (!failed()) news_.close();
  }

  int rank() const { return rank_; }
  int on_this_machine() const { return on_this_machine_; }  ///< ranks
  detail::process_group& group(int number) { return groups_[static_cast<std::size_t>(number + 1)]; }

  /// How long a rank waits for the others before it fails: 10 minutes unless set.
  void set_deadline(std::chrono::nanoseconds limit) { deadline_ = limit; }

  /// This rank ends with an error: whoever calls a collective later throws communicator_error, and whoever waits in one
  /// that cannot take place any more. (A stream of this rank that waits in one is released when a member of its group
  /// says that it will not call.) As a `consequence` of another's error it adds where that met it, "stopped in ...".
  void fail(int rank, const std::string& what, bool consequence = false) {
    news_.record(detail::failure(rank, what, consequence));
  }

  /// This rank's part of a job ends well, unless it has failed: whoever still waits for it throws.
  void leave() { news_.leave(); }

  /// Waits until every rank has left the job or failed. True if all have left it: the next can begin. If some rank does
  /// neither within the deadline after a failure became known, all processes are ended.
  bool end() {
    std::chrono::steady_clock::time_point since;
    for (bool failing = false;; std::this_thread::yield()) {
      const detail::job_news::ending now = news_.end();
      if (now != detail::job_news::ending::open) return now == detail::job_news::ending::left;
      if (!failing && failed()) {
        failing = true;
        since = std::chrono::steady_clock::now();
      }
      if (failing && std::chrono::steady_clock::now() - since >= deadline_)
        give_up(rank_failure(errors()).what() + std::string("\n  then rank ") + std::to_string(rank_) + " waited " +
                detail::milliseconds(deadline_) + " for the others to end");
    }
  }

  bool failed() const { return news_.failed(); }

  /// The same of what has been told meanwhile.
  bool stopped() { return news_.stopped(); }

  /// The error of each rank that is known to have failed, causes first, then by rank: clocks of processes are not one
  /// clock.
  std::vector<rank_error> errors() const { return news_.errors(); }

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
      detail::mpi_check(
          MPI_Irecv(&g.calls[i], sizeof(detail::sent_call), MPI_BYTE, member, call_tag, g.comm, &g.coming[i]),
          "MPI_Irecv");
      detail::mpi_check(MPI_Isend(&g.mine, sizeof(detail::sent_call), MPI_BYTE, member, call_tag, g.comm, &g.going[i]),
                        "MPI_Isend");
    }
    auto start = std::chrono::steady_clock::now();
    bool is_late = false;
    for (long turn = 1; !detail::all_done(g.coming) || !detail::all_done(g.going); ++turn) {
      if (turn % 64 != 0) continue;
      check(g, call);
      if (std::chrono::steady_clock::now() - start >= deadline_) {
        if (is_late) give_up(rank_failure(errors()).what());
        news_.record({rank_, lateness(g, call), false});
        is_late = true;
        start = std::chrono::steady_clock::now();
      }
      std::this_thread::yield();
    }
    for (std::size_t i = 0; i < g.ranks.size(); ++i)
      if (!(g.calls[i].call() == g.calls[0].call()))
        mismatch(g, g.calls[0].call(), g.calls[i].call(), g.ranks[i], call);
  }

  /// Returns once what was begun is done. All members are there: if it takes ten minutes and the deadline, one has
  /// died, and the job ends here.
  void finish(detail::process_group& g, const detail::collective_call& call, MPI_Request& request) {
    const auto begin = std::chrono::steady_clock::now();
    int arrived = 0;
    for (long turn = 1;; ++turn) {
      detail::mpi_check(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), "MPI_Test");
      if (arrived != 0) return;
      if (turn % 64 != 0) continue;
      const auto waited = std::chrono::steady_clock::now() - begin;
      if (waited >= deadline_ + std::chrono::minutes(10))
        give_up("rank " + std::to_string(rank_) + " waited " + detail::milliseconds(waited) + " in " + call.text() +
                g.where + " for its data");
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
  static constexpr int call_tag = 1;

  // Groups are made without a deadline: all must have come before. One that has ended cannot be asked.
  void meet() {
    const auto start = std::chrono::steady_clock::now();
    MPI_Request all = MPI_REQUEST_NULL;
    detail::mpi_check(MPI_Ibarrier(MPI_COMM_WORLD, &all), "MPI_Ibarrier");
    for (int here = 0; here == 0; detail::mpi_check(MPI_Test(&all, &here, MPI_STATUS_IGNORE), "MPI_Test"))
      if (std::chrono::steady_clock::now() - start >= deadline_)
        give_up("rank " + std::to_string(rank_) + " waited " + detail::milliseconds(deadline_) +
                " for all processes of the job to make ranks: some have not, or have ended");
  }

  // Before a call: throws if any rank is known to have failed.
  void begin(detail::process_group& g, const detail::collective_call& call) {
    if (!news_.may_call(g)) stop_for(errors().front().message, g, call);
  }

  // While others' calls are awaited: throws if a member has ended without making this one.
  void check(const detail::process_group& g, const detail::collective_call& call) {
    const detail::job_news::absence gone = news_.absent(g);
    if (gone.rank < 0) return;
    if (gone.failing) stop_for(errors().front().message, g, call);
    stop("rank " + std::to_string(gone.rank) + " left while rank " + std::to_string(rank_) + " waits in " +
         call.text() + g.where);
  }

  [[noreturn]] void stop_for(const std::string& cause, const detail::process_group& g,
                             const detail::collective_call& call) {
    const std::string brief = "rank " + std::to_string(rank_) + " stopped in " + call.text() + g.where;
    news_.record({rank_, brief, true});
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
    return "rank " + std::to_string(rank_) + " waited " + detail::milliseconds(deadline_) + " in " + call.text() +
           g.where + " for " + missing;
  }

  [[noreturn]] void stop(const std::string& message) {
    news_.record({rank_, message, false});
    throw communicator_error(message);
  }

  /// All members find the same: each compares with the first, in order.
  [[noreturn]] void mismatch(const detail::process_group& g, const detail::collective_call& a,
                             const detail::collective_call& b, int other, const detail::collective_call& mine) {
    const bool same_text = a.text() == b.text();
    const std::string message = "rank " + std::to_string(g.ranks.front()) + " calls " + a.text() +
                                (same_text ? a.details() : "") + " while rank " + std::to_string(other) + " calls " +
                                b.text() + (same_text ? b.details() : "") + g.where;
    if (rank_ == g.ranks.front()) news_.record({rank_, message, false});
    else news_.record({rank_, "rank " + std::to_string(rank_) + " stopped in " + mine.text() + g.where, true});
    throw communicator_error(message);
  }

  int rank_ = 0, on_this_machine_ = 1;
  std::chrono::nanoseconds deadline_ = std::chrono::minutes(10);
  std::deque<detail::process_group> groups_;  // all, then by number
  detail::job_news news_{groups_};
};

}  // namespace cfp
