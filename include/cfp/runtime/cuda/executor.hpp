// Runs a lowered program on one GPU: the same program as on the host, its operators fused where there are kernels for it.
//
// A Device is the GPU of a rank (device.cuh; tests have one that a CPU emulates). It has
//   queue, memory, product        types: launches kernels; see host::memory; a contraction made ready
//   rank()                        of this rank
//   main(), side()                queues, in order each
//   mover(queue), among(axis, queue)  see host_mover; the communicator of a mesh axis, its calls in that queue
//   prepare(call, epilogue)       a product
//   set(step, pass), state()      what kernels read of the step
//   mark(n, queue), meet(n, queue)  the queue goes on once the other has come to mark n
//   record(issue), replay(graph)  what is issued once, and again; a device that cannot gives a null graph
//   wait()                        for both queues, with a deadline
#pragma once

#include <cfp/runtime/conversion.hpp>
#include <cfp/runtime/cuda/attention.hpp>
#include <cfp/runtime/cuda/epilogue.hpp>
#include <cfp/runtime/cuda/fusions.hpp>
#include <cfp/runtime/cuda/step_state.hpp>
#include <cfp/runtime/host/rank_memory.hpp>
#include <cfp/runtime/schedule.hpp>
#include <cfp/runtime/target.hpp>

#include <functional>
#include <memory>
#include <stdexcept>

namespace cfp::inline v0_1::cuda {

/// What programs for GPUs with these kernels are lowered for.
template <class T, class Queue>
target target_of(const fusions<T, Queue>& f) {
  return {sizeof(T), &f.patterns()};
}

/// What a GPU alone, in the place of a rank, has for a communicator.
struct nobody {
  template <class... Arguments>
  void all_reduce(Arguments...) const { refuse(); }
  template <class... Arguments>
  void all_gather(Arguments...) const { refuse(); }
  template <class... Arguments>
  void reduce_scatter(Arguments...) const { refuse(); }
  template <class... Arguments>
  void all_to_all(Arguments...) const { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("a GPU alone has nobody for a collective"); }
};

/// `T` is what numbers are stored as; wide ones as float.
template <class T, class Device>
class executor {
  using queue = typename Device::queue;

 public:
  /// `p` must have its memory planned and outlive this, as must the others. `f` is what it was fused with. Allocates all memory there is.
  executor(const program& p, const graph& g, const kernels<T, queue>& k, const fusions<T, queue>& f, Device& device, std::uint64_t seed)
      : program_(p), graph_(g), kernels_(k), fusions_(f), device_(device), seed_(seed), memory_(p, g, device.rank(), seed, typename Device::memory(device)) {
    const stream_order order = order_of(p);
    long workspace = 0;
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      step s;
      s.code = &p.code[i];
      s.waits_for = order.waits_for[i];
      s.marks = p.code[i].beside;
      prepare(s);
      workspace = std::max(workspace, s.workspace);
      steps_.push_back(std::move(s));
    }
    workspace_ = typename Device::memory(device).allocate(workspace);
  }

  /// Runs one step of the program; `number` counts optimizer steps from 1. `feed(pass)` sets the inputs of each micro-batch.
  template <class Feed>
  void run(long number, Feed&& feed) {
    const auto first = static_cast<std::size_t>(program_.begin), end = static_cast<std::size_t>(program_.end);
    device_.set(number, 0);
    run_range(0, 0, first);
    loss_ = 0;
    for (int pass = 0; pass < program_.passes; ++pass) {
      feed(pass);
      device_.set(number, pass);
      run_range(1, first, end);
      if (program_.loss < 0) continue;
      device_.wait();
      loss_ += memory_.loss() / program_.passes;
    }
    run_range(2, end, steps_.size());
    device_.wait();
    ++runs_;
  }
  void run(long number) { run(number, [](int) {}); }

  /// The loss of the last run (complete on every rank): the mean over its micro-batches.
  double loss() const { return loss_; }

  host::rank_memory<T, typename Device::memory>& memory() { return memory_; }

