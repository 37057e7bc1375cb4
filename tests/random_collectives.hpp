// Random collectives on all groups of a mesh, the same on every kind of ranks, so that what they bring about can be
// compared.
#pragma once

#include <cfp/communicator/communicator.hpp>

#include <cstddef>
#include <random>
#include <type_traits>
#include <vector>

/// Where collectives work, unless on a device: a buffer made of elements, to be read when the call is done.
template <class T>
class host_buffer {
 public:
  explicit host_buffer(std::vector<T> x) : x_(std::move(x)) {}
  T* data() { return x_.data(); }
  const std::vector<T>& read() const { return x_; }

 private:
  std::vector<T> x_;
};

/// `out` takes every byte the calls bring about, and what was counted. Of whole numbers a sum is the same in any order.
template <class T, template <class> class Buffer = host_buffer, class Context>
void exchange(Context& c, unsigned seed, std::vector<std::byte>& out, bool whole_numbers = false) {
  std::mt19937 same(seed);                                        // decides what is called
  std::mt19937 own(seed + 1000 + static_cast<unsigned>(c.rank));  // fills
  for (int call = 0; call < 60; ++call) {
    const auto at = static_cast<int>(same() % static_cast<unsigned>(c.groups() + 1));
    const auto& group = at == 0 ? c.world : c.group(at - 1);
    const auto n = static_cast<std::size_t>(group.size());
    const std::size_t counts[] = {0, 1, 3, 64, 1000, 70000};
    const std::size_t count = counts[same() % 6];
    const auto by = static_cast<cfp::reduction>(same() % 3);
    const auto filled = [&](std::size_t size) {
      std::vector<T> x(size);
      for (T& e : x) {
        const auto drawn = static_cast<unsigned>(own());
        if constexpr (std::is_integral_v<T>) e = static_cast<T>(drawn % (whole_numbers ? 9 : 251));
        else
          e = T(whole_numbers ? static_cast<float>(drawn % 9)
                              : static_cast<float>(static_cast<int>(drawn % 2001) - 1000) / 7.0f);
      }
      return Buffer<T>(std::move(x));
    };
    const auto empty = [](std::size_t size) { return Buffer<T>(std::vector<T>(size)); };
    const auto done = [&](const Buffer<T>& result) {
      if constexpr (requires { group.wait(); }) group.wait();
      const std::vector<T> x = result.read();
      const auto* bytes = reinterpret_cast<const std::byte*>(x.data());
      out.insert(out.end(), bytes, bytes + x.size() * sizeof(T));
    };
    const auto what = same() % 8;
    const bool in_place = own() % 2 == 0;  // each rank as it likes
    if (what == 0) {
      Buffer<T> data = filled(count);
      group.all_reduce(data.data(), count, by);
      done(data);
    } else if (what <= 2 && in_place) {
      Buffer<T> data = filled(n * count);
      group.all_gather(data.data() + static_cast<std::size_t>(group.rank()) * count, data.data(), count);
      done(data);
    } else if (what <= 2) {
      Buffer<T> in = filled(count), result = empty(n * count);
      group.all_gather(in.data(), result.data(), count);
      done(result);
    } else if (what == 3) {
      Buffer<T> in = filled(n * count), result = empty(count);
      group.reduce_scatter(in.data(), result.data(), count, by);
      done(result);
    } else if (what == 4) {
      Buffer<T> in = filled(n * count), result = empty(n * count);
      group.all_to_all(in.data(), result.data(), count);
      done(result);
    } else if (what == 5) {
      Buffer<T> data = filled(count);
      group.broadcast(data.data(), count, static_cast<int>(same() % n));
      done(data);
    } else if (what == 6) {
      const auto& pair = c.group(c.groups() + static_cast<int>(same() % c.pairs.size()));
      const auto sender = static_cast<int>(same() % 2);
      const auto as = static_cast<cfp::collective_kind>(static_cast<int>(cfp::collective_kind::shift) +
                                                        static_cast<int>(same() % 3));  // or all_scan, or send
      if (pair.size() == 2 && pair.rank() == sender) {
        Buffer<T> data = filled(count);
        pair.send(data.data(), count, as);
        if constexpr (requires { pair.wait(); }) pair.wait();
      } else if (pair.size() == 2) {
        Buffer<T> data = empty(count);
        pair.receive(data.data(), count, as);
        if constexpr (requires { pair.wait(); }) pair.wait();
        done(data);
      }
    } else {
      group.barrier();
    }
  }
  for (int g = 0; g <= c.groups_and_pairs(); ++g) {
    const cfp::traffic& counted = g == 0 ? c.world.counted() : c.group(g - 1).counted();
    const auto* bytes = reinterpret_cast<const std::byte*>(&counted);
    out.insert(out.end(), bytes, bytes + sizeof counted);
  }
}
