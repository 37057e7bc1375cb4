// How an operator runs on a GPU: the code that is called with what it is bound to.
#pragma once

#include <cfp/backend/cuda/kernel/step_state.hpp>
#include <cfp/program/call.hpp>

#include <span>

namespace cfp::inline v0_1::cuda {

/// What a kernel finds on the device beside the tensors.
struct surroundings {
  const step_state* state = nullptr;
  void* workspace =
      nullptr;  ///< of at least as many bytes as the kernel asks for, at a multiple of 256; free again when it has run
};

/// How an operator runs. The step and the micro-batch of a call are not read: `surroundings` has them.
template <class Queue>
struct kernel_functions {
  void (*run)(const Queue&, const call&, const surroundings&) = nullptr;
  long (*workspace)(const Queue&, const call&) = nullptr;  ///< bytes, or null: none
};

/// How one operator runs on many tensors.
template <class Queue>
struct many_functions {
  void (*run)(const Queue&, std::span<const call>, const surroundings&) = nullptr;
  long (*workspace)(std::span<const call>) = nullptr;  ///< bytes, or null: none
};

}  // namespace cfp::cuda
