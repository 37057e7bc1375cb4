// Chains with steps that reduce each row to a number: a group of threads takes a row, and walks it once for each such
// step and once for all steps with elements. What is walked again is held in registers, as it is stored; or, where rows
// are too long for that, read again. Where steps gather, a group takes rows one after another, keeps the sums of its
// columns, and each block writes the sums of its groups: `fold_kernel` sums those.
#pragma once

#include <cfp/backend/cuda/chain/chain_values.hpp>

namespace cfp::inline v0_1::cuda {

/// `Group` threads a row: a warp, or a block of more. Each holds `Held` times V numbers of what is walked again; 0:
/// nothing is held.
template <class Chain, class T, int V, int Group, int Held>
struct rows_kernel {
  static constexpr int threads = Group == warp_size ? 128 : Group;
  static constexpr int in_block = threads / Group;                          // rows
  static constexpr long held_length = static_cast<long>(Group) * Held * V;  // longest row that can be held

  chain_call c;
  row_order order;
  long rows = 0;
  float* partial;  // [gathering step][block][column]

  explicit rows_kernel(const chain_call& from, float* memory = nullptr)
      : c(from), order(from), rows(from.rows()), partial(memory) {}

  /// Where steps gather, enough to fill a GPU, each with rows enough that writing its sums is a small part of the work.
  long blocks() const {
    if constexpr (gathered<Chain> == 0) return pieces_of(rows, in_block);
    const long most = pieces_of(rows, 4 * in_block);
    return most < 396 ? most : 396;  // three for each processor of an H100
  }
  /// Bytes that a block shares.
  long shared_bytes() const {
    return gathered<Chain> > 0 && in_block > 1 ? in_block * c.length * static_cast<long>(sizeof(float)) : 0;
  }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    const long first = t.block() * in_block + t.thread() / Group;
    column_sums sums{};
    if constexpr (gathered<Chain> == 0) {
      if (first < rows) take_row(t, first, sums);  // a whole group
    } else {
      for (long row = first; row < rows; row += t.blocks() * in_block) take_row(t, row, sums);
      write_sums(t, sums, typename values::all_steps{});
    }
  }

 private:
  struct column_sums {
    float at[gathered<Chain> > 0 ? gathered<Chain> : 1][gathered<Chain> > 0 ? Held : 1][V];
  };

  template <class Thread>
  CFP_DEVICE void take_row(const Thread& t, long row, column_sums& sums) const {
    values v(c, order, row);
    const long rest = c.elements < 0 ? c.length : c.elements - row * c.length;
    walker<Thread> w{t, v, sums, rest < c.length ? rest : c.length, t.thread() % Group};
    w.begin(typename values::all_inputs{});
    w.run(typename values::all_steps{});
  }

  template <class Thread, std::size_t... S>
  CFP_DEVICE void write_sums(const Thread& t, const column_sums& sums, std::index_sequence<S...>) const {
    (write_step<static_cast<int>(S)>(t, sums), ...);
  }
  template <int S, class Thread>
  CFP_DEVICE void write_step(const Thread& t, const column_sums& sums) const {
    if constexpr (Chain::template step<S>::gathers) {
      constexpr int number = gathered_before<Chain, S>;
      const int lane = t.thread() % Group;
      float* const out = partial + (number * t.blocks() + t.block()) * c.length;
      float* const memory = in_block > 1 ? reinterpret_cast<float*>(t.shared()) : out;
      float* const mine = in_block > 1 ? memory + t.thread() / Group * c.length : out;
      CFP_UNROLL
      for (int h = 0; h < Held; ++h) {
        const long k = (h * Group + lane) * static_cast<long>(V);
        CFP_UNROLL
        for (int j = 0; j < V; ++j)
          if (k < c.length) mine[k + j] = sums.at[number][h][j];
      }
      if constexpr (in_block > 1) {
        t.sync();
        for (long k = t.thread(); k < c.length; k += threads) {
          float sum = memory[k];
          for (int g = 1; g < in_block; ++g) sum += memory[g * c.length + k];
          out[k] = sum;
        }
        t.sync();
      }
    }
  }

  using values = chain_values<Chain, T, V, (Held > 0 ? walk::held_rows : walk::rows)>;
  using packed = fetched<(Held > 0 ? V * static_cast<int>(sizeof(T)) / 4 : 1)>;
  static constexpr int last = -1;  // the walk for all steps with elements

  template <class Thread>
  struct walker {
    const Thread& t;
    values& v;
    column_sums& sums;
    long length;
    int lane;
    typename values::fetched_inputs f{};  // at the elements of now; what is one number for all of the row stays
    packed held[static_cast<std::size_t>(values::inputs)][Held > 0 ? static_cast<std::size_t>(Held) : 1]{};

