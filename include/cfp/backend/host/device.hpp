// The processor a rank runs on, as a device: kernels run at once, collectives beside them on a thread of their own.
#pragma once

#include <cfp/backend/engine.hpp>
#include <cfp/backend/host/coder.hpp>
#include <cfp/backend/host/kernels.hpp>
#include <cfp/backend/host/memory.hpp>
#include <cfp/backend/host/scanner.hpp>
#include <cfp/backend/host/side_stream.hpp>
#include <cfp/backend/tick_clock.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

namespace cfp::inline v0_1::host {

/// Numbers are stored as T; `Context` is that of a rank: of a thread, of a process.
template <class T, class Context>
class device : public tick_clock {
 public:
  static constexpr bool immediate = true;
  using number = T;
  /// What ranks share.
  struct parts {
    std::shared_ptr<const kernels<T>> all = std::make_shared<kernels<T>>();
    target lowered_for() const { return sizeof(T); }
  };
  struct queue {
    side_stream* beside = nullptr;  ///< none: what is put runs at once
  };
  struct memory : host::memory {
    explicit memory(device& d) : host::memory{&d.use_} {}
  };
  struct no_recording {
    explicit operator bool() const { return false; }
  };

  device(const parts& shared, Context& context) : kernels_(shared.all), context_(context) {
    openblas_set_num_threads(1);  // ranks are the parallelism
  }

  int rank() const { return context_.rank; }
  Context& context() { return context_; }
  memory_use& use() { return use_; }
  const memory_use& use() const { return use_; }
  traffic counted(int group) const { return context_.group(group).counted(); }
  void reset_counted() { context_.reset_counted(); }

  queue main() const { return {}; }
  queue side(int stream) {
    auto& side = sides_[static_cast<std::size_t>(stream)];
    if (!side) side = std::make_unique<side_stream>();
    return {side.get()};
  }
  void put(const queue& q, const std::function<void(const queue&)>& work) {
    if (q.beside == nullptr) return work(q);
    q.beside->issue([&work, q] { work(q); });
  }
  void mark(int n, const queue& q) {
    if (q.beside == nullptr) return;
    const auto at = static_cast<std::size_t>(n);
    if (issued_.size() <= at) issued_.resize(at + 1);
    issued_[at] = {q.beside, q.beside->issued()};
  }
  void meet(int n, const queue& q) {
    if (n == 0) return;  // the processor has done all before
    const place& p = issued_[static_cast<std::size_t>(n)];
    if (q.beside == nullptr) p.of->wait(p.issued);
    else q.beside->issue([p] { p.of->wait(p.issued); });
  }
  host_mover mover(const queue&) const { return {}; }
  host::coder coder(const queue&) const { return {}; }
  host::scanner scanner(const queue&) const { return {}; }
  const auto& among(unsigned axes, const queue&) const { return context_.along(axes); }
  const auto& pair(int axis, int with, bool sends, const queue&) const { return context_.pair(axis, with, sends); }
  void set(long step) { step_ = step; }
  void set_pass(int pass, bool first) { pass_ = pass, first_ = first; }
  no_recording record(const std::function<void()>&) const { return {}; }
  void replay(no_recording) const {}
  void wait() {
    for (const auto& side : sides_)
      if (side) side->end_all();
    for (const auto& side : sides_)
      if (side) side->wait_all();
  }
  void fail(const std::string& why) {
    if (std::any_of(sides_.begin(), sides_.end(), [](const auto& s) { return s != nullptr; })) context_.fail(why);
  }

  ready<queue> make_ready(const places& where, const instruction& i) {
    if (i.kind == instruction::narrow) {
      const auto* const from = static_cast<const wide_t<T>*>(where[i.in[0]]);
      const long n = elements(where.p[i.in[0]].local);
      return {[from, n, to = static_cast<T*>(where[i.out[0]])](const queue&) {
        std::transform(from, from + n, to, [](wide_t<T> x) { return T(x); });
      }};
    }
    return {[this, c = where.bound(i), run = kernels_->find(*where.g.at(i.op).op, where.g)](const queue&) mutable {
      c.step = step_;
      c.pass = pass_;
      c.first = first_;
      run(c);
    }};
  }

 private:
  std::shared_ptr<const kernels<T>> kernels_;
  Context& context_;
  memory_use use_;
  long step_ = 1;
  int pass_ = 0;
  bool first_ = true;
  struct place {
    side_stream* of = nullptr;
    long issued = 0;
  };
  std::vector<place> issued_;                                       // per mark of a side queue
  std::array<std::unique_ptr<side_stream>, streams_beside> sides_;  // last: they use the rest
};

}  // namespace cfp::host
