// What launched ranks and the hub they meet in send each other: a message, and the bytes that follow it.
#pragma once

#include <cfp/communicator/communicator.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace cfp::inline v0_1::detail {

enum class message_kind : std::int32_t {
  // from a rank
  hello,    // `rank`, `size`, `host`; the job follows
  open,     // a channel; its mesh follows
  call,     // a collective; the data follow
  fail,     // the error follows; `flag`: it is a consequence
  leave,    // this rank's part of a job has ended well
  close,    // a channel
  goodbye,  // the process ends
  // from the hub
  refused,  // instead of a welcome: why follows
  welcome,  // all are there; `size` of them on this host
  result,   // of a call
  stopped,  // instead of a result: why follows
  news,     // `rank` has an error, which follows; `flag`: it is a consequence
  over,     // a job; `flag`: all ranks have ended it well
};

struct message {
  static constexpr std::uint32_t mark = 0x6e706663;  // no process of ours begins otherwise
  static constexpr std::int32_t current = 2;         // changes with what messages mean

  std::uint32_t begins = mark;
  message_kind kind = message_kind::hello;
  std::int32_t version = current;
  std::int32_t channel = 0;
  std::int32_t group = 0;  // of a call: by its number among a mesh's
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t flag = 0;
  std::uint64_t host = 0;
  std::uint64_t bytes = 0;      // that follow
  std::int64_t deadline = 0;    // in nanoseconds: how long the sender waits for others
  std::uint64_t length = 0;     // elements of the call that are in this piece of it
  std::int64_t arithmetic = 0;  // in which elements are combined
  collective_call call{};

  std::chrono::nanoseconds limit() const { return std::chrono::nanoseconds(deadline); }
};
static_assert(std::is_trivially_copyable_v<message>);

/// Bytes that belong to a message, kept as long as it is on its way.
struct message_bytes {
  std::shared_ptr<const std::byte[]> owner;
  std::size_t first = 0, count = 0;

  const std::byte* data() const { return owner.get() + first; }
  std::string text() const { return {reinterpret_cast<const char*>(data()), count}; }

  static message_bytes of(const void* data, std::size_t count) {
    const std::shared_ptr<std::byte[]> copy = std::make_shared_for_overwrite<std::byte[]>(count);
    const auto* const from = static_cast<const std::byte*>(data);
    for (std::size_t i = 0; i < count; ++i) copy[static_cast<std::ptrdiff_t>(i)] = from[i];
    return {copy, 0, count};
  }
  static message_bytes of(const std::string& text) { return of(text.data(), text.size()); }
  message_bytes part(std::size_t from, std::size_t length) const { return {owner, first + from, length}; }
};

}  // namespace cfp::detail
