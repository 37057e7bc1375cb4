// The values of a chain's steps at V neighbouring elements of a row.
#pragma once

#include <cfp/backend/cuda/kernel/storage.hpp>

#include <utility>

namespace cfp::inline v0_1::cuda {

/// What of an input is known: of rows, which inputs are one number a row; where what is walked again is held, that it
/// is packed.
enum class walk { unknown, rows, held_rows };

/// At a row: where it begins in each tensor, its coordinates, and what steps have reduced it to.
template <class Chain, class T, int V, walk W = walk::unknown>
class chain_values {
 public:
  static constexpr int inputs = inputs_of<Chain>, steps = Chain::steps;
  using all_inputs = std::make_index_sequence<static_cast<std::size_t>(inputs)>;
  using all_steps = std::make_index_sequence<static_cast<std::size_t>(steps)>;
  using fetched_inputs = fetched<V>[static_cast<std::size_t>(inputs)];

  template <int I>
  static constexpr layout layout_of = W == walk::unknown                                 ? layout::any
                                      : is_one_per_row<Chain, I>                         ? layout::per_row
                                      : W == walk::held_rows&& is_walked_again<Chain, I> ? layout::packed
                                                                                         : layout::any;

  chain_values() = default;
  CFP_DEVICE chain_values(const chain_call& c, const row_order& order, long row) : c_(&c) {
    for (int d = order.dims() - 1; d >= 0; --d) {
      const long k = order.index(d, row);
      CFP_UNROLL
      for (int i = 0; i < inputs; ++i) input_at_[i] += k * c.input[i].stride[d];
      CFP_UNROLL
      for (int s = 0; s < steps; ++s) result_at_[s] += k * c.result[s].stride[d];
      if constexpr (reads_coordinates) find_coordinates(d, c.start[d] + k, all_steps{});
    }
  }

  CFP_DEVICE const chain_tensor& result(int s) const { return c_->result[s]; }
  CFP_DEVICE long result_at(int s) const { return result_at_[s]; }
  CFP_DEVICE void move_input(int i, long by) { input_at_[i] += by; }
  CFP_DEVICE void set_reduced(int s, float x) { reduced_[s] = x; }

  /// Loads input I from element k of the row on.
  template <int I, int Words>
  CFP_DEVICE void fetch_input(long k, fetched<Words>& out) const {
    fetch<T, V, layout_of<I>>(c_->input[I], input_at_[I] + k * c_->input[I].along, out);
  }

  /// The values of step S at elements k, k + 1, ... of the row, of inputs fetched there.
  template <int S>
  CFP_DEVICE void values(const fetched_inputs& f, long k, float (&out)[V]) const {
    using here = typename Chain::template step<S>;
    float x[static_cast<std::size_t>(here::operands)][V];
    operands<S>(f, k, x, std::make_index_sequence<static_cast<std::size_t>(here::operands)>{});
    CFP_UNROLL
    for (int j = 0; j < V; ++j)
      out[j] =
          apply<S>(x, k + j, j, std::make_index_sequence<static_cast<std::size_t>(here::operands)>{},
                   std::make_index_sequence<static_cast<std::size_t>(here::op::scalars)>{},
                   std::make_index_sequence<static_cast<std::size_t>(signature<typename here::op>::coordinates)>{});
  }

  /// Stores step S at elements k, k + 1, ... of the row, if it is wanted.
  template <int S>
  CFP_DEVICE void keep(long k, const float (&x)[V]) const {
    const chain_tensor& t = c_->result[S];
    if (t.data != nullptr) store<T>(t, result_at_[S] + k * t.along, x);
  }

 private:
  template <std::size_t... S>
  static constexpr bool any_coordinates(std::index_sequence<S...>) {
    return ((signature<typename Chain::template step<static_cast<int>(S)>::op>::coordinates > 0) || ...);
  }
  static constexpr bool reads_coordinates = any_coordinates(all_steps{});

  template <std::size_t... S>
  CFP_DEVICE void find_coordinates(int d, long index, std::index_sequence<S...>) {
    (find_coordinates_of<static_cast<int>(S)>(d, index), ...);
  }
  template <int S>
  CFP_DEVICE void find_coordinates_of(int d, long index) {
    CFP_UNROLL
    for (int i = 0; i < signature<typename Chain::template step<S>::op>::coordinates; ++i)
      if (c_->coordinate[S][i] == d) place_[S][i] = index;
  }
  template <int S, int I>
  CFP_DEVICE long coordinate(long k) const {
    return c_->coordinate[S][I] < 0 ? c_->first + k : place_[S][I];
  }

  template <int S, std::size_t... K>
  CFP_DEVICE void operands(const fetched_inputs& f, long k, float (*x)[V], std::index_sequence<K...>) const {
    (operand<typename Chain::template step<S>::template source<static_cast<int>(K)>>(f, k, x[K]), ...);
  }
  template <class Source>
  CFP_DEVICE void operand(const fetched_inputs& f, long k, float (&x)[V]) const {
    constexpr int i = Source::index;
    if constexpr (!Source::is_step) {
      widen<T, layout_of<i>>(c_->input[i], f[i], x);
    } else if constexpr (Chain::template step<i>::reduces) {
      CFP_UNROLL
      for (int j = 0; j < V; ++j) x[j] = reduced_[i];
    } else {
      values<i>(f, k, x);
      CFP_UNROLL
      for (int j = 0; j < V; ++j) x[j] = as_stored<T>(c_->result[i], x[j]);
    }
  }

  template <int S, std::size_t... K, std::size_t... N, std::size_t... C>
  CFP_DEVICE float apply(const float (*x)[V], [[maybe_unused]] long k, int j, std::index_sequence<K...>,
                         std::index_sequence<N...>, std::index_sequence<C...>) const {
    using op = typename Chain::template step<S>::op;
    return op::apply(argument<op, static_cast<int>(K)>(x[K][j])..., c_->scalar[S][N]...,
                     coordinate<S, static_cast<int>(C)>(k)...);
  }
  template <class Op, int K>
  CFP_DEVICE static auto argument(float x) {
    if constexpr (K == Op::index_operand && !signature<Op>::selects)
      return static_cast<long>(__builtin_bit_cast(std::int32_t, x));
    else return x;
  }

  const chain_call* c_ = nullptr;
  long input_at_[static_cast<std::size_t>(inputs)] = {}, result_at_[static_cast<std::size_t>(steps)] = {};
  float reduced_[static_cast<std::size_t>(steps)] = {};
  long place_[static_cast<std::size_t>(steps)][4] = {};
};

}  // namespace cfp::cuda
