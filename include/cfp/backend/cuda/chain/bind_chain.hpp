// Operators of a program that were found to be a chain, bound to its call: rows, sizes and strides.
#pragma once

#include <cfp/backend/cuda/chain/chain_call.hpp>
#include <cfp/program/call.hpp>
#include <cfp/program/program.hpp>

#include <optional>

namespace cfp::inline v0_1::cuda {

namespace detail {

struct chain_binder {
  const program& p;
  const graph& g;
  const fusion& f;
  const chain_info& info;
  mapping how;
  int device;
  chain_call out{};
  std::vector<call> calls{};
  std::vector<list<int, max_factors>> dims{};  // per step: its factors, in the order of a tensor that has all of them
  std::vector<bool> bound{};                   // per input

  const call_tensor& operand(int s, int k) const { return calls[static_cast<std::size_t>(s)].operand[k]; }
  int factor(int s, int d) const { return dims[static_cast<std::size_t>(s)][d]; }
  int depth() const { return dims[0].size(); }
  long size(int d) const { return calls[0].size[factor(0, d)]; }

  bool order(const call& c) {
    const rule& r = c.r();
    const auto take = [&](const pattern& all) {
      if (all.factors.size() != c.factors) return false;
      list<int, max_factors> in_order;
      for (const signed char x : all.factors) in_order.push(x);
      dims.push_back(in_order);
      return true;
    };
    for (const pattern& x : r.operands)
      if (take(x)) return true;
    for (const pattern& x : r.results)
      if (take(x)) return true;
    return false;
  }

  // The strides of a tensor of step s, along the dimensions of the chain.
  chain_tensor tensor(int s, const call_tensor& t) const {
    chain_tensor x;
    x.wide = t.wide;
    for (int d = 0; d + 1 < depth(); ++d) x.stride[d] = t.stride[factor(s, d)];
    x.along = t.stride[factor(s, depth() - 1)];
    return x;
  }
  bool same(const chain_tensor& a, const chain_tensor& b) const {
    for (int d = 0; d + 1 < depth(); ++d)
      if (size(d) > 1 && a.stride[d] != b.stride[d]) return false;
    return a.wide == b.wide && (size(depth() - 1) == 1 || a.along == b.along);
  }

  // What a step reduces must be what the mapping does: along columns all steps reduce (a rule's "..." may be what they
  // do).
  bool reduces_right(int s) const {
    const rule& r = calls[static_cast<std::size_t>(s)].r();
    for (int d = 0; d < depth(); ++d) {
      const bool row = d + 1 == depth(), kept = r.results[0].dim_of(factor(s, d)) >= 0;
      const bool wanted = how == mapping::columns || info.steps[s].gathers ? row : !info.steps[s].reduces || !row;
      if (kept != wanted) return false;
    }
    return true;
  }

  bool bind() {
    out.dims = 0;
    for (int s = 0; s < info.steps.size(); ++s) {
      const instruction& part = f.parts[static_cast<std::size_t>(f.first + s)];
      calls.push_back(bind_call(p, g, part, device));
      if (calls.back().op->results.size() != 1 || calls.back().r().cuts_coordinates() || !order(calls.back()) ||
          dims.back().size() != depth() || depth() == 0 || depth() - 1 > max_rows)
        return false;
      for (int d = 0; d < depth(); ++d)
        if (calls.back().size[factor(s, d)] != size(d) || calls.back().r().factors[factor(s, d)].one_hot) return false;
    }
    bound.resize(static_cast<std::size_t>(info.inputs));
    for (int s = 0; s < info.steps.size(); ++s) {
      if (!reduces_right(s)) return false;
      const call& c = calls[static_cast<std::size_t>(s)];
      out.result[s] = tensor(s, c.result[0]);
      for (int k = 0; k < info.steps[s].sources.size(); ++k) {
        const chain_source from = info.steps[s].sources[k];
        chain_tensor x = tensor(s, operand(s, k));
        if (from.step) {
          if (!same(x, out.result[from.index])) return false;
          continue;
        }
        if (g.at(f.parts[static_cast<std::size_t>(f.first + s)].op).op->index_operand == k) x.wide = true;
        const auto at = static_cast<std::size_t>(from.index);
        if (bound[at] && !same(x, out.input[at])) return false;
        bound[at] = true;
        out.input[at] = x;
      }
      for (int i = 0; i < c.op->op->scalars; ++i) out.scalar[s][i] = static_cast<float>(c.op->scalars[i]);
      for (int i = 0; i < c.r().coordinates.size(); ++i)
        for (int d = 0; d < depth(); ++d)
          if (factor(s, d) == c.r().coordinates[i])
            out.coordinate[s][i] = static_cast<signed char>(d + 1 == depth() ? -1 : d);
    }
    for (int d = 0; d + 1 < depth(); ++d) {
      out.size[d] = size(d);
      out.start[d] = calls[0].start[factor(0, d)];
    }
    out.dims = depth() - 1;
    out.length = size(depth() - 1);
    out.first = calls[0].start[factor(0, depth() - 1)];
    for (int i = 0; i < info.inputs; ++i)
      if (how == mapping::rows && info.one_per_row(i) && out.length > 1 && out.input[i].along != 0) return false;
    merge();
    return true;
  }

  bool is_read(int d) const {
    for (int s = 0; s < info.steps.size(); ++s)
      for (int i = 0; i < calls[static_cast<std::size_t>(s)].r().coordinates.size(); ++i)
        if (out.coordinate[s][i] == d) return true;
    return false;
  }
  // Neighbouring dimensions of rows that all tensors walk evenly become one.
  void merge() {
    for (int d = out.dims - 2; d >= 0; --d) {
      bool even = !is_read(d) && !is_read(d + 1);
      const auto check = [&](const chain_tensor& x) {
        even = even && x.stride[d] == x.stride[d + 1] * out.size[d + 1];
      };
      for (int i = 0; i < info.inputs; ++i) check(out.input[i]);
      for (int s = 0; s < info.steps.size(); ++s) check(out.result[s]);
      if (!even) continue;
      const auto drop = [&](long* x) {
        for (int k = d; k + 1 < out.dims; ++k) x[k] = x[k + 1];
      };
      const long both = out.size[d] * out.size[d + 1];
      drop(out.size);
      drop(out.start);
      out.size[d] = both;
      for (int i = 0; i < info.inputs; ++i) drop(out.input[i].stride);
      for (int s = 0; s < info.steps.size(); ++s) {
        drop(out.result[s].stride);
        for (signed char& c : out.coordinate[s]) c = static_cast<signed char>(c > d ? c - 1 : c);
      }
      --out.dims;
    }
  }
};

}  // namespace detail

/// Nothing if the shapes are not those of rows. Pointers are left to the caller.
inline std::optional<chain_call> bind_chain(const program& p, const graph& g, const fusion& f, const chain_info& info,
                                            mapping how, int device) {
  detail::chain_binder b{p, g, f, info, how, device};
  if (!b.bind()) return std::nullopt;
  return b.out;
}

}  // namespace cfp::cuda
