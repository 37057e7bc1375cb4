// A program on one rank of the host, whose memory a test may look into.
#pragma once

#include <cfp/backend/host/device.hpp>
#include <cfp/communicator/threads/run_ranks.hpp>

/// A buffer's memory is where its device was asked for it: the arena first, then what persists, in order.
template <class T>
class open_engine {
  struct device : cfp::host::device<T, cfp::rank_context> {
    using cfp::host::device<T, cfp::rank_context>::device;
    struct memory : cfp::host::memory {
      device* of;
      explicit memory(device& d) : cfp::host::memory{&d.use()}, of(&d) {}
      block allocate(long bytes) const {
        block out = cfp::host::memory::allocate(bytes);
        of->blocks.push_back(out.get());
        return out;
      }
    };
    std::vector<std::byte*> blocks;
  };

 public:
  using kernels = std::shared_ptr<const cfp::host::kernels<T>>;

  open_engine(const cfp::program& p, const cfp::graph& g, cfp::rank_context& rank, std::uint64_t seed,
              const kernels& k = std::make_shared<cfp::host::kernels<T>>())
      : program_(p), device_(typename device::parts{k}, rank), run_(p, g, device_, seed) {}

  cfp::loaded_program* operator->() { return &run_; }
  cfp::loaded_program& operator*() { return run_; }
  /// Where a buffer is; nothing, if it has no memory.
  template <class U = T>
  U* at(int buffer) const {
    const cfp::buffer& root = program_[program_[buffer].root];
    std::byte* at = nullptr;
    if (!root.persistent) {
      if (root.offset >= 0) at = device_.blocks.front() + root.offset;
    } else {
      std::size_t before = 1;
      for (int b = 0; b < program_[buffer].root; ++b) before += program_[b].persistent && program_[b].root == b;
      at = device_.blocks[before];
    }
    return reinterpret_cast<U*>(at);
  }

 private:
  const cfp::program& program_;
  device device_;
  cfp::engine<device> run_;
};
