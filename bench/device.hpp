// What bench_device asks of a GPU: device.cu answers, so that device.cpp need not be compiled for one.
#pragma once

#include <cfp/model/batch.hpp>
#include <cfp/profile/measure/stopwatch.hpp>
#include <cfp/program/program.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace device_bench {

using cfp::timing;

/// How large what is measured is, and how long each of it.
struct sizes {
  long copied_bytes = 1l << 31, matrix = 8192;
  cfp::timing_options ceiling{1}, each{}, suggestion{0.1};
};

/// Bytes read and written per second by a copy of many times the L2 cache, in GB; and TFLOP/s of a large
/// product of random bfloat16 by the best of cuBLASLt's suggestions.
struct ceilings {
  double copy_GBps = 0, bf16_TFLOPs = 0;
};
ceilings measure_ceilings(const sizes& of);
/// Bytes per second, in GB, to and from page-locked memory of the host: of the slower direction.
double measure_host_rate(const sizes& of);

/// One instruction of a program as it runs on the GPU, with nothing of its data in the caches, and with all that fits.
struct instruction_figure {
  std::string label;  ///< of what it does, fused or alone
  std::string kind;   ///< product, attention, map, conversion
  timing cold, warm;
  double bytes = 0;                      ///< read and written at least
  double flops = 0;                      ///< of products and attention
  long rows = 0, columns = 0, sums = 0;  ///< of a product
  double best_ms = 0;  ///< of a product: the fastest suggestion for the product alone, without what is fused with it
};
/// Programs for numbers of 16 bits (bfloat16), their order set, of a rank of any mesh; collectives are left out.
std::vector<instruction_figure> time_instructions(const cfp::program& p, const cfp::graph& g, const sizes& of);

/// Whole steps of a program, recorded and replayed.
struct step_figure {
  timing step;
  std::vector<double> loss;
  std::size_t instructions = 0;
  double memory_bound_GB = 0;          ///< what instructions without a product read and write
  long refused_epilogues = 0;          ///< products that cuBLASLt leaves to kernels to finish
  long peak_bytes = 0;                 ///< of the GPU's memory, what libraries take for themselves left out
  long beside_bytes = 0;               ///< of these, what kernels said that they take beside the planned memory
  double least_MHz = 0, most_MHz = 0;  ///< of the multiprocessors, seen between steps
};
step_figure time_steps(const cfp::program& p, const cfp::graph& g, int steps, const cfp::batch_source& data);

/// The same steps in float32 (`bf16` false) or bfloat16, for comparing with the host: the loss of each.
std::vector<double> losses(const cfp::program& p, const cfp::graph& g, bool bf16, int steps, std::uint64_t seed,
                           const cfp::batch_source& data);

}  // namespace device_bench
