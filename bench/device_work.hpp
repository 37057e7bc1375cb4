// What bench_device asks of a GPU, done by `device_bench::gpu<T>`, which who includes this has declared.
#pragma once

#include <cfp/profile/work.hpp>
#include <cfp/program/lower.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

namespace device_bench {

namespace {

using cfp::bf16;
using cfp::cuda::check;

using stopwatch = cfp::stopwatch<gpu<bf16>>;

// Fills numbers of 16 bits at random: values that no product overflows, of all mantissas (a GPU is faster on zeros).
struct fill_random {
  static constexpr int threads = 256;
  std::uint16_t* to;
  long count;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    for (long i = t.block() * threads + t.thread(); i < count; i += t.blocks() * threads) {
      std::uint64_t x = static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15u;
      x ^= x >> 29;
      x *= 0xbf58476d1ce4e5b9u;
      to[i] = static_cast<std::uint16_t>(0x3f00u | (x >> 40 & 0x80ffu));  // about +-0.5 to 1
    }
  }
};

// Copies 16 bytes at a time.
struct copy_all {
  static constexpr int threads = 256;
  struct alignas(16) sixteen {
    std::uint64_t x, y;
  };
  sixteen* to;
  const sixteen* from;
  long count;
  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    for (long i = t.block() * threads + t.thread(); i < count; i += t.blocks() * threads) to[i] = from[i];
  }
};

// A product of two matrices as an operation, for the library.
struct product_of {
  cfp::graph g;
  cfp::call c;
  product_of(long rows, long columns, long sums) {
    cfp::operation o;
    o.op = &cfp::info<cfp::linear_t>;
    o.r = cfp::parse("m k, k n -> m n");
    for (int f = 0; f < o.r.factors.size(); ++f) {
      const std::string_view label = o.r.factors[f].label.view();
      o.sizes[f] = label == "m" ? rows : label == "n" ? columns : sums;
    }
    g.operations.push_back(o);
    cfp::program p;
    p.mesh.axes.push({"one", 1});
    for (int b = 0; b < 3; ++b) p.buffers.emplace_back();
    cfp::instruction i;
    i.op = 0;
    for (signed char& f : i.assigned.factor) f = -1;
    i.in.push(0);
    i.in.push(1);
    i.out.push(2);
    c = cfp::bind_call(p, g, i, 0);
    c.op = &g.operations[0];
  }
};

// Bytes that an instruction reads of operand k: of a table that indices point into only what they point at.
double touched(const cfp::program& p, const cfp::graph& g, const cfp::instruction& i, int k) {
  const double all = static_cast<double>(p[i.in[k]].bytes);
  if (i.kind != cfp::instruction::compute || i.fusion >= 0) return all;
  const cfp::operation& o = g.at(i.op);
  const int index = o.op->index_operand;
  if (index < 0 || k == index) return all;
  const cfp::call bound = cfp::bind_call(p, g, i, 0);
  double elements = 1, points = 1;
  bool is_table = false;
  for (int f = 0; f < o.r.factors.size(); ++f) {
    const bool held = o.r.operands[k].dim_of(f) >= 0;
    const double size = static_cast<double>(bound.size[f]);
    if (held) elements *= size;
    if (held && o.r.factors[f].one_hot) is_table = true;
    else if (held || o.r.operands[index].dim_of(f) >= 0) points *= size;
  }
  return is_table ? all * std::min(1.0, points / elements) : all;
}

// What a program is made ready with; it must be fused before it runs.
template <class T>
struct prepared {
  const typename gpu<T>::parts shared{};
  cfp::program p;
  const cfp::graph& g;
  gpu<T> device{shared};
  cfp::engine<gpu<T>> run;

  prepared(const cfp::program& given, const cfp::graph& of, std::uint64_t seed)
      : p(fused(given, of)), g(of), run(p, g, device, seed) {}
  cfp::program fused(cfp::program q, const cfp::graph& of) const {
    shared.lowered_for().complete(q, of);
    return q;
  }
  void step(long number, const cfp::batch& data) {
    run.step(number, p.passes, [&](int) {
      for (int v = 0; v < g.value_count(); ++v)
        if (g[v].role == cfp::value_role::input)
          std::visit([&](const auto& x) { run.give(v, std::span(x)); }, data.at(std::string(g[v].label.view())));
    });
  }
};

}  // namespace

