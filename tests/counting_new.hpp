// Counts what every thread allocates, in the program that includes this (once).
#pragma once

#include <cstdlib>
#include <new>

#include <malloc.h>

namespace counting {

/// Bytes this thread holds through operator new, and the most it ever held.
inline thread_local long bytes_now = 0, bytes_peak = 0;

inline void* counted(void* p) {
  if (!p) throw std::bad_alloc();
  bytes_now += static_cast<long>(malloc_usable_size(p));
  if (bytes_now > bytes_peak) bytes_peak = bytes_now;
  return p;
}
inline void uncount(void* p) noexcept {
  if (p) bytes_now -= static_cast<long>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace counting

void* operator new(std::size_t n) { return counting::counted(std::malloc(n ? n : 1)); }
void* operator new(std::size_t n, std::align_val_t a) {
  const std::size_t align = static_cast<std::size_t>(a);
  return counting::counted(std::aligned_alloc(align, (n + align - 1) / align * align));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {  // what std::stable_sort asks for
  void* p = std::malloc(n ? n : 1);
  return p ? counting::counted(p) : nullptr;
}
void operator delete(void* p, const std::nothrow_t&) noexcept { counting::uncount(p); }
void operator delete(void* p) noexcept { counting::uncount(p); }
void operator delete(void* p, std::size_t) noexcept { counting::uncount(p); }
void operator delete(void* p, std::align_val_t) noexcept { counting::uncount(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { counting::uncount(p); }
