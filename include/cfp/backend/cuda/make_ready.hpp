// Instructions made ready for a GPU: by the kernel of an operator, by one for several operators together, by the matrix
// library.
#pragma once

#include <cfp/backend/cuda/attention/attention.hpp>
#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/backend/cuda/kernel/kernels.hpp>
#include <cfp/backend/cuda/kernel/narrow_kernel.hpp>
#include <cfp/backend/cuda/product/epilogue.hpp>
#include <cfp/backend/places.hpp>

#include <memory>

namespace cfp::inline v0_1::cuda {

/// What the GPUs of all ranks share.
template <class T, class Queue>
struct parts {
  std::shared_ptr<const kernels<T, Queue>> all;
  std::shared_ptr<const fusions> fused;

  /// Kernels of the catalogue, unless others are given.
  explicit parts(std::shared_ptr<const kernels<T, Queue>> k = std::make_shared<const kernels<T, Queue>>())
      : all(std::move(k)), fused(std::make_shared<const fusions>(
                               std::vector<known_chain>(all->chains().begin(), all->chains().end()), sizeof(T) == 2)) {}

  bool has(const op_info& op) const { return all->has(op); }
  target lowered_for() const { return {sizeof(T), &fused->patterns(), &fused->same(), &fusions::walks}; }
};

namespace detail {

/// A Device here also has
///   parts                    what its GPUs share: cuda::parts, or what is made of them
///   prepare(call, epilogue)  a product made ready, or none if the epilogue is not known; throws if the product is not
///   state()                  where kernels read step and pass
template <class Device>
class maker {
  using T = typename Device::number;
  using queue = typename Device::queue;

 public:
  maker(Device& on, const typename Device::parts& with, const places& where)
      : device_(on), parts_(with), where_(where), workspace_(&where.workspace) {}

  ready<queue> make(const instruction& i) {
    if (i.kind == instruction::narrow) return narrow(i);
    if (i.fusion >= 0) return fused(i, where_.p.fusions[static_cast<std::size_t>(i.fusion)]);
    const call c = where_.bound(i);
    if (c.op->op->body == op_body::product)
      return {[made = device_.prepare(c, {})](const queue& q) mutable { made.run(q); }};
    return of_operator(c);
  }

 private:
  ready<queue> of_operator(const call& c) {
    if (!parts_.has(*c.op->op))  // all that the graph lacks are said at once
      throw gpu_kernels_missing(missing_in(where_.g, [this](const op_info& op) { return parts_.has(op); }));
    const kernel_functions<queue> k = parts_.all->find(*c.op->op);
    ready<queue> out;
    if (k.workspace) out.workspace = k.workspace(device_.main(), c);
    out.run = [c, k, state = device_.state(), w = workspace_](const queue& q) { k.run(q, c, {state, *w}); };
    return out;
  }

  ready<queue> narrow(const instruction& i) {
    std::vector<narrow_kernel<T>> all;
    for (int k = 0; k < i.in.size(); ++k)
      all.push_back({static_cast<const float*>(where_[i.in[k]]), where_[i.out[k]], elements(where_.p[i.in[k]].local)});
    return {[all](const queue& q) { launch_many(q, all); }};
  }

  ready<queue> same(const fusion& f) {
    std::vector<call> calls;
    for (const instruction& part : f.parts) calls.push_back(where_.bound(part));
    const many_functions<queue> k = kernels<T, queue>::find_many(*calls[0].op->op);
    ready<queue> out;
    if (k.workspace) out.workspace = k.workspace(calls);
    out.run = [calls, k, state = device_.state(), w = workspace_](const queue& q) { k.run(q, calls, {state, *w}); };
    return out;
  }

  ready<queue> fused(const instruction& i, const fusion& f) {
    if (f.pattern < 0) return same(f);
    const fusions::entry& entry = (*parts_.fused)[f];
    const chain_functions<queue>* const chain =
        entry.chain < 0 ? nullptr : &parts_.all->chains()[static_cast<std::size_t>(entry.chain)];
    if (entry.what == fusions::kind::attention) return attention(f);
    if (entry.what == fusions::kind::product_and_sums) return product_and_sums(f);
    return entry.what == fusions::kind::product ? product(i, f, chain) : of_chain(i, f, *chain);
  }

  // Where a part's first result goes, or null if nothing reads it.
  void* stored(const instruction& i, const instruction& part) const {
    for (const int b : i.out)
      if (where_.p[b].root == where_.p[part.out[0]].root) return where_[b];
    return nullptr;
  }
  void place(chain_call& c, const instruction& i, const fusion& f, const chain_info& info) const {
    for (int x = 0; x < info.inputs; ++x)
      if (f.outside[static_cast<std::size_t>(x)] >= 0) c.input[x].data = where_[f.outside[static_cast<std::size_t>(x)]];
    for (int n = 0; n < info.steps.size(); ++n)
      c.result[n].data = stored(i, f.parts[static_cast<std::size_t>(f.first + n)]);
  }

  ready<queue> of_chain(const instruction& i, const fusion& f, const chain_functions<queue>& functions) {
    chain_call c = *bind_chain(where_.p, where_.g, f, *functions.info, functions.how, where_.rank);
    place(c, i, f, *functions.info);
    ready<queue> out;
    if (functions.workspace) out.workspace = functions.workspace(c);
    out.run = [c, run = functions.run, w = workspace_](const queue& q) { run(q, c, *w); };
    return out;
  }

