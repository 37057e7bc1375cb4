// Compiling is passing: rules, propagation and conversions as constant expressions.
#include <cfp/core.hpp>

#include <type_traits>

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
static_assert(wrong.why.kind == conflict::disagree && wrong.why.axis == 1 && wrong.why.operand == 0 &&
              wrong.why.other == 1);
static_assert(linear.factors[wrong.why.factor].label == "in");

// Partial sums pass additions of two partials, and nothing that is not linear.
constexpr int two_two[] = {2, 2};
constexpr rule add = parse("..., ... -> ...", two_two);
static_assert(propagate(add, linearity::all, {{owed(2, 0), owed(2, 0)}, 2}, mesh).results[0] == owed(2, 0));
static_assert(propagate(add, linearity::all, {{owed(2, 0), whole2}, 2}, mesh).why.kind == conflict::partial_operand);
static_assert(propagate(add, linearity::none, {{owed(2, 0), owed(2, 0)}, 2}, mesh).why.kind ==
              conflict::partial_operand);

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

// On several axes the cheapest sequence is found, and applying its steps leads where it should.
constexpr bool leads(const partition& a, const partition& b, long bytes, int collectives) {
  const conversion c = between(a, b);
  partition at = a;
  for (const conversion_step& s : c.steps) at = after(at, s);
  return c.possible && at == b && c.bytes == bytes && c.collectives() == collectives;
}
constexpr partition crossed = [] {
  partition p = partition::replicated(2);
  p.split(0, 0);
  p.split(1, 1);
  return p;
}();
constexpr partition both_reversed = [] {
  partition p = partition::replicated(2);
  p.split(0, 1);
  p.split(0, 0);
  return p;
}();
constexpr partition owed_twice = [] {
  partition p = owed(2, 0);
  p.partial[1] = {true, reduction::sum};
  return p;
}();
static_assert(leads(both, whole2, 3 * B / 8 + B / 2, 2));     // inner axis first: a half, then all
static_assert(leads(crossed, whole2, 3 * B / 8 + B / 2, 2));  // the larger axis first, while there is less to send
static_assert(leads(both, crossed, 3 * (B / 2) / 16, 1));     // one all-to-all
static_assert(leads(whole2, both, 0, 0) && leads(whole2, crossed, 0, 0) && leads(split(2, 0, 0), both, 0, 0));
// Two all-reduces would send 5 B / 2; scatter, reduce, gather sends less.
static_assert(leads(owed_twice, whole2, 3 * B / 4 + B / 4 + 3 * B / 4, 3));
static_assert(leads(owed_twice, crossed, 3 * B / 4 + B / 8, 2));
static_assert(leads(both, both_reversed, between(both, both_reversed).bytes,
                    between(both, both_reversed).collectives()));
static_assert(between(both, both_reversed).bytes > 0);                            // a permutation of the pieces
static_assert(leads(split(2, 0, 1), split(2, 0, 0), 3 * B / 16 + 3 * B / 8, 2));  // less than a gather: 3 B / 4
static_assert(leads(owed(2, 1), owed(2, 1), 0, 0) && leads(both, both, 0, 0) && leads(crossed, crossed, 0, 0));
// Maxima reduce as sums do, but are never made of zeros.
constexpr partition largest = [] {
  partition p = partition::replicated(2);
  p.partial[1] = {true, reduction::max};
  return p;
}();
static_assert(leads(largest, split(2, 0, 1), 3 * B / 4, 1) && !(largest == owed(2, 1)));
static_assert(between(largest, whole2).steps[0].combine == reduction::max);
static_assert(leads(largest, owed(2, 1), 3 * B / 4, 1));  // complete pieces first, then zeros around them

// Canonical forms: equal meaning is equal value, however it was made.
static_assert(after(after(split(2, 0, 1), {conversion_step::all_gather, 1, 0, 0, reduction::sum}),
                    {conversion_step::slice, 1, 0, 0, reduction::sum}) == split(2, 0, 1));
