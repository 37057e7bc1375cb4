// Where launched ranks meet: a thread in rank 0's process, to which every rank has a connection. It knows who is there,
// and leaves the rest to the channels.
#pragma once

#include <cfp/communicator/launched/attendance.hpp>
#include <cfp/communicator/launched/hub_channel.hpp>
#include <cfp/communicator/launched/hub_connection.hpp>
#include <cfp/communicator/launched/launched_rank.hpp>

#include <pthread.h>
#include <sys/eventfd.h>
#include <csignal>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class launched_hub {
 public:
  /// Throws communicator_error if nobody can be awaited at the address of rank 0.
  launched_hub(const launched_rank& first, std::chrono::nanoseconds deadline)
      : deadline_(deadline), began_(steady_clock::now()), listener_(listen_at(first.address, first.port)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), ranks_(first) {
    sigset_t all, before;  // signals are for other threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { serve(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  launched_hub(const launched_hub&) = delete;
  /// Waits, not for long, until the other processes have said goodbye.
  ~launched_hub() {
    closing_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.fd(), &one, sizeof one);
    thread_.join();
  }

 private:
  static constexpr auto last_wait = std::chrono::seconds(10);
  static constexpr auto longest_silence = std::chrono::seconds(10);  // before a hello

  void serve() {
    try {
      while (!done()) turn();
    } catch (const std::exception& e) {  // no memory: nothing goes on here
      for (auto& [number, c] : channels_)
        for (int r = 0; r < ranks_.size(); ++r)
          c.fail(r, std::string("rank 0, where ranks meet, cannot go on: ") + e.what(), r > 0, {});
      for (hub_connection& c : connections_) c.flush();
    }
    connections_.clear();
    listener_ = socket_end();
  }

  bool done() {
    if (!closing_) return false;
    if (closed_ == steady_clock::time_point()) closed_ = steady_clock::now();
    if (listener_) listener_ = socket_end();  // the port is free for another job
    if (steady_clock::now() - closed_ >= last_wait) return true;
    return std::all_of(connections_.begin(), connections_.end(), [&](const hub_connection& c) {
      return !c.sending() && (state_ != start::made || c.goodbye || c.rank < 0);
    });
  }

  void turn() {
    std::vector<pollfd> ends = {{listener_.fd(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
    for (const hub_connection& c : connections_)
      ends.push_back({c.fd(), static_cast<short>(c.sending() ? POLLIN | POLLOUT : POLLIN), 0});
    ::poll(ends.data(), ends.size(), timeout());
    // This process may have been stopped meanwhile: for all it knows, others said then what they said at the beginning.
    const auto last = std::exchange(looked_, steady_clock::now());
    heard_ = looked_ - last > std::chrono::seconds(2) ? last + std::chrono::seconds(1) : looked_;
    std::size_t i = 2;
    for (hub_connection& c : connections_)
      if (ends[i++].revents != 0) receive(c);
    if (ends[0].revents != 0) accept();
    std::uint64_t count = 0;
    if (ends[1].revents != 0 && ::read(wake_.fd(), &count, sizeof count) < 0) return;
    expire(steady_clock::now());
    for (hub_connection& c : connections_)
      if (!c.flush()) lose(c);
    connections_.remove_if([](const hub_connection& c) { return c.ending && !c.sending(); });
  }

  int timeout() const {
    steady_clock::time_point first = steady_clock::now() + std::chrono::seconds(1);
    if (state_ == start::awaited) first = std::min(first, began_ + deadline_);
    for (const auto& [number, c] : channels_) first = std::min(first, c.next_deadline());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - steady_clock::now()).count();
    return static_cast<int>(std::max<long>(left, 0));
  }

  void expire(steady_clock::time_point now) {
    for (auto& [number, c] : channels_) c.expire(now);
    for (hub_connection& c : connections_)
      if (c.rank < 0 && now - c.since() >= longest_silence) c.ending = true;
    if (state_ == start::awaited && now - began_ >= deadline_) give_up_start();
  }

  void accept() {
    socket_end s(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (s) connections_.emplace_back(std::move(s));
  }

  void receive(hub_connection& c) {
    hub_connection::state now = hub_connection::state::foreign;
    try {
      now = c.receive([&](const message& m, message_bytes data) { handle(c, m, std::move(data)); });
    } catch (const std::exception&) {  // it speaks, and makes no sense
    }
    if (now == hub_connection::state::open) return;
    if (c.rank < 0 && !c.ending) ranks_.note_refusal("something that is no process of this job");
    lose(c);
  }

  void handle(hub_connection& c, const message& m, message_bytes data) {
    if (c.rank < 0) return welcome(c, m, data.text());
    if (m.kind == message_kind::goodbye) {
      c.goodbye = true;
      return leave(c.rank, "rank " + std::to_string(c.rank) + " ended its process before the job was over");
    }
    if (m.kind == message_kind::open) return open(c.rank, m, data);
    const auto found = channels_.find(m.channel);
    if (found == channels_.end()) throw communicator_error("a channel there is not");
    hub_channel& channel = found->second;
    if (m.kind == message_kind::call)
      channel.call(c.rank, m, std::move(data), c.rank == 0 ? steady_clock::now() : heard_);
    if (m.kind == message_kind::fail) channel.fail(c.rank, data.text(), m.flag != 0, m.limit());
    if (m.kind == message_kind::leave) channel.leave(c.rank, m.limit());
    if (m.kind == message_kind::close) channel.close(c.rank);
    if (channel.closed()) channels_.erase(found);
  }

  void open(int rank, const message& m, const message_bytes& data) {
    std::vector<int> mesh(data.count / sizeof(int));
    std::memcpy(mesh.data(), data.data(), mesh.size() * sizeof(int));
    if (rank_grid(mesh).size() != ranks_.size()) throw communicator_error("a mesh of other ranks");
    const auto post = [this](int r, const message& what, const std::vector<message_bytes>& bytes) {
      if (hub_connection* to = ranks_.of(r).connection) to->post(what, bytes);
    };
    const auto [found, is_new] = channels_.try_emplace(m.channel, m.channel, rank, mesh, post);
    if (!is_new) return found->second.open(rank, mesh);
    for (int r = 0; r < ranks_.size(); ++r)
      if (!ranks_.of(r).gone.empty()) found->second.lose(r, ranks_.of(r).gone);
  }

  void welcome(hub_connection& c, const message& m, const std::string& job) {
    if (c.ending) return;
    std::string why = ranks_.objection(m, job);
    if (why.empty() && state_ == start::failed) why = ranks_.missing(deadline_);
    if (!why.empty()) return refuse(c, why);
    c.rank = m.rank;
    ranks_.of(m.rank) = {&c, m.host, {}};
    if (!ranks_.missing(deadline_).empty()) return;
    state_ = start::made;
    for (int r = 0; r < ranks_.size(); ++r) {
      message all;
      all.kind = message_kind::welcome;
      all.size = ranks_.on_host_of(ranks_.of(r));
      ranks_.of(r).connection->post(all, {});
    }
  }

  void refuse(hub_connection& c, const std::string& why) {
    message m;
    m.kind = message_kind::refused;
    c.post(m, {message_bytes::of(why)});
    c.ending = true;
    if (state_ == start::awaited) ranks_.note_refusal(why);
  }

  void give_up_start() {
    state_ = start::failed;
    const std::string why = ranks_.missing(deadline_);
    for (hub_connection& c : connections_) {
      if (c.rank < 0) continue;
      ranks_.of(std::exchange(c.rank, -1)).connection = nullptr;
      refuse(c, why);
    }
  }

  // The connection is broken, or what it says makes no sense.
  void lose(hub_connection& c) {
    const int rank = std::exchange(c.rank, -1);
    c.ending = true;
    c.drop_all();
    if (rank < 0) return;
    ranks_.of(rank).connection = nullptr;
    if (state_ == start::made && !c.goodbye)
      leave(rank, "rank " + std::to_string(rank) +
                      " ended without a word: its process was killed, or its machine cannot be reached");
  }

  void leave(int rank, const std::string& why) {
    ranks_.of(rank).gone = why;
    for (auto c = channels_.begin(); c != channels_.end();) {
      c->second.lose(rank, why);
      c = c->second.closed() ? channels_.erase(c) : std::next(c);
    }
  }

  enum class start { awaited, made, failed };

  const std::chrono::nanoseconds deadline_;                                  // of the start
  steady_clock::time_point looked_ = steady_clock::now(), heard_ = looked_;  // last; when others said what is read now
  const steady_clock::time_point began_;
  socket_end listener_, wake_;
  std::atomic<bool> closing_{false};
  steady_clock::time_point closed_;
  start state_ = start::awaited;
  std::list<hub_connection> connections_;
  attendance ranks_;
  std::map<int, hub_channel> channels_;
  std::thread thread_;
};

}  // namespace cfp::detail
