// The kernels for GPUs of operators but products and attention, and of chains. Users add their own by type.
#pragma once

#include <cfp/backend/cuda/chain/chains.hpp>
#include <cfp/backend/cuda/chain/run_chain.hpp>
#include <cfp/backend/cuda/kernel/adafactor_kernel.hpp>
#include <cfp/backend/cuda/kernel/adamw_kernel.hpp>
#include <cfp/backend/cuda/kernel/dropout_kernel.hpp>
#include <cfp/backend/cuda/kernel/kernel_functions.hpp>
#include <cfp/backend/cuda/kernel/map_functions.hpp>
#include <cfp/backend/cuda/kernel/queue_places_kernel.hpp>
#include <cfp/backend/cuda/kernel/rotary_kernel.hpp>
#include <cfp/backend/cuda/kernel/square_kernel.hpp>
#include <cfp/backend/own_kernels.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/op/all.hpp>

#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::cuda {

/// How a chain runs.
template <class Queue>
struct chain_functions : known_chain {
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
  static void run(const Queue& q, const call& c, const surroundings& s) {
    is_rotary(c) ? run_rotary<Op, T>(q, c) : run_any<Op, T>(q, c, map_loops<1>(c), s.workspace);
  }
  static long workspace(const Queue&, const call& c) { return is_rotary(c) ? 0 : any_workspace(map_loops<1>(c)); }
};
template <class T, class Queue>
struct routines {
  using calls = std::span<const call>;
  template <void (*Many)(const Queue&, calls, const surroundings&)>
  static void one(const Queue& q, const call& c, const surroundings& s) {
    Many(q, calls(&c, 1), s);
  }
  static void adamw(const Queue& q, calls c, const surroundings& s) { run_adamw<T>(q, c, s.state); }
  static void mean_squares(const Queue& q, calls c, const surroundings& s) { run_mean_squares<T>(q, c, s.state); }
  static void adafactor(const Queue& q, calls c, const surroundings& s) { run_adafactor<T>(q, c, s.state); }
  static void accumulate(const Queue& q, calls c, const surroundings& s) { run_accumulate<T>(q, c, s.state); }
  static void squares(const Queue& q, calls c, const surroundings& s) { run_squares<T>(q, c, s.workspace); }
  static void sums(const Queue& q, calls c, const surroundings&) { run_scalar_sums(q, c); }
  static void dropout(const Queue& q, const call& c, const surroundings& s) { run_dropout<T>(q, c, s.state); }
  static void queue_places(const Queue& q, const call& c, const surroundings&) { run_queue_places<T>(q, c); }
  static void unstack(const Queue& q, const call& c, const surroundings&) { run_slices<T>(q, c, false); }
  static void stack(const Queue& q, const call& c, const surroundings&) { run_slices<T>(q, c, true); }
  static void pieces(const Queue& q, const call& c, const surroundings&) { run_pieces<T>(q, c); }
};
template <class... Op>
constexpr auto indices_of(op_list<Op...>) {
  return std::make_integer_sequence<int, static_cast<int>(sizeof...(Op))>{};
}
template <mapping How, class... Chain>
constexpr auto indices_of(chain_list<How, Chain...>) {
  return std::make_integer_sequence<int, static_cast<int>(sizeof...(Chain))>{};
}
template <class Chain, mapping How, class T, class Queue>
struct chain_entry {
  static void run(const Queue& q, const chain_call& c, [[maybe_unused]] void* workspace) {
    if constexpr (How == mapping::flat) run_flat<Chain, T>(q, c);
    else if constexpr (gathered<Chain> > 0) run_gathering<Chain, T>(q, c, workspace);
    else if constexpr (How == mapping::rows) run_rows<Chain, T>(q, c);
    else run_columns<Chain, T>(q, c, workspace);
  }
};

}  // namespace detail

/// Kernels for numbers stored as T, launched through a Queue.
template <class T, class Queue>
class kernels {
  using routines = detail::routines<T, Queue>;

 public:
  using functions = kernel_functions<Queue>;

  /// The operators and chains of the catalogue.
  kernels();

  /// The catalogue comes in so many parts, which a program may compile in files of their own, side by side:
  /// `template void cfp::cuda::kernels<cfp::bf16, cfp::cuda::queue>::add_part<3>();`, all of them declared `extern`
  /// before the explicit instantiation of the class.
  static constexpr int parts = 4;

  /// Operators of the user's own, with what their functors' derivatives need.
  template <class... Op>
  void add() {
    (add_one<Op>(), ...);
  }
  /// Chains of the user's own.
  template <mapping How, class... Chain>
  void add_chains() {
    add_chains(chain_list<How, Chain...>{});
  }

  /// Throws bad_input with the operator's name if there is no kernel for it.
  functions find(const op_info& op) const {
    const functions known = found(op);
    if (known.run == nullptr) throw gpu_kernels_missing({{std::string(op.type), std::string(op.label)}});
    return known;
  }
  /// Whether an operator can be run alone: by a kernel, or by a library.
  bool has(const op_info& op) const { return op.body == op_body::product || found(op).run != nullptr; }

