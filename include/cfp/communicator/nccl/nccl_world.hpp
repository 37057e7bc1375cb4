// Ranks with a GPU each: the NCCL communicators of one rank, and how it waits for what is issued to them.
//
// NCCL waits for ever for a rank that does not come, and does not know that one has failed. So its communicators are
// non-blocking and stand on a control context, that of ranks as threads or as processes, through which errors travel.
// Whatever is waited for, CUDA is asked again and again, NCCL whether a communicator has broken, and the control
// context whether another rank has failed; and there is a deadline. Who finds an error tells the others, aborts its
// communicators (which ends kernels that wait for other ranks) and throws; so do those others.
#pragma once

#include <cfp/communicator/communicator.hpp>
#include <cfp/communicator/nccl/captured_graph.hpp>
#include <cfp/communicator/nccl/cuda_error.hpp>
#include <cfp/communicator/nccl/gpu_choice.hpp>
#include <cfp/communicator/nccl/issued_collectives.hpp>
#include <cfp/communicator/nccl/nccl_group.hpp>
#include <cfp/communicator/nccl/nccl_options.hpp>

#include <nccl.h>

#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// The state of one rank: a group of all, one per axis of the mesh of its control context, and per set of several. The
/// context must outlive it. All ranks construct it together, each on its own thread or process, which takes a GPU and
/// is the one to use it from then on; and destroy it together, before they leave the job.
class nccl_world : public rank_grid {
 public:
  /// Throws communicator_error on all ranks if there is no GPU for one, if NCCL cannot connect them, or not within the
  /// deadline.
  template <class World, class Communicator>
  explicit nccl_world(const rank_context_of<World, Communicator>& control, const nccl_options& options = {})
      : rank_grid(mesh_of(control)), rank_(control.rank), stream_(options.stream), deadline_(options.deadline),
        tell_([&control](const std::string& what, bool consequence) { control.fail(what, consequence); }),
        is_stopped_([&control] { return control.stopped(); }) {
    try {
      device_ = detail::take_gpu(control, options.share_gpus);
      detail::cuda_check(cudaMalloc(&token_, sizeof(int)), "cudaMalloc");
      ncclUniqueId id{};
      if (rank_ == 0) accept(ncclGetUniqueId(&id), [] { return std::string("ncclGetUniqueId"); });
      control.world.broadcast(id.internal, sizeof id.internal, 0);
      connect(id);
      control.world.barrier();  // for all or for none
    } catch (const std::exception& e) {
      tell_(e.what(), false);
      release();
      throw;
    }
  }
  nccl_world(const nccl_world&) = delete;

  /// Waits for what was issued. When an exception passes, or another rank has failed, nothing is waited for.
  ~nccl_world() {
    try {
      if (failed_.empty() && std::uncaught_exceptions() == exceptions_) close();
    } catch (const std::exception&) {  // the others know
    }
    release();
  }

  int rank() const { return rank_; }
  int device() const { return device_; }
  cudaStream_t stream() const { return stream_; }
  detail::nccl_group& group(int number) { return groups_[static_cast<std::size_t>(number + 1)]; }
  int* token() { return token_; }  ///< on the GPU: what a barrier reduces

  /// How long a rank waits before it fails: 10 minutes unless set.
  void set_deadline(std::chrono::nanoseconds limit) { deadline_ = limit; }

  /// This rank ends with an error, or as a `consequence` of another's: no other rank waits for it.
  void fail(int, const std::string& what, bool consequence = false) {
    if (!failed_.empty()) return;
    failed_ = detail::failure(rank_, what, consequence).message;
    tell_(what, consequence);
    abort();
  }

  /// Whether some rank is known to have failed.
  bool stopped() const { return is_stopped_(); }

  /// Issues a collective, with issue(communicator), to a stream. Returns once NCCL has given it to the GPU: the first
  /// of a group may wait for the other members. Throws communicator_error if it does so for too long, if NCCL cannot,
  /// or if a rank has failed.
  template <class Issue>
  void issue(detail::nccl_group& g, const detail::collective_call& call, cudaStream_t stream, const Issue& issue) {
    check_usable();
    detail::issued_collective c{&g, call, stream, nullptr};
    const auto in = [&] { return c.text(); };
    accept(issue(g.comm), in);
    wait([&] { return settled(g, in); }, in);
    if (!capturing(stream)) issued_.remember(c);
  }

  /// Returns once the stream has done what was issued to it. Throws communicator_error if a collective, or other work,
  /// has failed or takes longer than the deadline, or if another rank has failed; bad_input while the stream is
  /// captured into a graph.
  void synchronise(cudaStream_t stream) {
    until(stream, "cudaStreamQuery", [&] { return cudaStreamQuery(stream); });
    issued_.ended(stream);
  }
  /// The same for what had been issued to it when the event was recorded there.
  void synchronise(cudaStream_t stream, cudaEvent_t event) {
    until(stream, "cudaEventQuery", [&] { return cudaEventQuery(event); });
  }

