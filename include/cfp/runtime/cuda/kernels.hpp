// The kernels for GPUs: which code runs which operator, and which chains there are. Users add operators and chains of their own by type.
// Products and attention are not among them.
#pragma once

#include <cfp/op/routing.hpp>
#include <cfp/runtime/cuda/chains.hpp>
#include <cfp/runtime/cuda/dropout_kernel.hpp>
#include <cfp/runtime/cuda/map_functions.hpp>
#include <cfp/runtime/cuda/queue_places_kernel.hpp>
#include <cfp/runtime/cuda/rotary_kernel.hpp>
#include <cfp/runtime/cuda/update_kernel.hpp>

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace cfp::inline v0_1::cuda {

/// What a kernel finds on the device beside the tensors.
struct surroundings {
  const step_state* state = nullptr;
  void* workspace = nullptr;  ///< of at least as many bytes as the kernel asks for, at a multiple of 256; free again when it has run
};

/// How an operator runs. The step and the micro-batch of a call are not read: `surroundings` has them.
template <class Queue>
struct kernel_functions {
  void (*run)(const Queue&, const call&, const surroundings&) = nullptr;
  long (*workspace)(const Queue&, const call&) = nullptr;  ///< bytes, or null: none
};

/// A chain that there is: what it consists of, and how it runs.
template <class Queue>
struct chain_functions {
  const chain_info* info = nullptr;
  mapping how = mapping::flat;
  void (*run)(const Queue&, const chain_call&, void* workspace) = nullptr;
  long (*workspace)(const chain_call&) = nullptr;  ///< bytes, or null: none
};

namespace detail {

template <class Op, class T, class Queue>
struct map_entry {
  static void run(const Queue& q, const call& c, const surroundings& s) { run_map<Op, T>(q, c, s.workspace); }
  static long workspace(const Queue& q, const call& c) { return map_workspace<Op, T>(q, c); }
};
template <class Op, class T, class Queue>
struct rotary_entry {
  static void run(const Queue& q, const call& c, const surroundings& s) { is_rotary(c) ? run_rotary<Op, T>(q, c) : run_any<Op, T>(q, c, map_loops<1>(c), s.workspace); }
  static long workspace(const Queue&, const call& c) { return is_rotary(c) ? 0 : any_workspace(map_loops<1>(c)); }
};
template <class T, class Queue>
struct routines {
  static void adamw(const Queue& q, const call& c, const surroundings& s) { run_adamw<T>(q, c, s.state); }
  static void accumulate(const Queue& q, const call& c, const surroundings& s) { run_accumulate<T>(q, c, s.state); }
  static void dropout(const Queue& q, const call& c, const surroundings& s) { run_dropout<T>(q, c, s.state); }
  static void queue_places(const Queue& q, const call& c, const surroundings&) { run_queue_places<T>(q, c); }
  static void unstack(const Queue& q, const call& c, const surroundings&) { run_slices<T>(q, c, false); }
  static void stack(const Queue& q, const call& c, const surroundings&) { run_slices<T>(q, c, true); }
};
template <class Chain, mapping How, class T, class Queue>
struct chain_entry {
  static void run(const Queue& q, const chain_call& c, [[maybe_unused]] void* workspace) {
    if constexpr (How == mapping::flat) run_flat<Chain, T>(q, c);
    else if constexpr (How == mapping::rows) run_rows<Chain, T>(q, c);
    else run_columns<Chain, T>(q, c, workspace);
  }
};

}  // namespace detail

/// Kernels for numbers stored as T, launched through a Queue.
template <class T, class Queue>
class kernels {
 public:
  using functions = kernel_functions<Queue>;

  /// The operators and chains of the catalogue.
  kernels();

  /// Operators of the user's own, with what their functors' derivatives need.
  template <class... Op>
  void add() {
    (add_one<Op>(), ...);
  }
  /// Chains of the user's own.
  template <mapping How, class... Chain>
  void add_chains() {
    (add_chain<How, Chain>(), ...);
  }

  /// Throws std::invalid_argument with the operator's name if there is no kernel for it.
  functions find(const op_info& op) const {
    using routines = detail::routines<T, Queue>;
    switch (op.body) {
      case op_body::unstack: return {&routines::unstack, nullptr};
      case op_body::stack: return {&routines::stack, nullptr};
      case op_body::update: return {&routines::adamw, nullptr};
      case op_body::accumulate: return {&routines::accumulate, nullptr};
      case op_body::product:
      case op_body::map:
      case op_body::routine: break;
    }
    const auto at = table_.find(&op);
    if (at == table_.end())
      throw std::invalid_argument("operator '" + std::string(op.label) + "' has no kernel for GPUs: add it with kernels.add<" + std::string(op.label) + "_t>()");
    return at->second;
  }

  const std::vector<chain_functions<Queue>>& chains() const { return chains_; }

 private:
  template <class Op>
  void add_one() {
    if constexpr (Op::body == op_body::map) {
      using entry = detail::map_entry<functor_t<Op>, T, Queue>;
      table_[&info<Op>] = {&entry::run, &entry::workspace};
      if constexpr (Op::gradient.size() == 0 && !Op::unit && !Op::statistic && !Op::derived)
        add_slopes<Op>(std::make_index_sequence<static_cast<std::size_t>(bare_rule<Op>.operands.size())>{});
    }
  }
  template <class Op, std::size_t... I>
  void add_slopes(std::index_sequence<I...>) {
    (add_slope<Op, static_cast<int>(I)>(), ...);
  }
  template <class Op, int I>
  void add_slope() {
    if constexpr (I != Op::index_operand) {
      using entry = detail::map_entry<slope<Op, I>, T, Queue>;
      table_[&info<slope<Op, I>>] = {&entry::run, &entry::workspace};
    }
  }
  template <class Op>
  void add_rotary() {
    using entry = detail::rotary_entry<Op, T, Queue>;
    table_[&info<Op>] = {&entry::run, &entry::workspace};
  }
  template <mapping How, class Chain>
  void add_chain() {
    long (*workspace)(const chain_call&) = nullptr;
    if constexpr (How == mapping::columns) workspace = &columns_workspace<Chain, T>;
    chains_.push_back({&info_of<Chain>, How, &detail::chain_entry<Chain, How, T, Queue>::run, workspace});
  }

  std::unordered_map<const op_info*, functions> table_;
  std::vector<chain_functions<Queue>> chains_;
};

// Not inline: a program of many files may compile the catalogue once.
template <class T, class Queue>
kernels<T, Queue>::kernels() {
  add<copy_t, add_t, bias_t, add_rows_t, mul_t, scaled_t, gelu_t, relu_t, gated_silu_t, lookup_t, scatter_add_t>();
  add<norm_sum_t, norm_square_t, cfp::detail::norm_dot_t, cfp::detail::norm_dot_normal_t, cfp::detail::norm_input_t, cfp::detail::norm_weight_t, layer_norm_t,
      rms_square_t, cfp::detail::rms_dot_t, cfp::detail::rms_input_t, cfp::detail::rms_weight_t, rms_norm_t>();
  add<masked_max_t, masked_sum_t, cfp::detail::softmax_dot_t, cfp::detail::softmax_input_t, cfp::detail::masked_input_t, masked_softmax_t, softmax_t,
      logits_max_t, logits_sum_t, cfp::detail::cross_entropy_input_t, cross_entropy_t>();
  add<split_heads_t, merge_heads_t, split_groups_t, merge_groups_t, add_positions_t>();
  add_rotary<rotary_t>();
  add_rotary<cfp::detail::rotary_input_t>();
  add<chosen_sum_t, dispatch_t, combine_t, first_choices_t, gate_mass_t>();
  add<square_norm_t, clip_factor_t>();
  table_[&info<queue_places_t>] = {&detail::routines<T, Queue>::queue_places, nullptr};
  table_[&info<dropout_t>] = table_[&info<cfp::detail::dropout_input_t>] = {&detail::routines<T, Queue>::dropout, nullptr};  // the same elements fall out
  add_chains<mapping::rows, layer_norm_forward, add_layer_norm_forward, layer_norm_backward, rms_norm_forward, add_rms_norm_forward, rms_norm_backward>();
  add_chains<mapping::rows, softmax_forward, masked_softmax_forward, softmax_backward, masked_softmax_backward, cross_entropy_statistics>();
  add_chains<mapping::columns, layer_norm_weights>();
  add_chains<mapping::flat, bias_gelu, bias_add, gated_silu_backward>();
}

}  // namespace cfp::cuda