ceilings measure_ceilings(const sizes& of) {
  gpu<bf16> g;
  stopwatch watch(g);
  ceilings out;
  const gpu<bf16>::memory memory(g);
  const long bytes = of.copied_bytes;
  {
    const auto from = memory.allocate(bytes), to = memory.allocate(bytes);
    g.main().launch(fill_random{reinterpret_cast<std::uint16_t*>(from.get()), bytes / 2}, 4096);
    const copy_all kernel{reinterpret_cast<copy_all::sixteen*>(to.get()),
                          reinterpret_cast<const copy_all::sixteen*>(from.get()), bytes / 16};
    const double library = watch.warm([&] { g.mover(g.main()).copy(to.get(), from.get(), bytes); }, of.ceiling).ms,
                 own = watch.warm([&] { g.main().launch(kernel, std::min(bytes / 4096, 65536l)); }, of.ceiling).ms;
    out.copy_GBps = 2.0 * static_cast<double>(bytes) / std::min(library, own) / 1e6;
  }
  const long n = of.matrix;
  const auto a = memory.allocate(n * n * 2), b = memory.allocate(n * n * 2), c = memory.allocate(n * n * 2);
  for (const auto* x : {&a, &b}) g.main().launch(fill_random{reinterpret_cast<std::uint16_t*>(x->get()), n * n}, 4096);
  product_of p(n, n, n);
  p.c.operand[0].data = a.get();
  p.c.operand[1].data = b.get();
  p.c.result[0].data = c.get();
  const auto product = g.prepare(p.c, {});
  g.settle();
  const timing t = watch.warm([&] { product.run(g.main()); }, of.ceiling);
  out.bf16_TFLOPs = 2.0 * std::pow(static_cast<double>(n), 3) / t.ms / 1e9;
  return out;
}

double measure_host_rate(const sizes& of) {
  gpu<bf16> g;
  stopwatch watch(g);
  const gpu<bf16>::memory memory(g);
  const long bytes = of.copied_bytes / 4;
  const auto here = memory.allocate(bytes);
  const auto there = memory.allocate_on_host(bytes);
  const double in = watch.warm([&] { g.mover(g.main()).copy(here.get(), there.get(), bytes); }, of.each).ms,
               out = watch.warm([&] { g.mover(g.main()).copy(there.get(), here.get(), bytes); }, of.each).ms;
  return static_cast<double>(bytes) / std::max(in, out) / 1e6;
}

