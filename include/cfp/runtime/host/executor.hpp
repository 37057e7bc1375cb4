// Runs a lowered program on one CPU rank.
#pragma once

#include <cfp/runtime/host/conversion_kernel.hpp>
#include <cfp/runtime/host/fill.hpp>
#include <cfp/runtime/host/kernels.hpp>
#include <cfp/runtime/host/numbers.hpp>
#include <cfp/runtime/host/run_ranks.hpp>
#include <cfp/runtime/host/side_stream.hpp>
#include <cfp/runtime/memory.hpp>

#include <chrono>
#include <memory>

#include <sys/mman.h>

namespace cfp::inline v0_1::host {

/// Seconds a rank spent in kernels and in conversions, waiting included.
struct time_spent {
  double kernels = 0, conversions = 0, total = 0;
  double passes = 0;  ///< of the total, in what runs once per micro-batch
};

/// `T` is what numbers are stored as; wide ones as float at least. `Rank` is the context of a rank: of a thread, of a process.
template <class T, class Rank = rank_context>
class executor {
  using wide = wide_t<T>;
  struct prepared {
    const instruction* code = nullptr;
    void (*run)(const call&) = nullptr;
    int waits_for = -1;  ///< a collective beside
    call bound;
  };

 public:
  /// What it keeps beside the planned memory.
  static constexpr std::size_t bytes_per_instruction = sizeof(prepared) + sizeof(double) + sizeof(long) + sizeof(int);

