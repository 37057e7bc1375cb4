// Ranks as processes that a launcher started, without MPI: the groups in which they meet. They meet in rank 0's
// process, in a thread that every rank is connected to (hub.hpp): made for few bytes, such as what ranks with a GPU
// each have to agree on; more pass too, all of them through that process.
#pragma once

#include <cfp/communicator/communicator.hpp>
#include <cfp/communicator/launched/launched_job.hpp>
#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// The end of one rank in a group.
struct launched_group {
  int number = 0;
  std::string where;       // after a call in a message: "" or " on axis 1"
  std::vector<int> ranks;  // of the members, in the world
  traffic counted{};
};

}  // namespace detail

/// The state of this process' rank: one group of all, and one per mesh axis and set of several. All processes construct
/// their worlds in the same order; several may be alive. Streams of a rank may call collectives beside it, of other
/// groups.
class launched_world : public rank_grid {
 public:
  static constexpr bool one_process = false;

  /// Throws bad_input unless the mesh has as many ranks as the launcher has started processes, and
  /// communicator_error if they do not find each other within `to_start`.
  launched_world(std::vector<int> mesh, const launched_rank& me, std::chrono::nanoseconds to_start)
      : rank_grid(std::move(mesh)), rank_(me.rank), channel_(static_cast<std::size_t>(groups_and_pairs() + 1)) {
    if (me.size != size())
      throw bad_input("the mesh has " + std::to_string(size()) + " ranks and the launcher started " +
                      std::to_string(me.size) + (me.size == 1 ? " process" : " processes") +
                      "; start as many as ranks, with torchrun --nproc-per-node, mpirun -n, srun -n, or " +
                      "WORLD_SIZE=" + std::to_string(size()) + " set for each");
    for (int group = whole; group < groups_and_pairs(); ++group)
      groups_.push_back({group, where(group), members(rank_, group)});
    link_ = detail::launched_jobs::of_this_process().join(me, to_start);
    number_ = link_->open(this->mesh(), channel_);
  }
  launched_world(const launched_world&) = delete;
  ~launched_world() { link_->close(number_); }

  int rank() const { return rank_; }
  int on_this_machine() const { return link_->on_this_machine(); }  ///< ranks
  detail::launched_group& group(int number) { return groups_[static_cast<std::size_t>(number + 1)]; }

  /// How long a rank waits for the others before it fails: 10 minutes unless set.
  void set_deadline(std::chrono::nanoseconds limit) { deadline_ = limit; }

  /// This rank ends with an error: whoever waits in a collective, or calls one later, throws communicator_error. As a
  /// `consequence` of another's error it adds where that met it, "stopped in ...".
  void fail(int rank, const std::string& what, bool consequence = false) {
    const rank_error e = detail::failure(rank, what, consequence);
    link_->look([&] {
      if (!channel_.knows(rank)) channel_.record(e);
    });
    detail::message m = about(detail::message_kind::fail);
    m.flag = consequence ? 1 : 0;
    link_->send(m, e.message.data(), e.message.size());
  }

  /// This rank's part of a job ends well, unless it has failed: whoever waits for it in a collective, or calls one
  /// later that needs it, throws.
  void leave() { link_->send(about(detail::message_kind::leave), nullptr, 0); }

  /// Waits until every rank has left the job or failed. True if all have left it: the next can begin. If some rank does
  /// neither within the deadline after a failure became known, it is not waited for.
  bool end() {
    bool well = false;
    link_->wait([&] { return (well = channel_.over > jobs_) || channel_.failed; });
    if (well) ++jobs_;
    return well;
  }

  /// Whether a rank is known to have failed.
  bool stopped() const {
    return link_->look([&] { return !channel_.errors.empty(); });
  }

  /// The error of each rank that is known to have failed, causes first, then by rank.
  std::vector<rank_error> errors() const {
    std::vector<rank_error> out = link_->look([&] { return channel_.errors; });
    std::sort(out.begin(), out.end(), [](const rank_error& a, const rank_error& b) {
      return std::pair(a.consequence, a.rank) < std::pair(b.consequence, b.rank);
    });
    return out;
  }

  /// A collective, or a piece of one, for which this rank gives some bytes and gets some. Throws communicator_error if
  /// it cannot take place.
  void exchange(const detail::launched_group& g, detail::message piece, const void* in, std::size_t given, void* out,
                std::size_t taken) {
    piece.kind = detail::message_kind::call;
    piece.channel = number_;
    piece.group = g.number;
    piece.deadline = deadline_.load().count();
    detail::awaited_answer answer{static_cast<std::byte*>(out), taken};
    link_->call(channel_, piece, in, given, answer,
                std::min<std::chrono::nanoseconds>(deadline_, std::chrono::hours(8760)) + grace);
    if (answer.now == detail::awaited_answer::state::result) return;
    if (answer.of_hub) throw communicator_error(answer.why);
    const std::string brief = "stopped in " + piece.call.text() + g.where;
    fail(rank_, brief, true);
    throw communicator_error("rank " + std::to_string(rank_) + " " + brief + ": " + answer.why);
  }

 private:
  static constexpr auto grace = std::chrono::seconds(10);  // for a hub that has much to do

  detail::message about(detail::message_kind kind) const {
    detail::message m;
    m.kind = kind;
    m.channel = number_;
    m.deadline = deadline_.load().count();
    return m;
  }

  const int rank_;
  std::atomic<std::chrono::nanoseconds> deadline_{std::chrono::minutes(10)};
  std::deque<detail::launched_group> groups_;  // all, then by number
  detail::launched_channel channel_;
  std::shared_ptr<detail::launched_link> link_;
  int number_ = 0;  // of the channel
  int jobs_ = 0;    // ended well
};

}  // namespace cfp
