// What kernels for GPUs compute together, where there is no GPU and no compiler for one: for planning.
#pragma once

#include <cfp/runtime/cuda/fusions.hpp>
#include <cfp/runtime/target.hpp>

#include <cstdint>

namespace cfp::inline v0_1::cuda {

/// A queue of no GPU: nothing can be launched.
struct no_queue {
  template <class Kernel>
  void launch(const Kernel&, long, long = 0) const { refuse(); }
  void zero(void*, long) const { refuse(); }
  long sort_bytes(long) const { refuse(); }
  void sort_pairs(const std::int32_t*, std::int32_t*, const std::int32_t*, std::int32_t*, long, void*) const { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("there is no GPU behind this queue"); }
};

/// What programs for GPUs are lowered for, numbers stored as T; the kernels are those of the catalogue. A table made on a GPU
/// (`instruction_timer`) prices such programs anywhere.
template <class T>
const target& catalogue_target() {
  static const kernels<T, no_queue> k;
  static const fusions<T, no_queue> f(k);
  static const target out{sizeof(T), &f.patterns()};
  return out;
}

}  // namespace cfp::cuda
