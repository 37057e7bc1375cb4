// What a program takes of a GPU's memory beside what it plans, known before it is loaded.
#pragma once

#include <cfp/backend/cuda/make_ready.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cfp::inline v0_1::cuda {

namespace detail {

/// In the place of a device that makes instructions ready which are never run; no epilogue is known to it, so that
/// they ask for all the workspace they might.
template <class Device>
class idle_device {
 public:
  using number = typename Device::number;
  using queue = typename Device::queue;
  using parts = typename Device::parts;
  struct product {
    bool made = false;
    explicit operator bool() const { return made; }
    void run(const queue&) const {}
  };

  explicit idle_device(Device& in_place_of) : device_(in_place_of) {}
  const queue& main() const { return device_.main(); }
  auto state() const { return device_.state(); }
  product prepare(const call&, const epilogue& e) const { return {!e.any()}; }

 private:
  Device& device_;
};

// Somewhere for every buffer, aligned as buffers are; nothing is read or written there.
inline std::vector<void*> nowhere(const program& p) {
  std::vector<void*> out(p.buffers.size());
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const buffer& x = p.buffers[b];
    const std::uintptr_t root = (static_cast<std::uintptr_t>(x.root) + 1) << 40;
    const long n = elements(x.local);
    out[b] = reinterpret_cast<void*>(root + static_cast<std::uintptr_t>(n > 0 ? x.first * (x.bytes / n) : 0));
  }
  return out;
}

// What is lost at the end of a piece of memory of its own: pieces that are not small begin at a page of the GPU's.
inline long lost_in_pages(long bytes) {
  constexpr long page = 2 << 20;
  return bytes > page / 2 ? (bytes + page - 1) / page * page - bytes : 0;
}

}  // namespace detail

/// Throws bad_input for operators that have no kernel.
template <class Device>
long beside_bytes(Device& on, const typename Device::parts& with, const program& p, const graph& g, int rank) {
  detail::idle_device<Device> idle(on);
  const std::vector<void*> at = detail::nowhere(p);
  void* const none = nullptr;
  const places where{p, g, rank, 0, at, none};
  long workspace = 0, lost = detail::lost_in_pages(p.arena_bytes);
  for (const instruction& i : p.code)
    if (!i.nothing && (i.kind == instruction::compute || i.kind == instruction::narrow))
      workspace = std::max(workspace, make_ready(idle, with, where, i).workspace);
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (const buffer& x = p.buffers[b]; x.persistent && !x.on_host && x.root == static_cast<int>(b))
      lost += detail::lost_in_pages(x.bytes);
  return workspace + lost + detail::lost_in_pages(workspace);
}

}  // namespace cfp::cuda