  /// `p` must have its memory planned and outlive this, as must `g`. Allocates the arena and what persists.
  executor(const program& p, const graph& g, const kernels<T>& k, Rank& rank, std::uint64_t seed)
      : program_(p), graph_(g), rank_(rank) {
    openblas_set_num_threads(1);
    arena_ = allocate(p.arena_bytes);
    memory_.resize(p.buffers.size(), nullptr);
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      const buffer& x = p.buffers[b];
      if (x.root != static_cast<int>(b)) continue;
      if (!x.persistent) {
        memory_[b] = x.offset < 0 ? nullptr : arena_.get() + x.offset;
        continue;
      }
      persistent_.push_back(allocate(x.bytes));
      memory_[b] = persistent_.back().get();
      fill(x, memory_[b], seed);
    }
    for (std::size_t b = 0; b < p.buffers.size(); ++b) memory_[b] = memory_[static_cast<std::size_t>(p.buffers[b].root)];
    steps_.reserve(p.code.size());
    last_.resize(p.code.size());
    for (const instruction& i : p.code) {
      prepared s;
      s.code = &i;
      if (i.kind == instruction::compute) {
        s.bound = bind_call(p, g, i, rank.rank);
        s.bound.passes = p.passes;
        s.bound.seed = seed;
        for (int o = 0; o < i.in.size(); ++o) s.bound.operand[o].data = memory(i.in[o]);
        for (int o = 0; o < i.out.size(); ++o) s.bound.result[o].data = memory(i.out[o]);
        if (!i.nothing) s.run = k.find(*g.at(i.op).op);
      }
      steps_.push_back(s);
    }
    const bool beside = std::any_of(p.code.begin(), p.code.end(), [](const instruction& i) { return i.beside; });
    if (!beside) return;
    const stream_order order = order_of(p);
    for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].waits_for = order.waits_for[i];
    tickets_.resize(steps_.size());
    stream_ = std::make_unique<side_stream>(steps_.size(), [this](int i) {
      const auto start = clock::now();
      convert(program_.code[static_cast<std::size_t>(i)]);
      last_[static_cast<std::size_t>(i)] = seconds(clock::now() - start);
    });
  }

  /// Runs one step of the program; `step` counts optimizer steps from 1. `feed(pass)` sets the inputs of each micro-batch.
  template <class Feed>
  void run(long step, Feed&& feed) { run(step, program_.passes, feed); }
  void run(long step) { run(step, [](int) {}); }
  /// The same with fewer passes than the program has: for measuring.
  template <class Feed>
  void run(long step, int passes, Feed&& feed) {
    const auto begin = clock::now();
    const auto first = static_cast<std::size_t>(program_.begin), end = static_cast<std::size_t>(program_.end);
    run_range(0, first, step, 0);
    loss_ = 0;
    for (int pass = 0; pass < passes; ++pass) {
      feed(pass);
      const auto start = clock::now();
      run_range(first, end, step, pass);
      spent.passes += seconds(clock::now() - start);
      if (program_.loss >= 0) loss_ += static_cast<double>(*static_cast<const wide*>(memory(program_.loss))) / passes;
    }
    run_range(end, steps_.size(), step, 0);
    spent.total += seconds(clock::now() - begin);
  }

  /// The loss of the last run (complete on every rank): the mean over its micro-batches.
  double loss() const { return loss_; }

  /// Writes this rank's piece of an input from the whole tensor.
  void set_input(int value, const std::vector<std::int32_t>& whole) {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const buffer& x = program_.buffers[b];
      if (x.value != value || !x.persistent) continue;
      auto* out = static_cast<std::int32_t*>(memory_[b]);
      each_element(graph_[value].shape, x.held, program_.mesh, rank_.rank,
                   [&](long i, long global) { out[i] = whole[static_cast<std::size_t>(global)]; });
    }
  }

  /// Fills this rank's piece of a persistent tensor from the whole one (global order).
  template <class U>
  void place(int value, const U* whole) {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const buffer& x = program_.buffers[b];
      if (x.value != value || !x.persistent) continue;
      const numbers<T> out = view(x, memory_[b]);
      each_element(graph_[value].shape, x.held, program_.mesh, rank_.rank, [&](long i, long global) { out.set(i, static_cast<wide>(whole[global])); });
    }
  }

  /// Writes this rank's piece of a persistent tensor into `whole` (global order). Only one of the ranks that hold the
  /// same piece writes.
  void collect(int value, std::vector<wide>& whole) const { collect(value, whole.data()); }
  void collect(int value, wide* whole) const {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const buffer& x = program_.buffers[b];
      if (x.value != value || !x.persistent) continue;
      const numbers<T> in = view(x, memory_[b]);
      for (int a = 0; a < program_.mesh.rank(); ++a)
        if (x.held.on(a).kind == placement::replicate && program_.mesh.coordinate(rank_.rank, a) != 0) return;
      each_element(graph_[value].shape, x.held, program_.mesh, rank_.rank,
                   [&](long i, long global) { whole[global] = in[i]; });
      return;
    }
  }

  void* memory(int b) const { return memory_[static_cast<std::size_t>(b)]; }

  /// Time spent since construction or since it was last cleared.
  time_spent spent;
  /// Seconds of each instruction when it last ran, waiting included.
  const std::vector<double>& last() const { return last_; }

 private:
  using clock = std::chrono::steady_clock;
  void run_range(std::size_t from, std::size_t to, long step, int pass) {
    if (!stream_) return run_in_order(from, to, step, pass);
    try {
      run_in_order(from, to, step, pass);
      const auto before = clock::now();
      stream_->wait_all();
      spent.conversions += seconds(clock::now() - before);
    } catch (const std::exception& e) {  // the stream must not wait for ranks that wait for this one
      rank_.fail(e.what());
      throw;
    } catch (...) {
      rank_.fail("an exception that is no std::exception");
      throw;
    }
  }
  void run_in_order(std::size_t from, std::size_t to, long step, int pass) {
    auto before = clock::now();
    for (std::size_t i = from; i < to; ++i) {
      prepared& s = steps_[i];
      if (s.code->beside) {
        stream_->issue(static_cast<int>(i));
        tickets_[i] = stream_->issued();
        continue;
      }
      if (s.waits_for >= 0) {
        stream_->wait(tickets_[static_cast<std::size_t>(s.waits_for)]);
        const auto now = clock::now();
        spent.conversions += seconds(now - before);
        before = now;
      }
      if (s.code->nothing) continue;
      if (s.run) {
        s.bound.step = step;
        s.bound.pass = pass;
        s.run(s.bound);
      } else {
        convert(*s.code);
      }
      const auto now = clock::now();
      last_[i] = seconds(now - before);
      (s.run ? spent.kernels : spent.conversions) += last_[i];
      before = now;
    }
  }
  struct aligned_delete {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t(memory_alignment)); }
  };
  using block = std::unique_ptr<std::byte, aligned_delete>;

  // Large blocks ask for large pages: a program that is run a few times only would spend much of its time on small ones.
  static block allocate(long bytes) {
    const auto size = static_cast<std::size_t>(bytes > 0 ? bytes : 1);
    block out(static_cast<std::byte*>(::operator new(size, std::align_val_t(memory_alignment))));
#ifdef MADV_HUGEPAGE
    constexpr std::size_t page = 2 << 20;
    void* first = out.get();
    std::size_t space = size;
    if (size >= 2 * page && std::align(page, page, first, space)) madvise(first, space / page * page, MADV_HUGEPAGE);
#endif
    return out;
  }
  static double seconds(clock::duration d) { return std::chrono::duration<double>(d).count(); }

  numbers<T> view(const buffer& x, void* at) const {
    call_tensor t;
    t.data = at;
    t.wide = x.type == element::wide;
    return numbers<T>(t);
  }

  void fill(const buffer& x, void* at, std::uint64_t seed) {
    const value& v = graph_[x.value];
    if (x.type == element::index)
      fill_indices(static_cast<std::int32_t*>(at), v, x.held, program_.mesh, rank_.rank, seed);
    else if (x.type == element::wide)
      fill_numbers(static_cast<wide*>(at), v, x.held, program_.mesh, rank_.rank, seed);
    else
      fill_numbers(static_cast<T*>(at), v, x.held, program_.mesh, rank_.rank, seed);
  }

  void convert(const instruction& i) {
    if (i.kind == instruction::narrow) return narrow(i);
    switch (program_[i.in[0]].type) {
      case element::real: return convert_as<T>(i);
      case element::wide: return convert_as<wide>(i);
      case element::index: throw std::logic_error("indices are given in every partition and never converted");
    }
  }
  void narrow(const instruction& i) {
    const auto* from = static_cast<const wide*>(memory(i.in[0]));
    std::transform(from, from + elements(program_[i.in[0]].local), static_cast<T*>(memory(i.out[0])), [](wide x) { return T(x); });
  }
  template <class U>
  void convert_as(const instruction& i) {
    const auto at = [&](int k) { return k < i.out.size() ? static_cast<U*>(memory(i.out[k])) : nullptr; };
    run_conversion<U>(i.step, program_[i.in[0]], program_[i.out[0]], static_cast<U*>(memory(i.in[0])), at(0), at(1),
                      at(2), program_.mesh, rank_.rank, rank_.axes[static_cast<std::size_t>(i.step.axis)]);
  }

  const program& program_;
  const graph& graph_;
  Rank& rank_;
  block arena_;
  std::vector<block> persistent_;
  std::vector<void*> memory_;
  std::vector<prepared> steps_;
  std::vector<double> last_;
  double loss_ = 0;
  std::vector<long> tickets_;            // of collectives beside: what to wait for
  std::unique_ptr<side_stream> stream_;  // for them; last, as it uses the rest
};

}  // namespace cfp::host
