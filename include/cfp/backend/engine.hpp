// Runs a lowered program on one device, whatever that is: the processor a rank runs on, a GPU, a GPU that is emulated.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/backend/compressed_conversion.hpp>
#include <cfp/backend/conversion.hpp>
#include <cfp/backend/device.hpp>
#include <cfp/backend/handed.hpp>
#include <cfp/backend/issued_passes.hpp>
#include <cfp/backend/rank_memory.hpp>
#include <cfp/program/schedule.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// `Device::number` is what numbers are stored as; wide ones as float at least.
template <device Device>
class engine : public loaded_program {
  using T = typename Device::number;
  using queue = typename Device::queue;
  using clock = std::chrono::steady_clock;

 public:
  /// `p` must have its memory planned, as the device wants programs, and outlive this, as must the others. Allocates
  /// all memory there is.
  engine(const program& p, const graph& g, Device& on, std::uint64_t seed)
      : program_(p), graph_(g), device_(on), memory_(p, g, on.rank(), seed, typename Device::memory(on)) {
    const stream_order order = order_of(p);
    const places where{p, g, on.rank(), seed, memory_.places(), workspace_};
    seconds_.resize(p.code.size());
    long workspace = 0;
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      step_of s{&p.code[i], {}, order.waits_for[i]};
      if (s.code->nothing) {
      } else if (s.code->kind != instruction::compute && s.code->kind != instruction::narrow) {
        s.work = [this, i](const queue& q) { move(i, q); };
      } else {
        ready<queue> made = on.make_ready(where, *s.code);
        s.work = std::move(made.run);
        workspace = std::max(workspace, made.workspace);
      }
      steps_.push_back(std::move(s));
    }
    held_workspace_ = typename Device::memory(on).allocate(workspace);
    workspace_ = held_workspace_.get();
    if constexpr (requires { on.settle(); }) on.settle();  // all ranks together
  }

  engine(const engine&) = delete;
  ~engine() override {
    try {
      if (running_) device_.wait();
    } catch (const std::exception&) {  // who waits is told; nothing runs any more
    }
  }

  void step(long number, int passes, const std::function<void(int)>& feed = {}) override {
    settle();
    const auto begin = clock::now();
    issue_step(number, passes, feed, false);
    settle();
    if (passes > 0) passes_.drop_last();  // it is `loss`
    times_.total += since(begin);
    if (timed_ && !Device::immediate)
      for (std::size_t i = 0; i < steps_.size(); ++i)
        if (steps_[i].work && !steps_[i].code->beside) seconds_[i] = device_.between(tick(i), tick(i) + 1) / 1000;
  }
  void run_ahead(long number, int passes, const std::function<void(int)>& feed = {}) override {
    issue_step(number, passes, feed, true);
  }
  std::optional<double> ended(bool wait) override {
    std::optional<double> loss = passes_.take();
    while (wait && !loss && !passes_.none()) {
      land();
      loss = passes_.take();
    }
    if (wait && !loss) settle();
    return loss;
  }

  double loss() const override { return passes_.last(); }

  void give(int value, const given_tensor& whole) override {
    std::visit([&](const auto& x) { memory_.place(value, x); }, whole);
  }
  void collect(int value, const collected_tensor& whole) const override {
    std::visit([&](const auto& x) { memory_.collect(value, x.data()); }, whole);
  }

  step_times times() const override {
    step_times out = times_;
    if (Device::immediate || timed_) out.instructions = seconds_;
    return out;
  }
  void clear_times() override { times_ = {}; }
  void time_instructions(bool on) override { timed_ = on; }

  /// Puts instructions [from, to) into the device's queues, as a step does. Collectives only if so said.
  void issue(std::size_t from, std::size_t to, bool collectives = true) {
    std::array<int, streams_beside> last{-1, -1, -1};
    auto before = clock::now();
    const auto passed = [&](double& sum) {  // of a device that runs at once, the time since it was last asked
      if constexpr (!Device::immediate) return 0.0;
      const auto now = clock::now();
      const double seconds = std::chrono::duration<double>(now - before).count();
      before = now;
      sum += seconds;
      return seconds;
    };
    const auto meet = [&](const std::array<int, streams_beside>& all, const queue& q) {
      for (const int n : all)
        if (n >= 0 && collectives) device_.meet(n + 1, q);
    };
    auto slot = program_.slot_from(static_cast<int>(from));
    for (std::size_t i = from; i < to; ++i) {
      for (; slot != program_.slots.end() && slot->first == static_cast<int>(i); ++slot)
        device_.set_pass(slot->pass, slot->begins);
      const step_of& s = steps_[i];
      if (s.code->beside) {
        if (!collectives) continue;
        const int stream = stream_of(*s.code);
        const queue side = device_.side(stream);
        device_.mark(0, device_.main());
        device_.meet(0, side);
        meet(s.waits_for, side);
        device_.put(side, s.work);
        last[static_cast<std::size_t>(stream)] = static_cast<int>(i);
        device_.mark(static_cast<int>(i) + 1, side);
        continue;
      }
      meet(s.waits_for, device_.main());
      passed(times_.conversions);
      if (!s.work || (s.code->communicates() && !collectives)) continue;
      const bool ticks = timed_ && !Device::immediate;
      if (ticks) device_.tick(tick(i));
      device_.put(device_.main(), s.work);
      if (ticks) device_.tick(tick(i) + 1);
      seconds_[i] = passed(s.code->is_operator() ? times_.kernels : times_.conversions);
    }
    meet(last, device_.main());
    passed(times_.conversions);
  }

  /// What it keeps for an instruction beside the planned memory.
  static constexpr long bytes_of_instruction() {
    return static_cast<long>(sizeof(step_of) + sizeof(call) + sizeof(double) + 64);
  }

 private:
  struct step_of {
    const instruction* code = nullptr;
    std::function<void(const queue&)> work{};     // none: the result is there
    std::array<int, streams_beside> waits_for{};  // what runs beside
  };

  static int tick(std::size_t i) { return 2 * static_cast<int>(i); }
  static double since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

  void issue_step(long number, int passes, const std::function<void(int)>& feed, bool ahead) {
    const auto first = static_cast<std::size_t>(program_.begin), end = static_cast<std::size_t>(program_.end);
    const bool all = program_.has_all_passes();
    running_ = true;
    device_.set(number);
    device_.set_pass(0, true);
    run_range(0, 0, first);
    for (int pass = 0; pass < passes; ++pass) {
      if (passes_.full()) land();
      memory_.feed(all ? pass : -1);
      if (feed) feed(pass);
      if (all && pass + 1 < passes) continue;
      const auto start = clock::now();
      if (!all) device_.set_pass(pass, pass == 0);
      run_range(1, first, end);
      memory_.fetch_loss();
      passes_.issue(all ? 0 : pass, all ? 1 : passes);
      if (ahead && !Device::immediate) continue;
      while (!passes_.none()) land();
      if (!ahead) times_.passes += since(start);
    }
    run_range(2, end, steps_.size());
    ++runs_;
  }

  // Returns once the oldest pass on its way has ended.
  void land() { passes_.end(memory_.fetched_loss()); }

  // Returns once all that was issued has been done.
  void settle() {
    while (!passes_.none()) land();
    if (running_) device_.wait();
    running_ = false;
  }

  // The first time as it is: libraries make themselves ready. Then recorded, from then on replayed.
  void run_range(int which, std::size_t from, std::size_t to) {
    if (from == to) return;
    try {
      auto& recorded = recorded_[which];
      if (!recorded && runs_ > 0 && !timed_) recorded = device_.record([&] { issue(from, to); });
      if (recorded && !timed_) device_.replay(recorded);
      else issue(from, to);
    } catch (const std::exception& e) {
      device_.fail(e.what());
      throw;
    } catch (...) {
      device_.fail("an exception that is no std::exception");
      throw;
    }
  }

  void move(std::size_t i, const queue& q) {
    const instruction& code = program_.code[i];
    const auto begin = clock::now();
    if (code.kind == instruction::carry)
      device_.mover(q).copy(memory_[code.out[0]], memory_[code.in[0]], program_[code.in[0]].bytes);
    else if (code.crosses())
      run_crossing(program_, code, memory_[code.crossed()], device_.pair(0, code.with, code.sends(), q));
    else
      as_converted<T>(program_[code.in[0]].type, [&]<class U>(U) {
        if (code.kind != instruction::hand) return run_step<U>(device_, q, program_, code, memory_);
        run_handed<U>(device_, q, handed_by(program_, graph_, code, device_.rank()), code, memory_);
      });
    if (Device::immediate && code.beside) seconds_[i] = since(begin);
  }

  const program& program_;
  const graph& graph_;
  Device& device_;
  rank_memory<T, typename Device::memory> memory_;
  typename Device::memory::block held_workspace_;
  void* workspace_ = nullptr;
  std::vector<step_of> steps_;
  std::vector<double> seconds_;
  decltype(std::declval<Device&>().record(std::declval<const std::function<void()>&>())) recorded_[3] = {};
  long runs_ = 0;
  bool timed_ = false, running_ = false;
  issued_passes passes_;
  step_times times_;
};

}  // namespace cfp
