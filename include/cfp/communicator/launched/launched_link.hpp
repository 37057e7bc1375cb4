// A launched rank's connection to the hub: made once, kept until the process ends, and shared by all its worlds, each
// of which has a channel in it.
#pragma once

#include <cfp/communicator/launched/hub.hpp>
#include <cfp/communicator/launched/launched_channel.hpp>
#include <cfp/communicator/launched/launched_rank.hpp>
#include <cfp/communicator/launched/message.hpp>
#include <cfp/communicator/launched/socket.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

inline std::uint64_t this_host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char* c = name; *c != '\0'; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211u;
  return hash;
}

class launched_link {
 public:
  /// Returns when all ranks have connected. Throws communicator_error, on those that have, if some have not within the
  /// deadline; and where this process is none of the job.
  launched_link(const launched_rank& me, std::chrono::nanoseconds deadline) : me_(me) {
    deadline = std::clamp<std::chrono::nanoseconds>(deadline, std::chrono::nanoseconds(0), std::chrono::hours(8760));
    if (me.rank == 0) hub_ = std::make_unique<launched_hub>(me, deadline);
    const auto until = steady_clock::now() + deadline;
    while (!introduce(deadline, until)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  launched_link(const launched_link&) = delete;

  int rank() const { return me_.rank; }
  int size() const { return me_.size; }
  int on_this_machine() const { return on_this_machine_; }

  /// The next channel. All ranks open theirs in the same order.
  int open(const std::vector<int>& mesh, launched_channel& c) {
    message m;
    m.kind = message_kind::open;
    {
      const std::lock_guard lock(mutex_);
      m.channel = opened_++;
      channels_[m.channel] = &c;
      if (!broken_.empty()) c.break_off(broken_);
    }
    send(m, mesh.data(), mesh.size() * sizeof(int));
    return m.channel;
  }
  void close(int channel) {
    message m;
    m.kind = message_kind::close;
    m.channel = channel;
    send(m, nullptr, 0);
    const std::lock_guard lock(mutex_);
    channels_.erase(channel);
  }
  void say_goodbye() {
    message m;
    m.kind = message_kind::goodbye;
    send(m, nullptr, 0);
  }

  void send(message m, const void* data, std::size_t bytes) {
    m.bytes = bytes;
    const std::lock_guard lock(sending_);
    static_cast<void>(socket_.send(&m, sizeof m, data, bytes));  // who reads finds that the other end is gone
  }

  /// Sends a call, and returns when it is answered: by the hub, or, after this time, by the silence of it.
  void call(launched_channel& c, const message& m, const void* data, std::size_t bytes, awaited_answer& a,
            std::chrono::nanoseconds limit) {
    awaited_answer*& place = c.awaited[static_cast<std::size_t>(m.group + 1)];
    {
      const std::lock_guard lock(mutex_);
      place = &a;
    }
    send(m, data, bytes);
    {
      const std::lock_guard lock(mutex_);
      a.sent = true;
    }
    changed_.notify_all();
    wait([&] { return a.now != awaited_answer::state::open; }, steady_clock::now() + limit);
    std::unique_lock lock(mutex_);
    place = nullptr;
    while (filled_ == &a) changed_.wait(lock);
    if (a.now != awaited_answer::state::open) return;
    end("rank 0, where ranks meet, does not answer: its process hangs, or its machine cannot be reached");
    changed_.notify_all();
    a.now = awaited_answer::state::stopped;
    a.why = broken_;
    a.of_hub = false;
  }

  /// Returns when ready(), which is asked under the mutex, says so, or the connection is broken, or the time is over.
  /// One of those who wait reads, for all.
  template <class Ready>
  void wait(const Ready& ready, steady_clock::time_point until = steady_clock::time_point::max()) {
    std::unique_lock lock(mutex_);
    while (!ready() && broken_.empty() && steady_clock::now() < until) {
      if (reading_) changed_.wait_for(lock, std::chrono::seconds(1));
      else read(lock, std::min(until, steady_clock::now() + std::chrono::seconds(1)));
    }
  }

  /// Takes what has arrived, and returns f() under the mutex.
  template <class F>
  auto look(const F& f) {
    std::unique_lock lock(mutex_);
    while (!reading_ && broken_.empty() && read(lock, steady_clock::time_point())) {}
    return f();
  }

 private:
  static constexpr auto patience = std::chrono::seconds(2);
  static constexpr std::uint64_t most_text = std::uint64_t{1} << 30;

  std::string where() const { return me_.address + ":" + std::to_string(me_.port); }

  // Says who this is, and waits until all others have. False: who was there has ended without a word, as rank 0 of a
  // job before this one may; another may come.
  bool introduce(std::chrono::nanoseconds deadline, steady_clock::time_point until) {
    const std::string who = "rank " + std::to_string(me_.rank);
    std::string why;
    socket_ = connect_to(me_.address, me_.port, until, why);
    if (!socket_)
      throw communicator_error(who + " waited " + milliseconds(deadline) + " for rank 0 at " + where() + ": " + why +
                               "; start rank 0 too, and set MASTER_ADDR and MASTER_PORT to where it is");
    message m;
    m.rank = me_.rank;
    m.size = me_.size;
    m.host = this_host();
    m.bytes = me_.job.size();
    bool answered = socket_.send(&m, sizeof m, me_.job.data(), me_.job.size());
    while (answered && !socket_.readable(until + patience)) answered = steady_clock::now() < until + patience;
    answered = answered && socket_.receive(&m, sizeof m);
    if (!answered && steady_clock::now() < until) return false;
    if (!answered || m.begins != message::mark || m.bytes > most_text)
      throw communicator_error("what " + who + " finds at " + where() +
                               " is not rank 0 of this job; set MASTER_PORT, for all ranks, to a port that is free");
    if (m.kind != message_kind::welcome) throw communicator_error(text(m));
    on_this_machine_ = m.size;
    return true;
  }

  std::string text(const message& m) const {
    std::string out(m.bytes, ' ');
    return socket_.receive(out.data(), out.size()) ? out : "";
  }

  // One message, if it comes by then: whether it has come. Who calls has the mutex, not while it reads.
  bool read(std::unique_lock<std::mutex>& lock, steady_clock::time_point until) {
    reading_ = true;
    lock.unlock();
    const bool is_here = socket_.readable(until);
    message m;
    const bool whole = is_here && socket_.receive(&m, sizeof m) && m.begins == message::mark;
    lock.lock();
    const bool good = !is_here || (whole && take(m, lock));
    reading_ = false;
    if (!good)
      end("rank 0, where ranks meet, ended without a word: its process was killed, or its machine cannot be reached");
    changed_.notify_all();
    return is_here && good;
  }

  // What follows a message, and what it means.
  bool take(const message& m, std::unique_lock<std::mutex>& lock) {
    awaited_answer* to = answer_to(m);
    const bool fits = m.kind == message_kind::result && to != nullptr && m.bytes == to->bytes;
    if (m.kind == message_kind::result && !fits) return false;
    if (m.kind != message_kind::result && m.bytes > most_text) return false;
    if (to != nullptr) changed_.wait(lock, [&] { return to->sent; });  // what is sent may be where the answer goes
    filled_ = to;
    std::string what;
    lock.unlock();
    const bool whole = fits ? socket_.receive(to->to, to->bytes) : (what = text(m)).size() == m.bytes;
    lock.lock();
    filled_ = nullptr;
    if (!whole) return false;
    if (fits) to->now = awaited_answer::state::result;
    if (m.kind == message_kind::stopped && to != nullptr) {
      to->why = what;
      to->now = awaited_answer::state::stopped;
    }
    if (const auto c = channels_.find(m.channel); c != channels_.end()) {
      if (m.kind == message_kind::news) c->second->record({m.rank, what, m.flag != 0});
      if (m.kind == message_kind::over) c->second->end_job(m.flag != 0);
    }
    return true;
  }

  awaited_answer* answer_to(const message& m) {
    const auto c = channels_.find(m.channel);
    const auto group = static_cast<std::size_t>(m.group + 1);
    if (c == channels_.end() || group >= c->second->awaited.size()) return nullptr;
    return m.kind == message_kind::result || m.kind == message_kind::stopped ? c->second->awaited[group] : nullptr;
  }

  void end(const std::string& why) {
    if (!broken_.empty()) return;
    broken_ = why;
    for (auto& [number, c] : channels_) c->break_off(why);
  }

  const launched_rank me_;
  std::unique_ptr<launched_hub> hub_;  // in rank 0's process; ends last
  socket_end socket_;
  int on_this_machine_ = 1;
  std::mutex sending_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool reading_ = false;              // somebody
  awaited_answer* filled_ = nullptr;  // now, by who reads
  std::string broken_;                // what has ended the connection
  int opened_ = 0;                    // channels
  std::map<int, launched_channel*> channels_;
};

}  // namespace cfp::detail
