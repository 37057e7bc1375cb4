// Which kernel runs a chain: packed where sizes, strides and addresses allow 16 bytes at a time; rows by a warp or a
// block.
//
// A queue, here and in all that follows, launches kernels in order: see queue.cuh.
#pragma once

#include <cfp/backend/cuda/kernel/columns_kernel.hpp>
#include <cfp/backend/cuda/kernel/flat_kernel.hpp>
#include <cfp/backend/cuda/kernel/fold_kernel.hpp>
#include <cfp/backend/cuda/kernel/many_kernel.hpp>
#include <cfp/backend/cuda/kernel/rows_kernel.hpp>
#include <cfp/core/bad_input.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace cfp::inline v0_1::cuda {

namespace detail {

inline bool is_packed(const chain_tensor& t, int dims, int width) {
  if (t.along == 0) return true;
  bool even = t.along == 1 && reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0;
  for (int d = 0; d < dims; ++d) even = even && t.stride[d] % width == 0;
  return even;
}
/// Whether rows can be moved 16 bytes at a time.
template <class Chain, class T>
bool is_packed(const chain_call& c, mapping how) {
  constexpr int width = full_width<T>;
  bool even = c.length % width == 0 && (c.elements < 0 || c.elements % width == 0) && c.positions.along == 0;
  for (int i = 0; i < inputs_of<Chain>; ++i)
    even = even && is_packed(c.input[i], c.dims, width) && c.table_stride[i] % width == 0;
  for (int s = 0; s < Chain::steps; ++s)
    if (how != mapping::columns && !info_of<Chain>.steps[s].reduces && c.result[s].data != nullptr)
      even = even && c.result[s].along == 1 && is_packed(c.result[s], c.dims, width);
  return even;
}

template <class Queue, class Kernel>
void launch(const Queue& q, const Kernel& k, long shared_bytes = 0) {
  if (k.blocks() > 0) q.launch(k, k.blocks(), shared_bytes);
}

template <class Chain, std::size_t... I>
constexpr int held_inputs(std::index_sequence<I...>) {
  return (0 + ... + (is_walked_again<Chain, static_cast<int>(I)> ? 1 : 0));
}
template <class Chain, class T, std::size_t... I>
bool can_hold(const chain_call& c, std::index_sequence<I...>) {
  return ((!is_walked_again<Chain, static_cast<int>(I)> ||
           (c.input[I].along == 1 && (sizeof(T) == 4 || !c.input[I].wide))) &&
          ...);
}
template <class Chain, std::size_t... I>
void check_rows(const chain_call& c, std::index_sequence<I...>) {
  const bool one[] = {(!is_one_per_row<Chain, static_cast<int>(I)> || c.input[I].along == 0)...};
  for (std::size_t i = 0; i < sizeof...(I); ++i)
    if (!one[i])
      throw bad_input("input " + std::to_string(i) +
                      " of a chain is one number for all of a row, but is bound to one that changes along it");
}

}  // namespace detail

/// Elements of a chain without a reduction.
template <class Chain, class T, class Queue>
void run_flat(const Queue& q, const chain_call& c) {
  if (c.positions.data != nullptr) throw bad_input("a chain that selects table positions is run by run_selected");
  if (detail::is_packed<Chain, T>(c, mapping::flat)) detail::launch(q, flat_kernel<Chain, T, full_width<T>>(c));
  else detail::launch(q, flat_kernel<Chain, T, 1>(c));
}
template <class Chain, class T, class Queue>
void run_selected(const Queue& q, const chain_call& c) {
  if (detail::is_packed<Chain, T>(c, mapping::flat)) detail::launch(q, flat_kernel<Chain, T, full_width<T>, true>(c));
  else detail::launch(q, flat_kernel<Chain, T, 1, true>(c));
}

/// Each row by itself. Throws bad_input if an input that is one number a row is not.
template <class Chain, class T, class Queue>
void run_rows(const Queue& q, const chain_call& c) {
  using all = std::make_index_sequence<static_cast<std::size_t>(inputs_of<Chain>)>;
  constexpr int width = full_width<T>, held = detail::held_inputs<Chain>(all{});
  detail::check_rows<Chain>(c, all{});
  if (!detail::is_packed<Chain, T>(c, mapping::rows))
    return detail::launch(q, rows_kernel<Chain, T, 1, warp_size, 0>(c));
  if constexpr (held > 0)
    if (detail::can_hold<Chain, T>(c, all{})) {
      using by_warp = rows_kernel<Chain, T, width, warp_size, 4>;
      using by_block = rows_kernel<Chain, T, width, 256, 4>;
      using by_large_block =
          rows_kernel<Chain, T, width, 1024, (inputs_of<Chain> == 1 ? 7 : 2)>;  // of 64 registers a thread
      if (c.length <= by_warp::held_length) return detail::launch(q, by_warp(c));
      if (c.length <= by_block::held_length) return detail::launch(q, by_block(c));
      if (c.length <= by_large_block::held_length) return detail::launch(q, by_large_block(c));
    }
  if (c.length <= 8 * warp_size * width) detail::launch(q, rows_kernel<Chain, T, width, warp_size, 0>(c));
  else detail::launch(q, rows_kernel<Chain, T, width, 512, 0>(c));
}

