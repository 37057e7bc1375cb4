// Runs a lowered program on one CPU rank.
#pragma once

#include <cfp/runtime/conversion.hpp>
#include <cfp/runtime/host/kernels.hpp>
#include <cfp/runtime/host/rank_memory.hpp>
#include <cfp/runtime/host/run_ranks.hpp>
#include <cfp/runtime/host/side_stream.hpp>

#include <chrono>
#include <memory>

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
      : program_(p), rank_(rank), memory_(p, g, rank.rank, seed) {
    openblas_set_num_threads(1);
    steps_.reserve(p.code.size());
    last_.resize(p.code.size());
    for (const instruction& i : p.code) {
      prepared s;
      s.code = &i;
      if (i.kind == instruction::compute) {
        s.bound = bind_call(p, g, i, rank.rank);
        s.bound.passes = p.passes;
        s.bound.seed = seed;
        for (int o = 0; o < i.in.size(); ++o) s.bound.operand[o].data = memory_[i.in[o]];
        for (int o = 0; o < i.out.size(); ++o) s.bound.result[o].data = memory_[i.out[o]];
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
      if (program_.loss >= 0) loss_ += memory_.loss() / passes;
    }
    run_range(end, steps_.size(), step, 0);
    spent.total += seconds(clock::now() - begin);
  }

  /// The loss of the last run (complete on every rank): the mean over its micro-batches.
  double loss() const { return loss_; }

  /// What the program works in: whole tensors in and out.
  rank_memory<T>& memory() { return memory_; }

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
  static double seconds(clock::duration d) { return std::chrono::duration<double>(d).count(); }

  void convert(const instruction& i) {
    if (i.kind == instruction::narrow) return narrow(i);
    switch (program_[i.in[0]].type) {
      case element::real: return convert_as<T>(i);
      case element::wide: return convert_as<wide>(i);
      case element::index: throw std::logic_error("indices are given in every partition and never converted");
    }
  }
  void narrow(const instruction& i) {
    const auto* from = static_cast<const wide*>(memory_[i.in[0]]);
    std::transform(from, from + elements(program_[i.in[0]].local), static_cast<T*>(memory_[i.out[0]]), [](wide x) { return T(x); });
  }
  template <class U>
  void convert_as(const instruction& i) {
    const auto at = [&](int k) { return k < i.out.size() ? static_cast<U*>(memory_[i.out[k]]) : nullptr; };
    run_conversion<U>(host_mover{}, i.step, program_[i.in[0]], program_[i.out[0]], static_cast<U*>(memory_[i.in[0]]), at(0), at(1),
                      at(2), program_.mesh, rank_.rank, rank_.axes[static_cast<std::size_t>(i.step.axis)]);
  }

  const program& program_;
  Rank& rank_;
  rank_memory<T> memory_;
  std::vector<prepared> steps_;
  std::vector<double> last_;
  double loss_ = 0;
  std::vector<long> tickets_;            // of collectives beside: what to wait for
  std::unique_ptr<side_stream> stream_;  // for them; last, as it uses the rest
};

}  // namespace cfp::host
