// Counts what every thread allocates, in the program that includes this (once): the figures behind measured_peak_bytes.
#pragma once

#include "driver.hpp"

namespace driver {
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
}  // namespace driver

void* operator new(std::size_t n) { return driver::counted(std::malloc(n ? n : 1)); }
void* operator new(std::size_t n, std::align_val_t a) {
  const std::size_t align = static_cast<std::size_t>(a);
  return driver::counted(std::aligned_alloc(align, (n + align - 1) / align * align));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {  // what std::stable_sort asks for
  void* p = std::malloc(n ? n : 1);
  return p ? driver::counted(p) : nullptr;
}
void operator delete(void* p, const std::nothrow_t&) noexcept { driver::uncount(p); }
void operator delete(void* p) noexcept { driver::uncount(p); }
void operator delete(void* p, std::size_t) noexcept { driver::uncount(p); }
void operator delete(void* p, std::align_val_t) noexcept { driver::uncount(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { driver::uncount(p); }
