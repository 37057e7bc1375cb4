// One world of launched ranks as the hub sees it. Everything is decided here, by one who knows all: whether a
// collective takes place, what has failed first, when a job is over. A failure answers all who wait, and all who call
// later.
#pragma once

#include <cfp/communicator/launched/meeting.hpp>
#include <cfp/communicator/rank_failure.hpp>
#include <cfp/communicator/rank_grid.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class hub_channel : public rank_grid {
 public:
  using post_function = std::function<void(int rank, message, std::vector<message_bytes>)>;

  hub_channel(int number, int opener, std::vector<int> mesh, post_function post)
      : rank_grid(std::move(mesh)), number_(number), opener_(opener), post_(std::move(post)),
        members_(static_cast<std::size_t>(size())) {
    for (int group = whole; group < groups_and_pairs(); ++group)
      for (int r = 0; r < size(); ++r)
        if (const std::vector<int> of = members(r, group); of.front() == r)
          meetings_.push_back({group, where(group), of, std::vector<waiting_call>(of.size())});
  }

  void open(int rank, const std::vector<int>& mesh) {
    if (mesh != this->mesh())
      record({rank,
              "rank " + std::to_string(rank) + " has a mesh of " + shape(mesh) + " ranks while rank " +
                  std::to_string(opener_) + " has one of " + shape(this->mesh()),
              false});
  }

  /// A call that a rank waits in since then. Throws communicator_error for what no rank calls.
  void call(int rank, const message& m, message_bytes data, steady_clock::time_point since) {
    if (!errors_.empty()) return stop(rank, m);
    meeting& g = meeting_of(rank, m.group);
    const std::size_t i = g.index(rank);
    if (g.calls[i].here || m.call.kind < 0 || m.call.kind > barrier_kind || !has_root(m.call, g.ranks.size()) ||
        data.count != bytes_given(m, g.ranks.size(), i))
      throw communicator_error("a call that no rank makes");
    g.calls[i] = {true, m, std::move(data), since};
    if (stop_late(g, steady_clock::now(), rank)) return;
    for (const int r : g.ranks)
      if (of(r).left || of(r).closed) return left(r);
    if (!g.complete()) return;
    if (const std::size_t other = g.different(); other < g.ranks.size()) return mismatch(g, other);
    const std::vector<waiting_call> calls = g.take();
    std::vector<std::vector<message_bytes>> answers = results(calls);
    for (std::size_t r = 0; r < calls.size(); ++r)
      answer(g.ranks[r], calls[r].says, message_kind::result, std::move(answers[r]));
  }

  void fail(int rank, const std::string& what, bool consequence, std::chrono::nanoseconds deadline) {
    end(rank, deadline);
    record({rank, what, consequence});
    check_over();
  }

  void leave(int rank, std::chrono::nanoseconds deadline) {
    end(rank, deadline);
    of(rank).left = !known(rank);
    left(rank);
    check_over();
  }

  void close(int rank) {
    of(rank).closed = true;
    left(rank);
    check_over();
  }

  /// The process of a rank has ended, without having closed.
  void lose(int rank, const std::string& why) {
    if (of(rank).closed) return;
    of(rank).closed = true;
    record({rank, why, false});
    check_over();
  }

  bool closed() const {
    return std::all_of(members_.begin(), members_.end(), [](const member& m) { return m.closed; });
  }

  /// When something is late that is not there by then.
  steady_clock::time_point next_deadline() const {
    steady_clock::time_point first = steady_clock::time_point::max();
    for (const meeting& g : meetings_)
      for (const waiting_call& c : g.calls)
        if (c.here) first = std::min(first, until(c.since, c.says.limit()));
    if (errors_.empty() || over_) return first;
    for (const member& m : members_)
      if (m.waits && !m.closed) first = std::min(first, until(std::max(m.since, failed_), m.deadline));
    return first;
  }

  void expire(steady_clock::time_point now) {
    if (now < next_deadline()) return;
    for (meeting& g : meetings_)
      if (stop_late(g, now, 0)) return;
    for (int r = 0; r < size(); ++r)
      if (!is_over(r))
        record({r, "rank " + std::to_string(r) + " has not ended yet, which the others do not wait for", true});
    check_over();
  }

 private:
  struct member {
    bool left = false, closed = false, waits = false;  // for the end of the job, since then and for so long
    steady_clock::time_point since{};
    std::chrono::nanoseconds deadline{};
  };

  // A limit may be longer than a clock can tell.
  static steady_clock::time_point until(steady_clock::time_point since, std::chrono::nanoseconds limit) {
    return since + std::min<std::chrono::nanoseconds>(limit, std::chrono::hours(24 * 365));
  }

  member& of(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  bool known(int rank) const {
    return std::any_of(errors_.begin(), errors_.end(), [rank](const rank_error& e) { return e.rank == rank; });
  }
  bool is_over(int rank) { return of(rank).left || of(rank).closed || known(rank); }

  meeting& meeting_of(int rank, int group) {
    for (meeting& g : meetings_)
      if (g.number == group && g.index(rank) < g.ranks.size()) return g;
    throw communicator_error("a call on an axis there is not");
  }

  void answer(int rank, const message& call, message_kind kind, std::vector<message_bytes> data) {
    message m = call;
    m.kind = kind;
    post_(rank, m, std::move(data));
  }

  /// Of a rank's errors the first is kept. All are told before anyone is stopped.
  void record(const rank_error& e) {
    if (known(e.rank)) return;
    errors_.push_back(e);
    tell(message_kind::news, e.rank, e.consequence, {message_bytes::of(e.message)});
    if (errors_.size() > 1) return;
    failed_ = steady_clock::now();
    for (meeting& g : meetings_) {
      const std::vector<waiting_call> calls = g.take();
      for (std::size_t i = 0; i < calls.size(); ++i)
        if (calls[i].here) stop(g.ranks[i], calls[i].says);
    }
  }

  void tell(message_kind kind, int rank, bool flag, const std::vector<message_bytes>& data) {
    message m;
    m.kind = kind;
    m.channel = number_;
    m.rank = rank;
    m.flag = flag ? 1 : 0;
    for (int r = 0; r < size(); ++r)
      if (!of(r).closed) post_(r, m, data);
  }

  /// Another's error meets this call.
  void stop(int rank, const message& m) {
    const std::string brief = "rank " + std::to_string(rank) + " stopped in " + m.call.text() + where(m.group);
    const std::string cause = errors_.front().message;
    record({rank, brief, true});
    answer(rank, m, message_kind::stopped, {message_bytes::of(brief + ": " + cause)});
  }

  /// This call is where an error shows.
  void stop_with(meeting& g, std::size_t i, const std::string& what) {
    const message m = std::exchange(g.calls[i], {}).says;
    record({g.ranks[i], what, false});
    answer(g.ranks[i], m, message_kind::stopped, {message_bytes::of(what)});
  }

  /// Whether one has waited for too long, for those that are not there, or, if all are, for one that is now.
  bool stop_late(meeting& g, steady_clock::time_point now, int there) {
    for (std::size_t i = 0; i < g.calls.size(); ++i)
      if (const waiting_call& c = g.calls[i]; c.here && now >= until(c.since, c.says.limit())) {
        const std::string whom = g.complete() ? "rank " + std::to_string(g.ranks[i] == there ? 0 : there) : g.missing();
        const std::string in = " in " + c.says.call.text() + g.where + " for " + whom;
        return stop_with(g, i, "rank " + std::to_string(g.ranks[i]) + " waited " + milliseconds(c.says.limit()) + in),
               true;
      }
    return false;
  }

  /// Who waits for a rank that has left, waits in vain.
  void left(int rank) {
    for (meeting& g : meetings_)
      if (g.index(rank) < g.ranks.size())
        for (std::size_t i = 0; i < g.calls.size(); ++i)
          if (g.calls[i].here)
            stop_with(g, i,
                      "rank " + std::to_string(rank) + " left while rank " + std::to_string(g.ranks[i]) + " waits in " +
                          g.calls[i].says.call.text() + g.where);
  }

  void mismatch(meeting& g, std::size_t other) {
    const std::vector<waiting_call> calls = g.take();
    const collective_call &a = calls.front().says.call, &b = calls[other].says.call;
    const bool same_text = a.text() == b.text();
    const std::string what = "rank " + std::to_string(g.ranks.front()) + " calls " + a.text() +
                             (same_text ? a.details() : "") + " while rank " + std::to_string(g.ranks[other]) +
                             " calls " + b.text() + (same_text ? b.details() : "") + g.where;
    record({g.ranks.front(), what, false});
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::string mine = calls[i].says.call.text() + g.where;
      record({g.ranks[i], "rank " + std::to_string(g.ranks[i]) + " stopped in " + mine, true});
      answer(g.ranks[i], calls[i].says, message_kind::stopped, {message_bytes::of(what)});
    }
  }

  void end(int rank, std::chrono::nanoseconds deadline) {
    member& m = of(rank);
    if (!m.waits) m.since = steady_clock::now();
    m.waits = true;
    m.deadline = deadline;
  }

  /// A job is over when all have ended it: well, or some with an error, and then for good.
  void check_over() {
    if (over_ || closed()) return;
    for (int r = 0; r < size(); ++r)
      if (!is_over(r)) return;
    for (int r = 0; r < size(); ++r)
      if (of(r).closed && !of(r).left)
        record({r, "rank " + std::to_string(r) + " takes no part in a job that others run", false});
    over_ = !errors_.empty();
    for (member& m : members_) m.left = m.waits = false;
    tell(message_kind::over, 0, !over_, {});
  }

  int number_, opener_;
  post_function post_;
  std::deque<meeting> meetings_;
  std::vector<member> members_;
  std::vector<rank_error> errors_;  // in order of time
  steady_clock::time_point failed_;
  bool over_ = false;  // for good
};

}  // namespace cfp::detail
