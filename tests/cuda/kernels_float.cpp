#include "kernels.hpp"

using namespace kernel_cases;

TEST_CASE("kernels for GPUs, float: elements") { check_elements<float>(); }
TEST_CASE("kernels for GPUs, float: sums") { check_sums<float>(); }
TEST_CASE("kernels for GPUs, float: chains") { check_chains<float>(); }