  /// A graph that collectives of this rank were captured into, which ends before the communicators do.
  void hold(const std::shared_ptr<captured_graph>& g) { graphs_.hold(g); }

  /// Throws communicator_error if this rank has failed.
  void check_usable() const {
    if (!failed_.empty()) throw communicator_error(failed_);
  }

 private:
  using clock = std::chrono::steady_clock;

  template <class Context>
  static std::vector<int> mesh_of(const Context& control) {
    std::vector<int> mesh;
    for (const auto& axis : control.axes) mesh.push_back(axis.size());
    return mesh;
  }

  void connect(const ncclUniqueId& id) {
    for (int group = whole; group < groups_and_pairs(); ++group)
      groups_.push_back({nullptr, where(group), members(rank_, group), {}, is_of_all(group) || group >= groups()});
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    detail::nccl_group& all = groups_.front();
    for (detail::nccl_group& g : groups_) {
      if (g.borrows) g.comm = all.comm;
      if (g.borrows) continue;
      const std::string text =
          &g == &all ? "the start of NCCL among " + std::to_string(size()) + " ranks" : "NCCL's split" + g.where;
      const auto in = [&] { return text; };
      accept(&g == &all ? ncclCommInitRankConfig(&g.comm, size(), id, rank_, &config)
                        : ncclCommSplit(all.comm, g.ranks.front(), rank_, &g.comm, &config),
             in);
      wait([&] { return settled(all, in) && settled(g, in); }, in);  // a part is there once the whole is done with it
    }
  }

  void close() {
    const auto in = [&] {
      return "the end of NCCL" + (issued_.empty() ? "" : ", after " + issued_.last().text() + ",");
    };
    graphs_.release();
    for (auto g = groups_.rbegin(); g != groups_.rend(); ++g) {
      if (g->borrows) continue;
      accept(ncclCommFinalize(g->comm), in);
      wait([&] { return settled(*g, in); }, in);
      ncclCommDestroy(std::exchange(g->comm, nullptr));
    }
  }

  // The whole first: it joins what still makes its parts.
  void abort() {
    graphs_.release();
    for (detail::nccl_group& g : groups_)
      if (ncclComm_t comm = std::exchange(g.comm, nullptr); comm != nullptr && !g.borrows) ncclCommAbort(comm);
  }

  void release() {
    abort();
    issued_.release();
    cudaFree(token_);
  }

  [[noreturn]] void give_up(const std::string& what, bool consequence = false) {
    fail(rank_, what, consequence);
    throw communicator_error(failed_);
  }

  template <class In>
  void accept(ncclResult_t result, const In& in) {
    if (result != ncclSuccess && result != ncclInProgress)
      give_up(in() + " failed: NCCL says " + ncclGetErrorString(result));
  }

  // Whether NCCL has done what it was asked last.
  template <class In>
  bool settled(const detail::nccl_group& g, const In& in) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(g.comm, &state);
    if (asked != ncclSuccess) state = asked;
    if (state != ncclSuccess && state != ncclInProgress)
      give_up(in() + " failed after " + waited() + ": NCCL says" + g.where + " " + ncclGetErrorString(state));
    return state == ncclSuccess;
  }

  // Returns once query() finds that a stream has come somewhere.
  template <class Query>
  void until(cudaStream_t stream, const char* asked, const Query& query) {
    check_usable();
    if (capturing(stream))
      throw bad_input(
          "a stream that is captured into a graph runs nothing that could be waited for; end the capture first");
    const auto in = [&] { return issued_.oldest(stream); };
    wait(
        [&] {
          const cudaError_t code = query();
          if (code != cudaSuccess && code != cudaErrorNotReady)
            give_up(in() + " failed after " + waited() + ": " + detail::cuda_says(asked, code));
          return detail::cuda_done(code);
        },
        in);
  }

  /// Returns once ready() says so; in() says what is waited for.
  template <class Ready, class In>
  void wait(const Ready& ready, const In& in) {
    since_ = clock::now();
    for (long turn = 1; !ready(); ++turn) {
      if (turn % 16 == 0) {
        if (stopped()) give_up("stopped in " + in(), true);
        for (const detail::nccl_group& g : groups_)
          if (g.comm != nullptr) settled(g, in);
        if (clock::now() - since_ >= deadline_)
          give_up(in() + " did not end within " + detail::milliseconds(deadline_));
      }
      if (turn < 256) std::this_thread::yield();
      else std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  std::string waited() const { return detail::milliseconds(clock::now() - since_); }

  int rank_ = 0, device_ = 0;
  cudaStream_t stream_ = nullptr;
  std::chrono::nanoseconds deadline_;
  clock::time_point since_;  // the present wait began
  std::function<void(const std::string&, bool)> tell_;
  std::function<bool()> is_stopped_;
  const int exceptions_ = std::uncaught_exceptions();
  std::deque<detail::nccl_group> groups_;  // all, then by number; NCCL writes into them as it connects
  detail::issued_collectives issued_;
  captured_graphs graphs_;
  int* token_ = nullptr;
  std::string failed_;  // with what
};

}  // namespace cfp
