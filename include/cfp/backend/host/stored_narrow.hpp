// Kernels for numbers that are stored in fewer bits than they are computed in: those of the wider type, on copies.
#pragma once

#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>
#include <cfp/program/call.hpp>

#include <vector>

namespace cfp::inline v0_1::host {

using kernel_function = void (*)(const call&);

namespace detail {

inline long count(const call& c, const pattern& p) {
  long n = 1;
  for (signed char f : p.factors) n *= c.size[f];
  return n;
}

}  // namespace detail

/// Runs a kernel for `wide_t<T>` where numbers are stored as T: operands are widened before, results rounded after, so
/// that sums of many are rounded once. What is stored wide already, and indices (operand `index`), it reads and writes
/// where they are.
template <class T>
void run_stored_narrow(const call& c, kernel_function kernel, int index) {
  using wide = wide_t<T>;
  thread_local std::vector<wide> operands[max_operands], results[max_results];
  const auto copy_of = [&](std::vector<wide>& memory, const pattern& p) {
    memory.resize(static_cast<std::size_t>(detail::count(c, p)));
    return memory.data();
  };
  call widened = c;
  for (int k = 0; k < c.r().operands.size(); ++k) {
    if (c.operand[k].wide || k == index) continue;
    wide* const copy = copy_of(operands[k], c.r().operands[k]);
    const T* const stored = static_cast<const T*>(c.operand[k].data);
    for (std::size_t i = 0; i < operands[k].size(); ++i) copy[i] = static_cast<wide>(stored[i]);
    widened.operand[k].data = copy;
  }
  for (int k = 0; k < c.r().results.size(); ++k)
    if (!c.result[k].wide) widened.result[k].data = copy_of(results[k], c.r().results[k]);
  kernel(widened);
  for (int k = 0; k < c.r().results.size(); ++k) {
    if (c.result[k].wide) continue;
    T* const stored = static_cast<T*>(c.result[k].data);
    for (std::size_t i = 0; i < results[k].size(); ++i) stored[i] = T(results[k][i]);
  }
}

/// A kernel for numbers stored as T, from that for what they are computed in.
template <class T, kernel_function Kernel, int Index = -1>
constexpr kernel_function stored_as() {
  if constexpr (is_narrow<T>) return [](const call& c) { run_stored_narrow<T>(c, Kernel, Index); };
  else return Kernel;
}

}  // namespace cfp::host
