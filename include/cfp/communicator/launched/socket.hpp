// Connections between processes over TCP: an end of one, where it is awaited, and what can be wrong.
#pragma once

#include <cfp/communicator/communicator.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace cfp::inline v0_1::detail {

using steady_clock = std::chrono::steady_clock;

inline std::string system_says(int code) { return std::system_category().message(code); }

/// A socket, or none.
class socket_end {
 public:
  socket_end() = default;
  explicit socket_end(int fd) : fd_(fd) {}
  socket_end(socket_end&& from) noexcept : fd_(std::exchange(from.fd_, -1)) {}
  socket_end& operator=(socket_end&& from) noexcept {
    std::swap(fd_, from.fd_);
    return *this;
  }
  ~socket_end() {
    if (fd_ >= 0) ::close(fd_);
  }

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  void set(int level, int option, int value) const { setsockopt(fd_, level, option, &value, sizeof value); }

  /// Small messages leave at once; a host that cannot be reached any more is found out within a minute.
  void tune() const {
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60000);
  }

  /// Whether there is something to read, or an end, by then.
  bool readable(steady_clock::time_point until) const {
    for (const auto soon = std::min(until, steady_clock::now() + brief); steady_clock::now() < soon;) {
      char next = 0;
      if (::recv(fd_, &next, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN) return true;
      sched_yield();
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
    pollfd one{fd_, POLLIN, 0};
    return ::poll(&one, 1, static_cast<int>(std::clamp<long>(left, 0, 60000))) > 0;
  }

  /// Whether all has been sent: not if the other end is gone.
  bool send(const void* first, std::size_t bytes, const void* second, std::size_t more) const {
    iovec parts[2] = {{const_cast<void*>(first), bytes}, {const_cast<void*>(second), more}};
    msghdr all{};
    for (std::size_t at = 0; at < 2;) {
      all.msg_iov = parts + at;
      all.msg_iovlen = 2 - at;
      ssize_t sent = ::sendmsg(fd_, &all, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return false;
      for (; at < 2 && static_cast<std::size_t>(sent) >= parts[at].iov_len; ++at)
        sent -= static_cast<ssize_t>(parts[at].iov_len);
      if (at == 2) break;
      parts[at].iov_base = static_cast<char*>(parts[at].iov_base) + sent;
      parts[at].iov_len -= static_cast<std::size_t>(sent);
    }
    return true;
  }

  /// Whether all has arrived: not if the other end is gone.
  bool receive(void* to, std::size_t bytes) const {
    for (std::size_t got = 0; got < bytes;) {
      const ssize_t n = ::recv(fd_, static_cast<char*>(to) + got, bytes - got, 0);
      if (n == 0 || (n < 0 && errno != EINTR)) return false;
      if (n > 0) got += static_cast<std::size_t>(n);
    }
    return true;
  }

 private:
  static constexpr auto brief = std::chrono::microseconds(20);  // of waiting awake: to fall asleep takes as long

  int fd_ = -1;
};

struct free_addresses {
  void operator()(addrinfo* a) const { freeaddrinfo(a); }
};
using resolved_addresses = std::unique_ptr<addrinfo, free_addresses>;

/// Of a host, null with `why` if it is not known. Null in place of a host: every interface of this one.
inline resolved_addresses resolve(const char* host, int port, std::string& why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = host == nullptr ? AI_PASSIVE : 0;
  const int code = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  if (code != 0) why = gai_strerror(code);
  return resolved_addresses(code == 0 ? found : nullptr);
}

inline bool names_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "localhost" || address == "::1";
}

/// A host may call itself by an address that only it can reach: that is not the one others know.
inline bool is_loopback(const addrinfo& a) {
  return a.ai_family == AF_INET && ntohl(reinterpret_cast<const sockaddr_in*>(a.ai_addr)->sin_addr.s_addr) >> 24 == 127;
}

inline socket_end bind_to(const addrinfo& a) {
  socket_end s(::socket(a.ai_family, a.ai_socktype | SOCK_CLOEXEC, a.ai_protocol));
  if (!s) return s;
  s.set(SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(s.fd(), a.ai_addr, a.ai_addrlen) == 0 && ::listen(s.fd(), 1024) == 0) return s;
  const int code = errno;
  s = socket_end();
  errno = code;
  return s;
}

/// Where rank 0 awaits the others: only on the interface of its address, if that is known to be one of its own. Throws
/// communicator_error if the port is not free.
inline socket_end listen_at(const std::string& address, int port) {
  std::string why;
  int code = 0;
  for (const char* host : {address.c_str(), static_cast<const char*>(nullptr)}) {
    const resolved_addresses all = resolve(host, port, why);
    for (const addrinfo* a = all.get(); a != nullptr && code != EADDRINUSE; a = a->ai_next) {
      if (host != nullptr && is_loopback(*a) && !names_loopback(address)) continue;
      if (socket_end s = bind_to(*a)) return s;
      code = errno;
      why = system_says(code);
    }
    if (code == EADDRINUSE || names_loopback(address)) break;
  }
  throw communicator_error("rank 0 cannot listen at " + address + ":" + std::to_string(port) + ": " + why +
                           (code == EADDRINUSE ? "; set MASTER_PORT, for all ranks, to a port that is free"
                                               : "; MASTER_ADDR is a name or address of rank 0's host"));
}

/// Two ends of nothing: a connection to a free port of this host may find itself.
inline bool meets_itself(const socket_end& s) {
  sockaddr_storage here{}, there{};
  socklen_t size = sizeof here, other = sizeof there;
  return getsockname(s.fd(), reinterpret_cast<sockaddr*>(&here), &size) == 0 &&
         getpeername(s.fd(), reinterpret_cast<sockaddr*>(&there), &other) == 0 && size == other &&
         std::memcmp(&here, &there, size) == 0;
}

/// A connection to who listens there, tried until then: none, and why, if nobody does.
inline socket_end connect_to(const std::string& address, int port, steady_clock::time_point until, std::string& why) {
  for (auto pause = std::chrono::milliseconds(2);; pause = std::min(pause * 2, std::chrono::milliseconds(100))) {
    const resolved_addresses all = resolve(address.c_str(), port, why);
    for (const addrinfo* a = all.get(); a != nullptr; a = a->ai_next) {
      socket_end s(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
      if (!s) continue;
      const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - steady_clock::now()).count();
      const timeval limit{std::max<long>(left, 1000) / 1000000, std::max<long>(left, 1000) % 1000000};
      setsockopt(s.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // of the connecting
      const bool connected = ::connect(s.fd(), a->ai_addr, a->ai_addrlen) == 0;
      why = connected ? "" : system_says(errno == EINPROGRESS ? ETIMEDOUT : errno);
      if (!connected || meets_itself(s)) continue;
      const timeval none{};
      setsockopt(s.fd(), SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
      s.tune();
      return s;
    }
    if (steady_clock::now() + pause >= until) return {};
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace cfp::detail