  /// Puts instructions [from, to) into the device's queues, as a step does: for measuring. Collectives only if so said.
  void issue(std::size_t from, std::size_t to, bool collectives = true) {
    int last = -1;
    for (std::size_t i = from; i < to; ++i) {
      const step& s = steps_[i];
      if (s.marks) {
        if (!collectives) continue;
        device_.mark(0, device_.main());
        device_.meet(0, device_.side());
        s.run(device_.side());
        last = static_cast<int>(i) + 1;
        device_.mark(last, device_.side());
        continue;
      }
      if (s.waits_for >= 0 && collectives) device_.meet(s.waits_for + 1, device_.main());
      if (s.run && (collectives || s.code->kind != instruction::reshard || !s.code->step.communicates())) s.run(device_.main());
    }
    if (last >= 0) device_.meet(last, device_.main());
  }

 private:
  struct step {
    const instruction* code = nullptr;
    std::function<void(const queue&)> run{};  // none: the result is there
    long workspace = 0;
    int waits_for = -1;
    bool marks = false;  // runs beside
  };

  // The first time as it is: libraries make themselves ready. Then recorded, from then on replayed.
  void run_range(int which, std::size_t from, std::size_t to) {
    if (from == to) return;
    auto& graph = graphs_[which];
    if (!graph && runs_ > 0) graph = device_.record([&] { issue(from, to); });
    if (graph) device_.replay(graph);
    else issue(from, to);
  }

  void prepare(step& s) {
    const instruction& i = *s.code;
    if (i.nothing) return;
    if (i.kind == instruction::narrow) return prepare_narrow(s);
    if (i.kind == instruction::reshard) {
      s.run = [this, &i](const queue& q) { convert(i, q); };
      return;
    }
    if (i.fusion >= 0) {
      const fusion& f = program_.fusions[static_cast<std::size_t>(i.fusion)];
      const auto& entry = fusions_[f];
      using kind = typename fusions<T, queue>::kind;
      if (entry.what == kind::attention) prepare_attention(s, f);
      else if (entry.what == kind::product) prepare_product(s, f, entry.chain);
      else prepare_chain(s, f, *entry.chain);
      return;
    }
    const call c = bound(i);
    if (c.op->op->body == op_body::product) {
      s.run = [made = device_.prepare(c, {})](const queue& q) mutable { made.run(q); };
      return;
    }
    const kernel_functions<queue> k = kernels_.find(*c.op->op);
    if (k.workspace) s.workspace = k.workspace(device_.main(), c);
    s.run = [this, c, k](const queue& q) { k.run(q, c, {device_.state(), workspace_.get()}); };
  }

  call bound(const instruction& i) const {
    call c = bind_call(program_, graph_, i, device_.rank());
    c.passes = program_.passes;
    c.seed = seed_;
    for (int o = 0; o < i.in.size(); ++o) c.operand[o].data = memory_[i.in[o]];
    for (int o = 0; o < i.out.size(); ++o) c.result[o].data = memory_[i.out[o]];
    return c;
  }

  void prepare_narrow(step& s) {
    using copy = chain<cuda::step<copy_t, in<0>>>;
    chain_call c;
    c.length = elements(program_[s.code->in[0]].local);
    c.input[0].data = memory_[s.code->in[0]];
    c.input[0].wide = true;
    c.result[0].data = memory_[s.code->out[0]];
    c.input[0].along = c.result[0].along = 1;
    s.run = [c](const queue& q) { run_flat<copy, T>(q, c); };
  }

  // Where a part's first result goes, or null if nothing reads it.
  void* stored(const instruction& i, const instruction& part) const {
    for (const int b : i.out)
      if (program_[b].root == program_[part.out[0]].root) return memory_[b];
    return nullptr;
  }
  void place(chain_call& c, const instruction& i, const fusion& f, const chain_info& info) const {
    for (int x = 0; x < info.inputs; ++x)
      if (f.outside[static_cast<std::size_t>(x)] >= 0) c.input[x].data = memory_[f.outside[static_cast<std::size_t>(x)]];
    for (int n = 0; n < info.steps.size(); ++n) c.result[n].data = stored(i, f.parts[static_cast<std::size_t>(f.first + n)]);
  }

  void prepare_chain(step& s, const fusion& f, const chain_functions<queue>& functions) {
    chain_call c = *bind_chain(program_, graph_, f, *functions.info, functions.how, device_.rank());
    place(c, *s.code, f, *functions.info);
    if (functions.workspace) s.workspace = functions.workspace(c);
    s.run = [this, c, run = functions.run](const queue& q) { run(q, c, workspace_.get()); };
  }

