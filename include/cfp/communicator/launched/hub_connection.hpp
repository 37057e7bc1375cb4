// The hub's end of a connection. Nothing here waits: what arrives is put together, what is sent is kept until it can
// leave.
#pragma once

#include <cfp/communicator/launched/message.hpp>
#include <cfp/communicator/launched/socket.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class hub_connection {
 public:
  explicit hub_connection(socket_end s) : socket_(std::move(s)), since_(steady_clock::now()) { socket_.tune(); }

  int rank = -1;         // of who is there; none before it has said hello
  bool ending = false;   // when all has been sent
  bool goodbye = false;  // was said

  int fd() const { return socket_.fd(); }
  bool sending() const { return !going_.empty(); }
  steady_clock::time_point since() const { return since_; }

  enum class state { open, ended, foreign };

  /// Takes what has arrived, and hands each whole message to handle(message, bytes). Foreign: it is no message. Before
  /// a hello a message is short.
  template <class Handle>
  state receive(const Handle& handle) {
    if (bytes_ && here_ < coming_.bytes) return receive_bytes(handle);
    const ssize_t n = ::recv(fd(), staged_.data() + filled_, staged_.size() - filled_, MSG_DONTWAIT);
    if (n == 0) return filled_ == 0 ? state::ended : state::foreign;
    if (n < 0) return errno == EAGAIN || errno == EINTR ? state::open : state::ended;
    filled_ += static_cast<std::size_t>(n);
    std::size_t at = 0;
    bool ours = true;
    while (ours && at < filled_ && parse(at, ours)) handle(coming_, take());
    filled_ -= at;
    std::memmove(staged_.data(), staged_.data() + at, filled_);
    return ours ? state::open : state::foreign;
  }

  void post(message m, const std::vector<message_bytes>& data) {
    m.bytes = 0;
    for (const message_bytes& d : data) m.bytes += d.count;
    going_.push_back(message_bytes::of(&m, sizeof m));
    for (const message_bytes& d : data)
      if (d.count > 0) going_.push_back(d);
  }

  void drop_all() { going_.clear(); }

  /// Sends what can leave now. False: the other end is gone.
  bool flush() {
    while (!going_.empty()) {
      std::array<iovec, 32> parts;
      msghdr all{};
      all.msg_iov = parts.data();
      for (const message_bytes& d : going_) {
        if (all.msg_iovlen == parts.size()) break;
        parts[all.msg_iovlen++] = {const_cast<std::byte*>(d.data()), d.count};
      }
      const ssize_t n = ::sendmsg(fd(), &all, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      drop(static_cast<std::size_t>(n));
    }
    return true;
  }

 private:
  static constexpr std::size_t most_before_hello = 4096;

  // The next message, from a place in what is staged on: whether it is whole.
  bool parse(std::size_t& at, bool& ours) {
    const std::size_t left = filled_ - at;
    std::uint32_t begins = message::mark;
    std::memcpy(&begins, staged_.data() + at, std::min(left, sizeof begins));
    ours = begins == message::mark;
    if (!ours || left < sizeof coming_) return false;
    std::memcpy(&coming_, staged_.data() + at, sizeof coming_);
    ours = rank >= 0 || (coming_.kind == message_kind::hello && coming_.bytes <= most_before_hello);
    if (!ours) return false;
    at += sizeof coming_;
    bytes_ = std::make_shared_for_overwrite<std::byte[]>(coming_.bytes);
    here_ = std::min<std::size_t>(coming_.bytes, filled_ - at);
    std::memcpy(bytes_.get(), staged_.data() + at, here_);
    at += here_;
    return here_ == coming_.bytes;
  }

  template <class Handle>
  state receive_bytes(const Handle& handle) {
    const ssize_t n = ::recv(fd(), bytes_.get() + here_, coming_.bytes - here_, MSG_DONTWAIT);
    if (n == 0) return state::ended;
    if (n < 0) return errno == EAGAIN || errno == EINTR ? state::open : state::ended;
    here_ += static_cast<std::size_t>(n);
    if (here_ == coming_.bytes) handle(coming_, take());
    return state::open;
  }

  message_bytes take() { return {std::exchange(bytes_, nullptr), 0, coming_.bytes}; }

  void drop(std::size_t sent) {
    while (!going_.empty() && sent >= going_.front().count) {
      sent -= going_.front().count;
      going_.pop_front();
    }
    if (sent > 0) going_.front() = going_.front().part(sent, going_.front().count - sent);
  }

  socket_end socket_;
  steady_clock::time_point since_;
  std::array<std::byte, 8192> staged_;  // arrived, and not yet part of a message
  std::size_t filled_ = 0;
  message coming_;
  std::shared_ptr<std::byte[]> bytes_;  // of the message that is coming
  std::size_t here_ = 0;                // of its bytes
  std::deque<message_bytes> going_;
};

}  // namespace cfp::detail
