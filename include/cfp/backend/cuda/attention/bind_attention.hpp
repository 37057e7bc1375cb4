// Operators of a program that were found to be attention, bound to its call.
#pragma once

#include <cfp/backend/cuda/attention/attention_call.hpp>
#include <cfp/op/attention.hpp>
#include <cfp/op/softmax.hpp>
#include <cfp/program/call.hpp>
#include <cfp/program/fuse.hpp>

#include <algorithm>
#include <optional>

namespace cfp::inline v0_1::cuda {

// From outside: 0 queries, 1 keys, 2 values, 3 the gradient of the result.
inline std::vector<fusion_part> attention_parts(bool backward) {
  std::vector<fusion_part> out{{nullptr, {{0, 1}, 2}},
                               {&info<masked_max_t>, {{~0}, 1}},
                               {&info<masked_sum_t>, {{~0, ~1}, 2}},
                               {&info<masked_softmax_t>, {{~0, ~1, ~2}, 3}},
                               {nullptr, {{~3, 2}, 2}}};
  if (!backward) return out;
  out.insert(out.end(), {{nullptr, {{3, 2}, 2}},
                         {nullptr, {{3, ~3}, 2}},
                         {&info<cfp::detail::softmax_dot_t>, {{~5, ~3}, 2}},
                         {&info<cfp::detail::masked_input_t>, {{~5, ~3, ~7}, 3}},
                         {nullptr, {{~8, 1}, 2}},
                         {nullptr, {{~8, 0}, 2}}});
  return out;
}

namespace detail {

struct attention_binder {
  const program& p;
  const graph& g;
  const fusion& f;
  int device;
  attention_call out{};
  int batches = 0;  // factors that a batch is made of: tokens may go in groups of sequences
  bool grouped = false, fits = true;

  call call_of(int part) const { return bind_call(p, g, f.parts[static_cast<std::size_t>(part)], device); }

  // The size of the factors of a tensor from number `first` on, or 0 if they do not follow one another. (A rotary
  // embedding cuts the depth.)
  static long depth_of(const call& c, const call_tensor& t, const pattern& dims, int first) {
    long n = 1;
    for (int d = dims.factors.size() - 1; d >= first; --d) {
      if (t.stride[dims.factors[d]] != n && c.size[dims.factors[d]] > 1) return 0;
      n *= c.size[dims.factors[d]];
    }
    return n;
  }

  // How far the next one of all batches is: as far everywhere.
  long batch_stride(const call& c, const call_tensor& t, const pattern& dims) {
    long stride = 0, n = 1;
    for (int d = batches - 1; d >= 0; --d) {
      const long size = c.size[dims.factors[d]], far = t.stride[dims.factors[d]];
      if (size == 1) continue;
      if (n == 1) stride = far;
      fits = fits && far == n * stride;
      n *= size;
    }
    fits = fits && n == out.batch;
    return stride;
  }

  // A tensor of batch, heads, [group,] rows and depth, in this order.
  attention_tensor tensor(const call& c, const call_tensor& t, const pattern& dims, bool of_queries) {
    const bool with_group = of_queries && grouped;
    const int rows = batches + 1 + with_group;  // where they stand
    attention_tensor x;
    fits = fits && !t.wide && dims.factors.size() > rows + 1 && depth_of(c, t, dims, rows + 1) == out.depth;
    if (!fits) return x;
    const auto take = [&](int d, long size, long& stride) {
      fits = fits && c.size[dims.factors[d]] == size;
      stride = t.stride[dims.factors[d]];
    };
    x.batch = batch_stride(c, t, dims);
    take(batches, out.heads, x.head);
    if (with_group) take(batches + 1, out.group, x.group);
    take(rows, of_queries ? out.queries : out.keys, x.row);
    return x;
  }

  bool bind() {
    const call scores = call_of(0), max = call_of(1), sum = call_of(4);
    const rule& r = scores.r();
    const pattern &q = r.operands[0], &k = r.operands[1];
    const auto of_scores = [&](const pattern& x) {
      return static_cast<int>(
          std::count_if(x.factors.begin(), x.factors.end(), [&](int i) { return r.results[0].dim_of(i) >= 0; }));
    };
    batches = of_scores(k) - 2;
    grouped = of_scores(q) == batches + 3;
    if (batches < 1 || (of_scores(q) != batches + 2 && !grouped) || max.r().coordinates.size() != 2 ||
        max.r().cuts_coordinates())
      return false;
    const auto size = [&](const pattern& of, int d) { return scores.size[of.factors[d]]; };
    for (int b = 0; b < batches; ++b) out.batch *= size(k, b);
    out.heads = size(k, batches), out.keys = size(k, batches + 1);
    out.depth = depth_of(scores, scores.operand[1], k, batches + 2);
    out.group = grouped ? size(q, batches + 1) : 1;
    out.queries = size(q, batches + 1 + grouped);
    out.first_query = max.start[max.r().coordinates[0]];
    out.first_key = max.start[max.r().coordinates[1]];
    out.scale = max.op->scalars[0];
    out.reach = max.op->scalars[1];
    out.q = tensor(scores, scores.operand[0], q, true);
    out.k = tensor(scores, scores.operand[1], k, false);
    out.v = tensor(sum, sum.operand[1], sum.r().operands[1], false);
    out.out = tensor(sum, sum.result[0], sum.r().results[0], true);
    if (f.parts.size() > 5) {
      const call share = call_of(5), dv = call_of(6), dq = call_of(9), dk = call_of(10);
      out.d_out = tensor(share, share.operand[0], share.r().operands[0], true);
      out.dv = tensor(dv, dv.result[0], dv.r().results[0], false);
      out.dq = tensor(dq, dq.result[0], dq.r().results[0], true);
      out.dk = tensor(dk, dk.result[0], dk.r().results[0], false);
    }
    return fits && attention_fits(out);
  }
};

}  // namespace detail

/// Nothing if there is no kernel for these shapes. Pointers are left to the caller.
inline std::optional<attention_call> bind_attention(const program& p, const graph& g, const fusion& f, int device) {
  detail::attention_binder b{p, g, f, device};
  if (!b.bind()) return std::nullopt;
  return b.out;
}

}  // namespace cfp::cuda
