// What the example programs ask of a GPU. gpu.cu answers, so that they need not be compiled for one; without CUDA gpu_none.cpp does.
#pragma once

#include <cfp/profile/known_instructions.hpp>
#include <cfp/runtime/cuda/no_queue.hpp>

#include <string>

extern template class cfp::cuda::kernels<cfp::bf16, cfp::cuda::no_queue>;

namespace example {

/// The GPU here: its name, and what instructions take on it of programs lowered for `catalogue_target<bf16>`.
struct gpu_here {
  std::string name;
  cfp::known_instructions::device run;
};

/// Throws std::runtime_error, in words, if there is none.
gpu_here gpu();

}  // namespace example
