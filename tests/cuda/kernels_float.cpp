#include "kernels.hpp"

namespace kernel_cases {

TEST_CASE("kernels for GPUs, float: elements") { check_elements<float>(); }
TEST_CASE("kernels for GPUs, float: sums") { check_sums<float>(); }
TEST_CASE("kernels for GPUs, float: chains") { check_chains<float>(); }

namespace {

using namespace cuda;

// What finds chains in a program reads of one.
constexpr const chain_info& norm = info_of<layer_norm_forward>;
static_assert(norm.inputs == 3 && norm.steps.size() == 3 && norm.reduces() && norm.has_elements());
static_assert(norm.steps[0].op == &info<norm_sum_t> && norm.steps[0].reduces && !norm.steps[2].reduces);
static_assert(norm.steps[2].sources[1].step && norm.steps[2].sources[1].index == 0 && !norm.steps[2].sources[3].step);
static_assert(norm.passes(0) == 3 && norm.passes(1) == 1 && !norm.one_per_row(0) && !norm.one_per_row(1));
static_assert(info_of<layer_norm_backward>.one_per_row(2) && info_of<layer_norm_backward>.passes(4) == 3);
static_assert(is_walked_again<layer_norm_backward, 1> && !is_walked_again<layer_norm_backward, 4>);
static_assert(info_of<layer_norm_gradients>.same_for_all_rows(4) && gathered<layer_norm_gradients> == 2);
static_assert(info_of<add_rms_norm_forward>.passes(1) == 2 && !info_of<add_rms_norm_forward>.steps[0].reduces);

// A chain of a user's own: y = min of the row + (x + 1)^2.
struct shifted_t : op<"... width, ... -> ... width", shifted_t> {
  static constexpr int scalars = 1;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T least, T by) {
    return least + (x + by) * (x + by);
  }
};
using shifted_by_least = chain<cuda::step<row_min_t, in<0>>, cuda::step<shifted_t, in<0>, from<0>>>;

}  // namespace

TEST_CASE("kernels for GPUs: what a user adds, and what there is not") {
  both_kernels<float> k;
  CHECK_THROWS_WITH(k.device.find(info<shifted_t>),
                    "operator 'shifted' has no kernel for GPUs: add it with kernels.add<shifted_t>()");
  CHECK_THROWS_WITH(k.device.find(info<linear_t>),
                    "operator 'linear' has no kernel for GPUs: add it with kernels.add<linear_t>()");
  k.host.add<row_min_t, shifted_t>();
  k.device.add<row_min_t, shifted_t>();
  const std::size_t before = k.device.chains().size();
  k.device.add_chains<mapping::rows, shifted_by_least>();
  REQUIRE(k.device.chains().size() == before + 1);
  CHECK(k.device.chains().back().info == &info_of<shifted_by_least>);
  k.check(own<shifted_t>("nn", 2, {1.0}), 7);
  k.check_chain<shifted_by_least, mapping::rows>(6, 200, "n", {1.0}, 8);
  k.check_chain<shifted_by_least, mapping::rows>(2, 40000, "n", {1.0}, 9);
  chain_call wrong;
  wrong.input[2].along = 1;
  CHECK_THROWS_WITH((k.chain_of<layer_norm_backward, mapping::rows>().run(tested::device().main(), wrong, nullptr)),
                    "input 2 of a chain is one number for all of a row, but is bound to one that changes along it");
  chain_call long_rows;
  long_rows.length = 4100;
  CHECK_THROWS_WITH((k.chain_of<rms_norm_gradients, mapping::rows>().run(tested::device().main(), long_rows, nullptr)),
                    "rows of 4100 numbers are too long, or not aligned to 16 bytes, for a chain that gathers");
}

}  // namespace kernel_cases