static_assert(after(owed(2, 1), {conversion_step::all_reduce, 1, 0, 0, reduction::sum}) == whole2);
static_assert(!(both == both_reversed) && both.on(0) == both_reversed.on(0) && both.on(1) == both_reversed.on(1));
static_assert(both.on(0) == placement{placement::split, 0, reduction::sum} &&
              owed(2, 1).on(1).kind == placement::partial);
static_assert(crossed.dim_of(1) == 1 && owed(2, 1).dim_of(1) == -1 && owed(2, 1).is_partial() && !crossed.is_partial());
// What a device holds: rank 6 stands at (1, 2).
static_assert(local_shape(both, shape, mesh) == extents{{1, 8}, 2} &&
              local_shape(crossed, shape, mesh) == extents{{4, 2}, 2});
static_assert(piece_of(both, 0, mesh, 6) == 1 * 4 + 2 && piece_of(both_reversed, 0, mesh, 6) == 2 * 2 + 1);
static_assert(divides(both, shape, mesh) && !divides(both, extents{{4, 8}, 2}, mesh));

// Marks, compound dimensions and "...".
constexpr rule marked = parse("b h q k -> b h q; max k; index q k");
static_assert(marked.combine == reduction::max && marked.coordinates.size() == 2);
static_assert(marked.coordinates[0] == marked.find("q") && marked.coordinates[1] == marked.find("k"));
static_assert(parse("a b -> a; min b").combine == reduction::min && parse("a b -> a").combine == reduction::sum);
constexpr rule table = parse("v m, b -> b m; onehot v");
static_assert(table.factors[table.find("v")].one_hot && table.is_reduction(table.find("v")) &&
              table.is_parallel(table.find("m")));
static_assert(parse("b m, b -> v m; onehot v").is_parallel(3 - 1));  // scattered into: the table may be split
static_assert(qkv.factors[qkv.find("three")].whole && !qkv.factors[qkv.find("h")].whole);
static_assert(qkv.operands[0].factors.size() == 5 && qkv.results.size() == 3 &&
              qkv.operands[0].group[1] != qkv.operands[0].group[2]);
constexpr int four_three[] = {4, 3};
static_assert(parse("b ..., ... -> b ...", four_three) == parse("b ..., ... -> b ...", 3));
static_assert(parse("b ..., ... -> b ...", four_three).factors.size() == 4);
static_assert(parse("..., ... -> ...").factors.empty());  // bound to numbers
static_assert(parse("a b,c->a c") == parse("  a  b ,  c  ->  a  c ") && !(parse("a -> a") == parse("b -> b")));
static_assert(parse("-> ").operands.size() == 1 && parse("-> ").operands[0].factors.empty() &&
              parse("a b -> ").results[0].factors.empty());

// What is no rule, as a question.
template <lit Text>
concept is_rule = requires {
  typename std::bool_constant<(parse(Text.view()), true)>;
};
static_assert(is_rule<"a b, b c -> a c"> && is_rule<"a (b c) -> b a c; whole b">);
static_assert(!is_rule<"a b"> && !is_rule<"a -> b"> && !is_rule<"a a -> a"> && !is_rule<"a -> a; max b"> &&
              !is_rule<"a -> a; half a"> && !is_rule<"a -> a; max"> && !is_rule<"(a -> a"> && !is_rule<"a -> a -> a"> &&
              !is_rule<"a ? -> a"> && !is_rule<"a (b (c)) -> a b c">);

// Conflicts name the axis, the factor and the operands.
constexpr auto weight_only = propagate(linear, linearity::each, {{whole3, split(2, 0, 0)}, 2}, mesh);
static_assert(weight_only.why.kind == conflict::disagree && weight_only.why.axis == 0 && weight_only.why.factor == in &&
              weight_only.why.operand == 1 && weight_only.why.other == 0);