    template <std::size_t... I>
    CFP_DEVICE void begin(std::index_sequence<I...>) {
      (begin_input<static_cast<int>(I)>(), ...);
    }
    template <int I>
    CFP_DEVICE void begin_input() {
      if constexpr (is_one_per_row<Chain, I>) {
        v.template fetch_input<I>(0, f[I]);
      } else if constexpr (Held > 0 && is_walked_again<Chain, I>) {
        CFP_UNROLL
        for (int h = 0; h < Held; ++h)
          if (element(h) < length) v.template fetch_input<I>(element(h), held[I][h]);
      }
    }
    CFP_DEVICE long element(long h) const { return (h * Group + lane) * V; }

    template <std::size_t... S>
    CFP_DEVICE void run(std::index_sequence<S...>) {
      (reduce_step<static_cast<int>(S)>(), ...);
      if constexpr (has_elements<Chain>) {
        float none = 0;
        walk<last>(none);
      }
    }
    template <int S>
    CFP_DEVICE void reduce_step() {
      using here = typename Chain::template step<S>;
      if constexpr (here::reduces) {
        constexpr reduction combine = signature<typename here::op>::combine;
        float sum = identity<combine>;
        walk<S>(sum);
        if constexpr (Group == warp_size) sum = t.template reduce_warp<combine>(sum);
        else sum = t.template reduce<combine>(sum);
        v.set_reduced(S, as_stored<T>(v.result(S), sum));
        if (lane == 0) {
          const float one[1] = {sum};
          if (v.result(S).data != nullptr) store<T>(v.result(S), v.result_at(S), one);
        }
      }
    }

    template <int S>
    CFP_DEVICE void walk(float& sum) {
      if constexpr (Held > 0) {
        CFP_UNROLL
        for (int h = 0; h < Held; ++h)
          if (element(h) < length) visit<S>(element(h), h, sum);
      } else {
        for (long h = 0; element(h) < length; ++h) visit<S>(element(h), 0, sum);
      }
    }
    template <int S>
    CFP_DEVICE void visit(long k, int h, float& sum) {
      fetch_all<S>(k, h, typename values::all_inputs{}, typename values::all_steps{});
      if constexpr (S == last) {
        keep_all(k, h, typename values::all_steps{});
      } else {
        float x[V];
        v.template values<S>(f, k, x);
        CFP_UNROLL
        for (int j = 0; j < V; ++j) sum = combine<signature<typename Chain::template step<S>::op>::combine>(sum, x[j]);
      }
    }
    template <int S, std::size_t... I, std::size_t... Any>
    CFP_DEVICE void fetch_all(long k, int h, std::index_sequence<I...>, std::index_sequence<Any...> steps) {
      (fetch_input<S, static_cast<int>(I)>(k, h, steps), ...);
    }
    template <int S, int I, std::size_t... Any>
    CFP_DEVICE void fetch_input(long k, [[maybe_unused]] int h, std::index_sequence<Any...>) {
      constexpr bool read = S == last ? ((!Chain::template step<static_cast<int>(Any)>::reduces &&
                                          step_reads<Chain, static_cast<int>(Any), I>) ||
                                         ...)
                                      : step_reads < Chain,
                     S == last ? 0 : S, I > ;
      if constexpr (read && !is_one_per_row<Chain, I>) {
        if constexpr (Held > 0 && is_walked_again<Chain, I>) take(held[I][h], f[I]);
        else v.template fetch_input<I>(k, f[I]);
      }
    }
    CFP_DEVICE static void take(const packed& from, fetched<V>& to) {
      CFP_UNROLL
      for (int i = 0; i < V * static_cast<int>(sizeof(T)) / 4; ++i) to.word[i] = from.word[i];
    }
    template <std::size_t... S>
    CFP_DEVICE void keep_all(long k, int h, std::index_sequence<S...>) {
      (keep_step<static_cast<int>(S)>(k, h), ...);
    }
    template <int S>
    CFP_DEVICE void keep_step(long k, [[maybe_unused]] int h) {
      if constexpr (!Chain::template step<S>::reduces) {
        if (v.result(S).data == nullptr) return;
        float x[V];
        v.template values<S>(f, k, x);
        if constexpr (Chain::template step<S>::gathers) {
          CFP_UNROLL
          for (int j = 0; j < V; ++j) sums.at[gathered_before<Chain, S>][h][j] += x[j];
        } else {
          v.template keep<S>(k, x);
        }
      }
    }
  };
};

}  // namespace cfp::cuda
