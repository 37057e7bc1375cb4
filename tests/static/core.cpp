// Compiling is passing: rules, propagation and conversions as constant expressions.
#include <cfp/core.hpp>

using namespace cfp;

namespace {

constexpr mesh_shape mesh = [] {
  mesh_shape m;
  m.axes.push({"data", 2});
  m.axes.push({"model", 4});
  return m;
}();
static_assert(mesh.devices() == 8 && mesh.find("model") == 1 && mesh.find("other") == -1);
static_assert(mesh.coordinate(5, 0) == 1 && mesh.coordinate(5, 1) == 1);

// Rules.
constexpr int three_two[] = {3, 2};
constexpr rule linear = parse("... in, in out -> ... out", three_two);
constexpr int in = linear.find("in"), out = linear.find("out"), first = linear.find("..0");
static_assert(linear.factors.size() == 4);
static_assert(linear.is_reduction(in) && linear.is_parallel(out) && linear.is_parallel(first));
constexpr rule qkv = parse("b s (three h d) -> b h s d, b h s d, b h s d; whole three");
static_assert(!qkv.is_parallel(qkv.find("three")) && qkv.is_parallel(qkv.find("h")));
static_assert(qkv.operands[0].group[2] == qkv.operands[0].group[4]);
static_assert(parse("b v -> b; max v").combine == reduction::max);

// Propagation of the matrix product: rows and columns are free, the inner dimension owes an all-reduce.
constexpr partition split(int rank, int dim, int axis) {
  partition p = partition::replicated(rank);
  p.split(dim, axis);
  return p;
}
constexpr partition owed(int rank, int axis) {
  partition p = partition::replicated(rank);
  p.partial[axis] = {true, reduction::sum};
  return p;
}
constexpr partition whole3 = partition::replicated(3), whole2 = partition::replicated(2);
constexpr auto rows = propagate(linear, linearity::each, {{split(3, 0, 0), whole2}, 2}, mesh);
static_assert(rows.communication_free() && rows.results[0] == split(3, 0, 0));
constexpr auto columns = propagate(linear, linearity::each, {{whole3, split(2, 1, 1)}, 2}, mesh);
static_assert(columns.communication_free() && columns.results[0] == split(3, 2, 1));
constexpr auto inner = propagate(linear, linearity::each, {{split(3, 2, 1), split(2, 0, 1)}, 2}, mesh);
static_assert(inner.communication_free() && inner.results[0] == owed(3, 1));
constexpr auto wrong = propagate(linear, linearity::each, {{split(3, 2, 1), whole2}, 2}, mesh);
static_assert(wrong.why.kind == conflict::disagree && wrong.why.axis == 1 && wrong.why.operand == 0 && wrong.why.other == 1);
static_assert(linear.factors[wrong.why.factor].label == "in");

// Partial sums pass additions of two partials, and nothing that is not linear.
constexpr int two_two[] = {2, 2};
constexpr rule add = parse("..., ... -> ...", two_two);
static_assert(propagate(add, linearity::all, {{owed(2, 0), owed(2, 0)}, 2}, mesh).results[0] == owed(2, 0));
static_assert(propagate(add, linearity::all, {{owed(2, 0), whole2}, 2}, mesh).why.kind == conflict::partial_operand);
static_assert(propagate(add, linearity::none, {{owed(2, 0), owed(2, 0)}, 2}, mesh).why.kind == conflict::partial_operand);

// Conversions: the table of collectives, with the bytes a device sends; B = 8 * 8 * 4 bytes.
constexpr extents shape{{8, 8}, 2};
constexpr long B = 8 * 8 * 4;
constexpr conversion between(const partition& a, const partition& b) { return convert(a, b, shape, 4, mesh); }
constexpr bool one_step(const conversion& c, conversion_step::kind_t kind, long bytes) {
  return c.steps.size() == 1 && c.steps[0].kind == kind && c.bytes == bytes;
}
static_assert(between(whole2, whole2).steps.empty());
static_assert(one_step(between(split(2, 0, 1), whole2), conversion_step::all_gather, 3 * B / 4));
static_assert(one_step(between(owed(2, 1), whole2), conversion_step::all_reduce, 2 * 3 * B / 4));
static_assert(one_step(between(owed(2, 1), split(2, 1, 1)), conversion_step::reduce_scatter, 3 * B / 4));
static_assert(one_step(between(split(2, 0, 1), split(2, 1, 1)), conversion_step::all_to_all, 3 * B / 16));
static_assert(one_step(between(whole2, split(2, 1, 1)), conversion_step::slice, 0));
static_assert(one_step(between(whole2, owed(2, 1)), conversion_step::mask, 0));
static_assert(one_step(between(split(2, 0, 1), owed(2, 1)), conversion_step::pad, 0));
// Only the innermost axis of a dimension can be gathered first.
constexpr partition both = [] {
  partition p = partition::replicated(2);
  p.split(0, 0);
  p.split(0, 1);
  return p;
}();
static_assert(between(both, split(2, 0, 0)).steps.size() == 1);
static_assert(between(both, split(2, 0, 1)).steps.size() > 1);
static_assert(!convert(whole2, split(2, 0, 1), extents{{6, 8}, 2}, 4, mesh).possible);

}  // namespace
