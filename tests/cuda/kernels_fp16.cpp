#include "kernels.hpp"

namespace kernel_cases {

TEST_CASE("kernels for GPUs, fp16: elements") { check_elements<fp16>(); }
TEST_CASE("kernels for GPUs, fp16: sums") { check_sums<fp16>(); }
TEST_CASE("kernels for GPUs, fp16: chains") { check_chains<fp16>(); }

}  // namespace kernel_cases