  ready<queue> attention(const fusion& f) {
    attention_call c = *bind_attention(where_.p, where_.g, f, where_.rank);
    const auto outside = [&](std::size_t n) { return where_[f.outside[n]]; };
    const auto result = [&](std::size_t part) { return where_[f.parts[part].out[0]]; };
    c.q.data = outside(0);
    c.k.data = outside(1);
    c.v.data = outside(2);
    c.max = static_cast<float*>(result(1));
    c.sum = static_cast<float*>(result(2));
    c.out.data = result(4);
    ready<queue> out;
    if (f.first == 0) {
      c.d_out = c.dq = c.dk = c.dv = {};
      if constexpr (sizeof(T) == 2) out.run = [c](const queue& q) { run_attention_forward<T>(q, c); };
      return out;
    }
    c.d_out.data = outside(3);
    c.dv.data = result(6);
    c.dq.data = result(9);
    c.dk.data = result(10);
    out.workspace = attention_workspace(c);
    if constexpr (sizeof(T) == 2)
      out.run = [c, w = workspace_](const queue& q) mutable {
        c.workspace = *w;
        run_attention_backward<T>(q, c);
      };
    return out;
  }

  // By the matrix library alone where it can, else the product first and the rest in place.
  ready<queue> product(const instruction& i, const fusion& f, const chain_functions<queue>* functions) {
    const chain_functions<queue>* const rest = functions ? functions : bias_alone();
    fusion after = f;
    after.first = 1;
    chain_call c = *bind_chain(where_.p, where_.g, after, *rest->info, rest->how, where_.rank);
    place(c, i, after, *rest->info);
    const int last = rest->info->steps.size() - 1;
    call product = bind_call(where_.p, where_.g, f.parts[0], where_.rank);
    for (int o = 0; o < 2; ++o) product.operand[o].data = where_[f.parts[0].in[o]];
    product.result[0].data = c.result[last].data;
    if (const epilogue e = epilogue_of(*rest->info, c); e.any())
      if (auto made = device_.prepare(product, e); made) return {[made](const queue& q) mutable { made.run(q); }};
    for (int n = 0; n <= last; ++n)  // somewhere that holds it until its own element is written
      if (c.result[n].data != nullptr) product.result[0].data = c.result[n].data;
    c.input[0].data = product.result[0].data;
    c.input[0].wide = product.result[0].wide;
    return {[c, made = device_.prepare(product, {}), run = rest->run](const queue& q) mutable {
      made.run(q);
      run(q, c, nullptr);
    }};
  }

  // What a chain does with a product, input 0, as an epilogue, if it is one that there is.
  static epilogue epilogue_of(const chain_info& chain, const chain_call& c) {
    const int last = chain.steps.size() - 1;
    const op_info *const first = chain.steps[0].op, *const then = chain.steps[last].op;
    epilogue e;
    const auto like_result = [&](const chain_tensor& x) {
      bool same = x.wide == c.result[last].wide && x.along == c.result[last].along;
      for (int d = 0; d < c.dims; ++d) same = same && x.stride[d] == c.result[last].stride[d];
      return same;
    };
    if (last == 0 && first != &info<bias_t>) {
      if (!like_result(c.input[1])) return e;
      if (first == &info<add_t>) e.residual = c.input[1];
      else if (first == &info<slope<gelu_t, 0>>) e.slope_at = c.input[1].data;
      return e;
    }
    e.gelu = last == 1 && then == &info<gelu_t>;
    if (e.gelu) e.before_gelu = c.result[0].data;
    else if (last == 1 && then == &info<add_t> && c.result[0].data == nullptr && like_result(c.input[2]))
      e.residual = c.input[2];
    else if (last > 0) return {};
    e.bias = c.input[1];
    return e;
  }

  // The sums of an operand by the product that sums it, else by themselves before it.
  ready<queue> product_and_sums(const fusion& f) {
    const call product = where_.bound(f.parts[1]), sums = where_.bound(f.parts[0]);
    epilogue e;
    e.sums = sums.result[0].data;
    if (auto made = device_.prepare(product, e); made) return {[made](const queue& q) mutable { made.run(q); }};
    ready<queue> out = of_operator(sums);
    out.run = [first = out.run, made = device_.prepare(product, {})](const queue& q) mutable {
      first(q);
      made.run(q);
    };
    return out;
  }

  static void run_bias(const queue& q, const chain_call& c, void*) {
    run_flat<chain<step<bias_t, in<0>, in<1>>>, T>(q, c);
  }
  static const chain_functions<queue>* bias_alone() {
    static const chain_functions<queue> out = [] {
      chain_functions<queue> f;
      f.info = &info_of<chain<step<bias_t, in<0>, in<1>>>>;
      f.run = &run_bias;
      return f;
    }();
    return &out;
  }

  Device& device_;
  const typename Device::parts& parts_;
  const places& where_;
  void* const* workspace_;
};

}  // namespace detail

/// Throws bad_input with the names of all operators of the graph that have no kernel, where this is one.
template <class Device>
ready<typename Device::queue> make_ready(Device& on, const typename Device::parts& with, const places& where,
                                         const instruction& i) {
  return detail::maker<Device>(on, with, where).make(i);
}

}  // namespace cfp::cuda