  /// Of an operator that `fusions` gathers.
  static many_functions<Queue> find_many(const op_info& op) {
    if (&op == &info<adamw_t>) return {&routines::adamw, nullptr};
    if (&op == &info<mean_square_t>) return {&routines::mean_squares, nullptr};
    if (is_adafactor(op)) return {&routines::adafactor, nullptr};
    if (op.body == op_body::accumulate) return {&routines::accumulate, nullptr};
    if (&op == &info<square_norm_t>) return {&routines::squares, &squares_workspace<T>};
    if (&op == &info<add_t>) return {&routines::sums, nullptr};
    throw bad_input("operator '" + std::string(op.label) + "' has no kernel for many tensors");
  }

  const std::vector<chain_functions<Queue>>& chains() const { return chains_; }

 private:
  static bool is_adafactor(const op_info& op) {
    return &op == &info<adafactor_t> || &op == &info<adafactor_of_matrix_t>;
  }
  functions found(const op_info& op) const {
    switch (op.body) {
      case op_body::unstack: return {&routines::unstack, nullptr};
      case op_body::stack: return {&routines::stack, nullptr};
      case op_body::pieces: return {&routines::pieces, nullptr};
      case op_body::update:
        if (is_adafactor(op)) return {&routines::template one<&routines::adafactor>, nullptr};
        if (&op == &info<mean_square_t>) return {&routines::template one<&routines::mean_squares>, nullptr};
        if (&op == &info<adamw_t>) return {&routines::template one<&routines::adamw>, nullptr};
        break;
      case op_body::accumulate: return {&routines::template one<&routines::accumulate>, nullptr};
      case op_body::product:
      case op_body::map:
      case op_body::scan:
      case op_body::routine: break;
    }
    const auto at = table_.find(rearranges(op) ? &info<copy_t> : &op);
    return at == table_.end() ? functions{} : at->second;
  }

  template <int Part>
  void add_part();
  template <int... Part>
  void add_parts(std::integer_sequence<int, Part...>) {
    (add_part<Part>(), ...);
  }
  // Neighbours cost alike, so these parts get some of each kind; the last one gets the rest.
  static constexpr int mixed = parts - 1;
  template <int Part, class... Op, int... I>
  void add_some(op_list<Op...>, std::integer_sequence<int, I...>) {
    (add_if<I % mixed == Part, Op>(), ...);
  }
  template <bool Here, class Op>
  void add_if() {
    if constexpr (Here) add_one<Op>();
  }
  // In their order.
  template <int Part, mapping How, class... Chain, int... I>
  void add_some_chains(chain_list<How, Chain...>, std::integer_sequence<int, I...>) {
    (add_chain_if<I * mixed / static_cast<int>(sizeof...(I)) == Part, How, Chain>(), ...);
  }
  template <bool Here, mapping How, class Chain>
  void add_chain_if() {
    if constexpr (Here) add_chain<How, Chain>();
  }
  template <class Op>
  void add_one() {
    if constexpr (has_rotary_kernel<Op>) {
      add_rotary<Op>();
    } else if constexpr (Op::body == op_body::map) {
      using entry = detail::map_entry<functor_t<Op>, T, Queue>;
      table_[&info<Op>] = {&entry::run, &entry::workspace};
      if constexpr (has_slopes<Op>)
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
  template <mapping How, class... Chain>
  void add_chains(chain_list<How, Chain...>) {
    (add_chain<How, Chain>(), ...);
  }
  template <mapping How, class Chain>
  void add_chain() {
    chain_functions<Queue> f;
    f.info = &info_of<Chain>;
    f.how = How;
    f.run = &detail::chain_entry<Chain, How, T, Queue>::run;
    if constexpr (How == mapping::columns) f.workspace = &columns_workspace<Chain, T>;
    else if constexpr (gathered<Chain> > 0) f.workspace = &gathering_workspace<Chain, T>;
    chains_.push_back(f);
  }

  std::unordered_map<const op_info*, functions> table_;
  std::vector<chain_functions<Queue>> chains_;
};

// Not inline: a program of many files may compile the catalogue once.
template <class T, class Queue>
kernels<T, Queue>::kernels() {
  add_parts(std::make_integer_sequence<int, parts>{});
}

template <class T, class Queue>
template <int Part>
void kernels<T, Queue>::add_part() {
  if constexpr (Part < mixed) {
    add_some<Part>(catalogue{}, detail::indices_of(catalogue{}));
    add_some_chains<Part>(row_chains{}, detail::indices_of(row_chains{}));
  } else {
    table_[&info<queue_places_t>] = {&routines::queue_places, nullptr};
    table_[&info<dropout_t>] = table_[&info<cfp::detail::dropout_input_t>] = {&routines::dropout, nullptr};
    add_chains(column_chains{}), add_chains(flat_chains{});
  }
}

}  // namespace cfp::cuda