constexpr auto two_factors = propagate(linear, linearity::each, {{split(3, 0, 1), split(2, 1, 1)}, 2}, mesh);
static_assert(two_factors.why.kind == conflict::disagree && two_factors.why.axis == 1);  // one axis, two factors
constexpr partition slices5 = split(5, 2, 0);                                            // "three" of b s three h d
static_assert(propagate(qkv, linearity::all, {{slices5}, 1}, mesh).why.kind == conflict::whole_split);
constexpr auto heads = propagate(qkv, linearity::all, {{split(5, 3, 1)}, 1}, mesh);
static_assert(heads.communication_free() && heads.results.size() == 3 && heads.results[2] == split(4, 1, 1));
// Batch over one axis, columns over the other; and both axes over one factor, in one order.
constexpr auto grid = propagate(linear, linearity::each, {{split(3, 0, 0), split(2, 1, 1)}, 2}, mesh);
static_assert(grid.communication_free() && grid.results[0].dims[0].back() == 0 && grid.results[0].dims[2].back() == 1);
static_assert(grid.assigned.factor[0] == first && grid.assigned.factor[1] == out);
static_assert(propagate(add, linearity::all, {{both, both}, 2}, mesh).results[0] == both);
static_assert(propagate(add, linearity::all, {{both_reversed, both_reversed}, 2}, mesh).why.kind ==
              conflict::not_major);
// A product passes one partial operand, not two, nor a partial and a split one along the same axis.
static_assert(propagate(linear, linearity::each, {{owed(3, 1), whole2}, 2}, mesh).results[0] == owed(3, 1));
static_assert(propagate(linear, linearity::each, {{owed(3, 1), owed(2, 1)}, 2}, mesh).why.kind ==
              conflict::partial_operand);
static_assert(propagate(linear, linearity::each, {{owed(3, 1), split(2, 1, 1)}, 2}, mesh).why.kind ==
              conflict::partial_operand);
static_assert(propagate(linear, linearity::each, {{owed(3, 1), split(2, 1, 0)}, 2}, mesh).communication_free());
// A maximum is owed as a maximum, and no addition passes it on.
constexpr auto row_max = propagate(parse("b v -> b; max v"), linearity::none, {{split(2, 1, 1)}, 1}, mesh);
static_assert(row_max.results[0].partial[1] == partition::debt{true, reduction::max});
static_assert(propagate(add, linearity::all, {{largest, largest}, 2}, mesh).why.kind == conflict::partial_operand);

// What an assignment says of operands and results, and whether it may be made.
constexpr assignment by_head = [] {
  assignment a;
  a.factor[1] = static_cast<signed char>(qkv.find("h"));
  return a;
}();
constexpr factor_sizes qkv_sizes{{4, 4, 3, 8, 2}, 5}, few_heads{{4, 4, 3, 2, 8}, 5};
static_assert(operand_partition(qkv, 0, by_head) == split(5, 3, 1) &&
              result_partition(qkv, 0, by_head) == split(4, 1, 1));
static_assert(admissible(qkv, linearity::all, qkv_sizes, by_head, mesh) &&
              !admissible(qkv, linearity::all, few_heads, by_head, mesh));
static_assert(!admissible(qkv, linearity::all, qkv_sizes, assignment{{static_cast<signed char>(qkv.find("three"))}},
                          mesh));

constexpr assignment owing{{assignment::none, assignment::partial}};
static_assert(admissible(qkv, linearity::all, qkv_sizes, owing, mesh) &&
              !admissible(qkv, linearity::none, qkv_sizes, owing, mesh));
static_assert(!admissible(linear, linearity::each, factor_sizes{{4, 4, 4, 4}, 4}, owing, mesh));

// Bytes of the collectives, ring algorithms.
static_assert(bytes_sent(collective_kind::all_reduce, 1200, 4) == 1800 &&
              bytes_sent(collective_kind::all_gather, 1200, 4) == 900);
static_assert(bytes_sent(collective_kind::all_to_all, 1600, 4) == 300 &&
              bytes_sent(collective_kind::reduce_scatter, 1200, 1) == 0);

}  // namespace
