#include "kernels.hpp"

namespace kernel_cases {

TEST_CASE("kernels for GPUs, bf16: elements") { check_elements<bf16>(); }
TEST_CASE("kernels for GPUs, bf16: sums") { check_sums<bf16>(); }
TEST_CASE("kernels for GPUs, bf16: chains") { check_chains<bf16>(); }

}  // namespace kernel_cases
