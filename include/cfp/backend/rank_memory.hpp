// The memory of a program on one rank: the planned arena and what persists, filled; pieces of whole tensors in and out.
#pragma once

#include <cfp/backend/fill.hpp>
#include <cfp/backend/lean_state.hpp>
#include <cfp/backend/numbers.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/program/memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace cfp::inline v0_1 {

/// `T` is what numbers are stored as; wide ones as float at least. `Memory` is where: of this process, of a GPU.
template <class T, class Memory>
class rank_memory {
  using wide = wide_t<T>;

 public:
  /// `p` must have its memory planned and outlive this, as must `g`.
  rank_memory(const program& p, const graph& g, int rank, std::uint64_t seed, Memory where)
      : program_(p), graph_(g), rank_(rank), where_(std::move(where)), inputs_(inputs_of(p, g)),
        staging_(where_, sizes()), arena_(where_.allocate(p.arena_bytes)) {
    at_.resize(p.buffers.size(), nullptr);
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      const buffer& x = p.buffers[b];
      if (x.root != static_cast<int>(b)) continue;
      if (x.on_host) {
        on_host_.push_back(where_.allocate_on_host(x.bytes));
        at_[b] = on_host_.back().get();
        if (x.persistent) fill(x, at_[b], seed);
        continue;
      }
      if (!x.persistent) {
        at_[b] = x.offset < 0 ? nullptr : arena_.get() + x.offset;
        continue;
      }
      persistent_.push_back(where_.allocate(x.bytes));
      at_[b] = persistent_.back().get();
      where_.write(at_[b], x.bytes, [&](void* data) { fill(x, data, seed); });
    }
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      const buffer& x = p.buffers[b];
      at_[b] = at_[static_cast<std::size_t>(x.root)];
      if (x.first > 0) at_[b] = static_cast<std::byte*>(at_[b]) + x.first * (x.bytes / elements(x.local));
    }
  }

  /// Where the buffers are.
  const std::vector<void*>& places() const { return at_; }
  /// Where a buffer is.
  void* operator[](int b) const { return at_[static_cast<std::size_t>(b)]; }

  /// What is given from now on is the input of this micro-batch, of a program that has all in its code; -1: of any.
  void feed(int pass) { fed_ = pass; }

  /// Fills this rank's piece of a persistent tensor from the whole one (global order). That of an input may arrive
  /// later, before what is run next.
  template <class Whole>
  void place(int value, const Whole& whole) {
    each_buffer_of(value, [&](const buffer& x, void* at) {
      if (fed_ >= 0 && x.pass >= 0 && x.pass != fed_) return true;
      write(x, at, [&](void* data) {
        const auto each = [&](const auto& set) {
          each_element(graph_[value].shape, x.held, program_.mesh, rank_,
                       [&](long i, long global) { set(i, whole[static_cast<std::size_t>(global)]); });
        };
        if (x.type == element::index) {
          auto* const out = static_cast<std::int32_t*>(data);
          each([out](long i, auto n) { out[i] = static_cast<std::int32_t>(n); });
        } else if (is_lean(x.type)) {
          std::vector<float> out(static_cast<std::size_t>(elements(x.local)));
          each([&out](long i, auto n) { out[static_cast<std::size_t>(i)] = static_cast<float>(n); });
          write_lean(x.type, data, out);
        } else {
          const numbers<T> out = view(x, data);
          each([out](long i, auto n) { out.set(i, static_cast<wide>(n)); });
        }
      });
      return true;
    });
  }

  /// Writes this rank's piece of a persistent tensor into `whole` (global order). Only one of the ranks that hold the
  /// same piece writes.
  template <class U>
  void collect(int value, U* whole) const {
    each_buffer_of(value, [&](const buffer& x, void* at) {
      for (int a = program_.has_all_passes() ? 1 : 0; a < program_.mesh.rank(); ++a)  // one stage alone has it
        if (x.held.on(a).kind == placement::replicate && program_.mesh.coordinate(rank_, a) != 0) return false;
      const auto read = [&](const auto& use) { x.on_host ? use(at) : where_.read(at, x.bytes, use); };
      read([&](const void* data) {
        const auto each = [&](const auto& in) {
          each_element(graph_[value].shape, x.held, program_.mesh, rank_,
                       [&](long i, long global) { whole[global] = static_cast<U>(in(i)); });
        };
        if (is_lean(x.type)) {
          const std::vector<float> in = read_lean(x.type, data, elements(x.local));
          each([&in](long i) { return in[static_cast<std::size_t>(i)]; });
        } else {
          each([in = view(x, const_cast<void*>(data))](long i) { return in[i]; });
        }
      });
      return false;
    });
  }

  /// The complete loss that the program leaves is on its way to the host, once what was issued before is done.
  void fetch_loss() { staging_.fetch(inputs_.size(), program_.loss < 0 ? nullptr : (*this)[program_.loss]); }
  /// The oldest of those; 0 where there is none. Waits.
  double fetched_loss() {
    const void* const at = staging_.fetched(inputs_.size());
    const int sum_of = program_.has_all_passes() ? program_.passes : 1;
    return program_.loss < 0 ? 0 : static_cast<double>(*static_cast<const wide*>(at)) / sum_of;
  }

 private:
  // f(buffer, where it is) on the persistent buffers of a value, while it returns true.
  template <class F>
  void each_buffer_of(int value, const F& f) const {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const buffer& x = program_.buffers[b];
      if (x.value == value && x.persistent && !x.left_over && !f(x, at_[b])) return;
    }
  }

  // Buffers that get new numbers for each pass.
  static std::vector<int> inputs_of(const program& p, const graph& g) {
    std::vector<int> out;
    for (std::size_t b = 0; b < p.buffers.size(); ++b)
      if (p.buffers[b].persistent && g[p.buffers[b].value].role == value_role::input)
        out.push_back(static_cast<int>(b));
    return out;
  }
  // Of what passes between the host and the device while both work: inputs, and the loss.
  std::vector<long> sizes() const {
    std::vector<long> out;
    for (const int b : inputs_) out.push_back(program_[b].bytes);
    out.push_back(program_.loss < 0 ? 0 : static_cast<long>(sizeof(wide)));
    return out;
  }
  template <class Fill>
  void write(const buffer& x, void* at, const Fill& fill) {
    const auto input = std::find(inputs_.begin(), inputs_.end(), static_cast<int>(&x - program_.buffers.data()));
    if (x.on_host) return fill(at);
    if (input == inputs_.end()) return where_.write(at, x.bytes, fill);
    staging_.send(static_cast<std::size_t>(input - inputs_.begin()), at, fill);
  }

  static numbers<T> view(const buffer& x, void* at) {
    call_tensor t;
    t.data = at;
    t.wide = x.type == element::wide;
    return numbers<T>(t);
  }

  void fill(const buffer& x, void* at, std::uint64_t seed) const {
    const value& v = graph_[x.value];
    if (x.left_over) std::memset(at, 0, static_cast<std::size_t>(x.bytes));
    else if (x.type == element::index)
      fill_indices(static_cast<std::int32_t*>(at), v, x.held, program_.mesh, rank_, seed);
    else if (is_lean(x.type)) std::memset(at, 0, static_cast<std::size_t>(x.bytes));  // state begins at zero
    else if (x.type == element::wide) fill_numbers(static_cast<wide*>(at), v, x.held, program_.mesh, rank_, seed);
    else fill_numbers(static_cast<T*>(at), v, x.held, program_.mesh, rank_, seed);
  }

  const program& program_;
  const graph& graph_;
  int rank_, fed_ = -1;
  Memory where_;
  std::vector<int> inputs_;
  typename Memory::staging staging_;
  typename Memory::block arena_;
  std::vector<typename Memory::block> persistent_;
  std::vector<typename Memory::host_block> on_host_;
  std::vector<void*> at_;
};

}  // namespace cfp