  void prepare_attention(step& s, const fusion& f) {
    attention_call c = *bind_attention(program_, graph_, f, device_.rank());
    const auto outside = [&](std::size_t n) { return memory_[f.outside[n]]; };
    const auto result = [&](std::size_t part) { return memory_[f.parts[part].out[0]]; };
    c.q.data = outside(0);
    c.k.data = outside(1);
    c.v.data = outside(2);
    c.max = static_cast<float*>(result(1));
    c.sum = static_cast<float*>(result(2));
    c.out.data = result(4);
    if (f.first == 0) {
      c.d_out = c.dq = c.dk = c.dv = {};
      if constexpr (sizeof(T) == 2) s.run = [c](const queue& q) { run_attention_forward<T>(q, c); };
      return;
    }
    c.d_out.data = outside(3);
    c.dv.data = result(6);
    c.dq.data = result(9);
    c.dk.data = result(10);
    s.workspace = attention_workspace(c);
    if constexpr (sizeof(T) == 2)
      s.run = [this, c](const queue& q) mutable {
        c.workspace = workspace_.get();
        run_attention_backward<T>(q, c);
      };
  }

  // By the matrix library alone where it can, else the product first and the rest in place.
  void prepare_product(step& s, const fusion& f, const chain_functions<queue>* functions) {
    const chain_functions<queue>* const rest = functions ? functions : bias_alone();
    fusion after = f;
    after.first = 1;
    chain_call c = *bind_chain(program_, graph_, after, *rest->info, rest->how, device_.rank());
    place(c, *s.code, after, *rest->info);
    const int last = rest->info->steps.size() - 1;
    call product = bind_call(program_, graph_, f.parts[0], device_.rank());
    for (int o = 0; o < 2; ++o) product.operand[o].data = memory_[f.parts[0].in[o]];
    product.result[0].data = c.result[last].data;
    epilogue e;
    e.bias = c.input[1];
    e.gelu = last > 0 && rest->info->steps[last].op == &info<gelu_t>;
    if (e.gelu) e.before_gelu = c.result[0].data;
    else if (last > 0) e.residual = c.input[2];
    const bool known = last == 0 || e.gelu || (rest->info->steps[last].op == &info<add_t> && c.result[0].data == nullptr);
    if (known)
      if (auto made = device_.prepare(product, e); made) {
        s.run = [made](const queue& q) mutable { made.run(q); };
        return;
      }
    for (int n = 0; n <= last; ++n)  // somewhere that holds it until its own element is written
      if (c.result[n].data != nullptr) product.result[0].data = c.result[n].data;
    c.input[0].data = product.result[0].data;
    c.input[0].wide = product.result[0].wide;
    s.run = [c, made = device_.prepare(product, {}), run = rest->run](const queue& q) mutable {
      made.run(q);
      run(q, c, nullptr);
    };
  }

  static const chain_functions<queue>* bias_alone() {
    using bias = chain<cuda::step<bias_t, in<0>, in<1>>>;
    static const chain_functions<queue> out{&info_of<bias>, mapping::flat, [](const queue& q, const chain_call& c, void*) { run_flat<bias, T>(q, c); }, nullptr};
    return &out;
  }

  void convert(const instruction& i, const queue& q) {
    switch (program_[i.in[0]].type) {
      case element::real: return convert_as<T>(i, q);
      case element::wide: return convert_as<float>(i, q);
      case element::index: throw std::logic_error("indices are given in every partition and never converted");
    }
  }
  template <class U>
  void convert_as(const instruction& i, const queue& q) {
    const auto at = [&](int k) { return k < i.out.size() ? static_cast<U*>(memory_[i.out[k]]) : nullptr; };
    run_conversion<U>(device_.mover(q), i.step, program_[i.in[0]], program_[i.out[0]], static_cast<U*>(memory_[i.in[0]]), at(0), at(1), at(2), program_.mesh, device_.rank(),
                      device_.among(i.step.axis, q));
  }

  const program& program_;
  const graph& graph_;
  const kernels<T, queue>& kernels_;
  const fusions<T, queue>& fusions_;
  Device& device_;
  std::uint64_t seed_;
  host::rank_memory<T, typename Device::memory> memory_;
  typename Device::memory::block workspace_;
  std::vector<step> steps_;
  decltype(std::declval<Device&>().record(std::declval<std::function<void()>>())) graphs_[3] = {};
  long runs_ = 0;
  double loss_ = 0;
};

}  // namespace cfp::cuda