namespace detail {
template <class Chain, class T>
using gathering_by_warp = rows_kernel<Chain, T, full_width<T>, warp_size, 4>;
template <class Chain, class T>
using gathering_by_block = rows_kernel<Chain, T, full_width<T>, 256, 4>;
}  // namespace detail

/// Bytes of workspace for run_gathering.
template <class Chain, class T>
long gathering_workspace(const chain_call& c) {
  const long blocks = c.length <= detail::gathering_by_warp<Chain, T>::held_length
                          ? detail::gathering_by_warp<Chain, T>(c).blocks()
                          : detail::gathering_by_block<Chain, T>(c).blocks();
  return gathered<Chain> * blocks * c.length * static_cast<long>(sizeof(float));
}

namespace detail {
template <class Chain, class T, int S>
void fold_gathered(std::vector<fold_kernel<reduction::sum, T>>& folds, const chain_call& c, const float* memory,
                   long blocks) {
  if constexpr (Chain::template step<S>::gathers)
    if (c.result[S].data != nullptr)
      folds.push_back({memory + gathered_before<Chain, S> * blocks * c.length, blocks, c.length, c.result[S]});
}
template <class Chain, class T, class Kernel, class Queue, std::size_t... S>
void run_gathering_by(const Queue& q, const Kernel& k, std::index_sequence<S...>) {
  launch(q, k, k.shared_bytes());
  std::vector<fold_kernel<reduction::sum, T>> folds;
  (fold_gathered<Chain, T, static_cast<int>(S)>(folds, k.c, k.partial, k.blocks()), ...);
  launch_some<max_steps>(q, folds, fold_kernel<reduction::sum, T>::shared_bytes);
}
}  // namespace detail

/// Each row by itself, and the sums of all rows. Throws bad_input if rows are longer than can be held, or
/// not aligned to 16 bytes.
template <class Chain, class T, class Queue>
void run_gathering(const Queue& q, const chain_call& c, void* workspace) {
  using inputs = std::make_index_sequence<static_cast<std::size_t>(inputs_of<Chain>)>;
  using steps = std::make_index_sequence<static_cast<std::size_t>(Chain::steps)>;
  detail::check_rows<Chain>(c, inputs{});
  if (c.length > longest_gathered(full_width<T>) || !detail::is_packed<Chain, T>(c, mapping::rows) ||
      !detail::can_hold<Chain, T>(c, inputs{}))
    throw bad_input("rows of " + std::to_string(c.length) +
                    " numbers are too long, or not aligned to 16 bytes, for a chain that gathers");
  auto* const memory = static_cast<float*>(workspace);
  if (c.length <= detail::gathering_by_warp<Chain, T>::held_length)
    detail::run_gathering_by<Chain, T>(q, detail::gathering_by_warp<Chain, T>(c, memory), steps{});
  else detail::run_gathering_by<Chain, T>(q, detail::gathering_by_block<Chain, T>(c, memory), steps{});
}

/// Bytes of workspace for run_columns.
template <class Chain, class T>
long columns_workspace(const chain_call& c) {
  const bool packed = detail::is_packed<Chain, T>(c, mapping::columns);
  const long parts =
      packed ? columns_kernel<Chain, T, full_width<T>>::parts_of(c) : columns_kernel<Chain, T, 1>::parts_of(c);
  return Chain::steps * parts * c.length * static_cast<long>(sizeof(float));
}

namespace detail {
template <class Chain, class T, int S, class Queue>
void fold_step(const Queue& q, const chain_call& c, const float* memory, long parts) {
  const fold_kernel<signature<typename Chain::template step<S>::op>::combine, T> f{memory + S * parts * c.length, parts,
                                                                                   c.length, c.result[S]};
  if (c.result[S].data != nullptr) launch(q, f, f.shared_bytes);
}
template <class Chain, class T, int V, std::size_t... S, class Queue>
void run_columns(const Queue& q, const chain_call& c, float* memory, std::index_sequence<S...>) {
  const columns_kernel<Chain, T, V> k(c, memory);
  launch(q, k, k.shared_bytes);
  (fold_step<Chain, T, static_cast<int>(S)>(q, c, memory, k.parts), ...);
}
}  // namespace detail

/// All rows reduced to one, by every step of the chain.
template <class Chain, class T, class Queue>
void run_columns(const Queue& q, const chain_call& c, void* workspace) {
  using all = std::make_index_sequence<static_cast<std::size_t>(Chain::steps)>;
  if (detail::is_packed<Chain, T>(c, mapping::columns))
    detail::run_columns<Chain, T, full_width<T>>(q, c, static_cast<float*>(workspace), all{});
  else detail::run_columns<Chain, T, 1>(q, c, static_cast<float*>(workspace), all{});
}

}  // namespace cfp::cuda
