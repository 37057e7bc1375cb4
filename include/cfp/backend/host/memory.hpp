// Memory of this process, for the programs of one rank.
#pragma once

#include <cfp/backend/memory_use.hpp>
#include <cfp/program/memory.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace cfp::inline v0_1::host {

namespace detail {
inline void free_aligned(std::byte* p) { ::operator delete(p, std::align_val_t(memory_alignment)); }
}  // namespace detail

/// What an engine asks of memory: blocks, and to fill and read them from the host.
struct memory {
  using block = std::unique_ptr<std::byte, counted_free<&detail::free_aligned>>;

  memory_use* use = nullptr;

  // Large blocks ask for large pages: a program that is run a few times only would spend much of its time on small
  // ones.
  block allocate(long bytes) const {
    const auto size = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
    block out(static_cast<std::byte*>(::operator new(size, std::align_val_t(memory_alignment))), {use, bytes});
    if (use != nullptr) use->take(bytes);
#ifdef MADV_HUGEPAGE
    constexpr std::size_t page = 2 << 20;
    void* first = out.get();
    std::size_t space = size;
    if (size >= 2 * page && std::align(page, page, first, space)) madvise(first, space / page * page, MADV_HUGEPAGE);
#endif
    return out;
  }
  /// Memory that stands for a host's beside a device's: not counted.
  static block allocate_on_host(long bytes) { return memory{}.allocate(bytes); }
  using host_block = block;
  /// fill(data) writes all of the bytes; use(data) reads them.
  template <class Fill>
  void write(void* at, long, const Fill& fill) const {
    fill(at);
  }
  template <class Use>
  void read(const void* at, long, const Use& use_them) const {
    use_them(at);
  }

  /// For what the host gives or is given over and over, while the device works: here it does not. Items have numbers.
  class staging {
   public:
    staging(const memory&, const std::vector<long>& sizes) : at_(sizes.size()) {}

    /// fill(data) writes all of the item, which comes to `at` before what is run next.
    template <class Fill>
    void send(std::size_t, void* at, const Fill& fill) const {
      fill(at);
    }
    /// What is at `at` (null: nothing) once all has been done that was issued before: `fetched` gives it.
    void fetch(std::size_t item, const void* at) { at_[item] = at; }
    /// That of the first `fetch` whose result was not yet taken; valid until the second `fetch` from now. Waits.
    const void* fetched(std::size_t item) const { return at_[item]; }

   private:
    std::vector<const void*> at_;
  };
};

}  // namespace cfp::host