std::vector<instruction_figure> time_instructions(const cfp::program& given, const cfp::graph& g, const sizes& of) {
  prepared<bf16> x(given, g, 7);
  stopwatch watch(x.device);
  x.device.set(1);
  x.device.set_pass(0, true);
  x.run.issue(0, x.p.code.size(), false);  // data as in a step, and libraries ready
  x.device.wait();
  std::vector<instruction_figure> out;
  for (std::size_t i = 0; i < x.p.code.size(); ++i) {
    const cfp::instruction& c = x.p.code[i];
    if (c.nothing || (c.communicates())) continue;
    instruction_figure f;
    const cfp::fusion* const fused = c.fusion >= 0 ? &x.p.fusions[static_cast<std::size_t>(c.fusion)] : nullptr;
    f.label = c.kind == cfp::instruction::narrow    ? "narrow"
              : c.kind == cfp::instruction::reshard ? std::string(cfp::step_names[c.step.kind])
                                                    : "";
    f.kind = f.label.empty() ? "map" : "conversion";
    const cfp::instruction* product = nullptr;
    const auto add = [&](const cfp::instruction& part) {
      const auto& op = *g.at(part.op).op;
      f.label += (f.label.empty() ? "" : "+") + std::string(op.label);
      if (op.body != cfp::op_body::product) return;
      product = &part;
      double flops = 2;
      const cfp::call bound = cfp::bind_call(x.p, g, part, 0);
      for (int k = 0; k < bound.factors; ++k) flops *= static_cast<double>(bound.size[k]);
      f.flops += flops;
    };
    if (c.kind == cfp::instruction::compute) {
      if (fused && fused->pattern < 0) f.label = std::to_string(fused->parts.size()) + " " + std::string(fused->label);
      else if (fused)
        for (int part = fused->first; part < fused->end; ++part) add(fused->parts[static_cast<std::size_t>(part)]);
      else add(c);
    }
    for (int k = 0; k < c.in.size(); ++k) f.bytes += touched(x.p, g, c, k);
    for (const int b : c.out) f.bytes += static_cast<double>(x.p[b].bytes);
    if (fused && fused->label == "attention") {
      f.kind = "attention";
      f.flops /= 2;                                // causal: half of the scores
      if (fused->first > 0) f.flops *= 5.0 / 4.0;  // backward computes the scores again
    } else if (product) {
      f.kind = "product";
      const cfp::matrix_product m = cfp::as_matrices(cfp::bind_call(x.p, g, *product, 0));
      f.rows = m.rows, f.columns = m.columns, f.sums = m.sums;
    }
    const auto issue = [&] { x.run.issue(i, i + 1, false); };
    f.cold = watch.cold(issue, of.each);
    f.warm = watch.warm(issue, of.each);
    if (f.kind == "product") {
      cfp::call alone = cfp::bind_call(x.p, g, *product, 0);
      const gpu<bf16>::memory memory(x.device);
      gpu<bf16>::memory::block held[3];
      const int buffers[] = {product->in[0], product->in[1], product->out[0]};
      for (std::size_t o = 0; o < 3; ++o) {
        const long bytes = x.p[buffers[o]].bytes;
        held[o] = memory.allocate(bytes);
        x.device.main().launch(fill_random{reinterpret_cast<std::uint16_t*>(held[o].get()), bytes / 2}, 4096);
      }
      for (int o = 0; o < 2; ++o) alone.operand[o].data = held[o].get();
      alone.result[0].data = held[2].get();
      const auto made = x.device.prepare(alone, {});
      for (int which = 0; made.run_suggestion(x.device.main(), which); ++which) {
        const double ms = watch.warm([&] { made.run_suggestion(x.device.main(), which); }, of.suggestion).ms;
        if (which == 0 || ms < f.best_ms) f.best_ms = ms;
      }
    }
    out.push_back(f);
  }
  return out;
}

step_figure time_steps(const cfp::program& p, const cfp::graph& g, int steps, const cfp::batch_source& data) {
  prepared<bf16> x(p, g, 1);
  step_figure out;
  out.instructions = x.p.code.size();
  out.memory_bound_GB = cfp::memory_bound_traffic(x.p, g) / 1e9;
  out.refused_epilogues = x.device.refused_epilogues();
  std::vector<double> ms;
  for (long s = 1; s <= steps + 3; ++s) {
    const cfp::batch read = data(s);
    const auto begin = std::chrono::steady_clock::now();
    x.step(s, read);
    const double now = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    out.loss.push_back(x.run.loss());
    if (s <= 3) continue;
    ms.push_back(now);
    const double MHz = x.device.clock_MHz();
    out.most_MHz = std::max(out.most_MHz, MHz);
    out.least_MHz = s == 4 ? MHz : std::min(out.least_MHz, MHz);
  }
  out.peak_bytes = x.device.use().peak;
  out.beside_bytes = x.device.beside_bytes(x.p, g, 0);
  const cfp::measurement m = cfp::summarise(ms);
  out.step = {m.median, m.spread, m.repeats};
  return out;
}

std::vector<double> losses(const cfp::program& p, const cfp::graph& g, bool in_bf16, int steps, std::uint64_t seed,
                           const cfp::batch_source& data) {
  std::vector<double> out;
  const auto go = [&](auto& x) {
    for (long s = 1; s <= steps; ++s) {
      x.step(s, data(s));
      out.push_back(x.run.loss());
    }
  };
  if (in_bf16) {
    prepared<bf16> x(p, g, seed);
    go(x);
  } else {
    prepared<float> x(p, g, seed);
    go(x);
  }
  return out;
}

}  // namespace device_bench
