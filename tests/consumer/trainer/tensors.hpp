// What one device holds of a tensor, typed by its layout; the way from one layout to another; and the loops of a rule.
//
// A Machine says where memory is and how work is launched: rank(), memory<N>(count) of zeros, each(count, f),
// fetch(x, count) to the host, and all_reduce, all_gather and reduce_scatter as a step says, among the devices of its
// color.
#pragma once

#include "kernels.hpp"

#include <memory>
#include <utility>

namespace trainer {

template <class Layout, class N>
struct tensor {
  static constexpr long size = cfp::elements(Layout::local());
  std::shared_ptr<N> memory;

  tensor() = default;
  explicit tensor(std::shared_ptr<N> where) : memory(std::move(where)) {}
  /// The same tensor by another name; who owes something in between does not compile.
  template <class Other>
  tensor(const tensor<Other, N>& other) : memory(other.memory) {
    static_assert(cfp::owes<Other, Layout>);  // nothing
  }
  N* data() const { return memory.get(); }
};

/// One step. Collectives take and leave the pieces of the devices one behind another; where a piece lies in several
/// runs, those are put in order before a scatter or after a gather.
template <class Mesh, class Machine, class N>
std::shared_ptr<N> take(Machine& machine, const cfp::tensor_step& step, const std::shared_ptr<N>& in) {
  const auto memory = [&](const cfp::extents& sizes) { return machine.template memory<N>(cfp::elements(sizes)); };
  const auto reordered = [&](const std::shared_ptr<N>& from, const cfp::extents& sizes, long major, long minor) {
    if (step.contiguous()) return from;
    auto to = memory(sizes);
    transpose(machine, from.get(), to.get(), major, minor, step.run());
    return to;
  };
  const auto out = memory(step.after);
  if (step.kind == cfp::step_kind::all_reduce) {
    machine.all_reduce(step, in.get(), out.get());
  } else if (step.kind == cfp::step_kind::reduce_scatter) {
    machine.reduce_scatter(step, reordered(in, step.before, step.runs(), step.devices).get(), out.get());
  } else if (step.kind == cfp::step_kind::all_gather) {
    machine.all_gather(step, in.get(), out.get());
    return reordered(out, step.after, step.devices, step.runs());
  } else {
    const long own = step.key(Mesh::shape, machine.rank());
    cut(machine, in.get(), out.get(), step.runs() * step.run(), step.run(), own, step.devices);
  }
  return out;
}

/// From one layout to another, by the steps that are owed: all communication goes through here. With no steps, the
/// result is the same memory.
template <class From, class To, class Machine, class N>
tensor<To, N> convert(Machine& machine, const tensor<From, N>& in) {
  constexpr cfp::step_list way = cfp::steps<From, To>;
  using kind = cfp::step_kind;  // those that are never owed here
  static_assert(way.count(kind::all_to_all) + way.count(kind::mask) + way.count(kind::pad) == 0);
  std::shared_ptr<N> here = in.memory;
  for (const cfp::tensor_step& step : way) here = take<typename From::mesh_type>(machine, step, here);
  return tensor<To, N>(here);
}

template <class Layout>
piece piece_of(int device) {
  piece out{Layout::held.rank()};
  const cfp::extents first = Layout::first(device);
  for (int d = 0; d < out.rank; ++d) {
    out.local[d] = Layout::local()[d];
    out.whole[d] = Layout::dims_type::value.sizes[d];
    out.first[d] = first[d];
  }
  return out;
}

// A factor of the rule runs over a dimension, or over a part of it where the rule tells the parts of a compound one
// apart.
template <class Layout>
void read_operand(const cfp::pattern& written, int operand, loops& by_factor) {
  const cfp::dimensions& dims = Layout::dims_type::value;
  const cfp::extents local = Layout::local();
  long stride = cfp::elements(local);
  for (int k = 0; k < written.factors.size(); ++k) {
    const signed char group = written.group[k];
    const int begin = written.group.find(group), first = dims.first(group);
    const bool alone = k + 1 == written.group.size() || written.group[k + 1] != group;
    long times = local[first + k - begin];
    for (int part = first + 1; begin == k && alone && part < first + dims.count(group); ++part) times *= local[part];
    stride /= times;
    by_factor.times[written.factors[k]] = times;
    by_factor.move[operand][written.factors[k]] = stride;
  }
}
template <class Op, class... In>
loops loops_of() {
  constexpr cfp::rule rule = cfp::bare_rule<Op>;
  loops by_factor, out;
  int operand = 0;
  ((read_operand<In>(rule.operands[operand], operand, by_factor), ++operand), ...);
  const auto push = [&](int f) {
    out.times[out.all] = by_factor.times[f];
    for (int i = 0; i < 2; ++i) out.move[i][out.all] = by_factor.move[i][f];
    ++out.all;
  };
  for (const signed char f : rule.results[0].factors) push(f);
  out.outer = out.all;
  for (int f = 0; f < rule.factors.size(); ++f)
    if (rule.is_reduction(f)) push(f);
  return out;
}

}  // namespace trainer
