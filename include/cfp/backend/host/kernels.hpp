// The host kernels: which code runs which operator. Users add their own operators by type.
#pragma once

#include <cfp/backend/host/map_kernel.hpp>
#include <cfp/backend/host/product_kernel.hpp>
#include <cfp/backend/host/stored_narrow.hpp>
#include <cfp/backend/host/update_kernels.hpp>
#include <cfp/backend/own_kernels.hpp>
#include <cfp/op/all.hpp>
#include <cfp/program/piece_copy.hpp>

#include <string>
#include <unordered_map>

namespace cfp::inline v0_1::host {

/// Copies between a tensor and the slices of its whole factor.
template <class T, bool stack>
void run_unstack(const call& c) {
  const rule& r = c.r();
  const pattern& all = stack ? r.results[0] : r.operands[0];
  const pattern& one = stack ? r.operands[0] : r.results[0];
  const call_tensor& whole = stack ? c.result[0] : c.operand[0];
  int slices = -1;
  for (signed char f : all.factors)
    if (one.dim_of(f) < 0) slices = f;
  for (long k = 0; k < c.size[slices]; ++k) {
    const call_tensor& slice = stack ? c.operand[k] : c.result[k];
    const call_tensor* tensors[2] = {&whole, &slice};
    loop_nest<2> loops;
    for (signed char f : one.factors) loops.add(c, f, tensors);
    loops.collapse(r);
    const long n = loops.depth > 0 ? loops.size[loops.depth - 1] : 1;
    const long sw = loops.depth > 0 ? loops.stride[0][loops.depth - 1] : 1;
    const long ss = loops.depth > 0 ? loops.stride[1][loops.depth - 1] : 1;
    T* w0 = static_cast<T*>(whole.data) + k * whole.stride[slices];
    T* s0 = static_cast<T*>(slice.data);
    loop_nest<2> rest = loops;
    if (rest.depth > 0) --rest.depth;
    thrust::for_each_n(thrust::cpp::par, thrust::counting_iterator<long>(0), rest.count(), [&](long row) {
      long at[2] = {}, index[max_factors] = {};
      rest.locate(row, c, at, index);
      T* w = w0 + at[0];
      T* s = s0 + at[1];
      if (stack)
        for (long i = 0; i < n; ++i) w[i * sw] = s[i * ss];
      else
        for (long i = 0; i < n; ++i) s[i * ss] = w[i * sw];
    });
  }
}

/// What a result takes of each operand, where they lie one behind the other.
template <class T>
void run_pieces(const call& c) {
  for (int k = 0; k < c.r().operands.size(); ++k) {
    const piece_copy piece(c, k);
    if (piece.is_nothing) continue;
    loop_nest<2> rows = piece.loops;
    const int last = rows.depth > 0 ? --rows.depth : 0;
    const long n = piece.loops.depth > 0 ? rows.size[last] : 1;
    for (long row = 0; row < rows.count(); ++row) {
      long at[2] = {piece.from, piece.to}, index[max_factors] = {};
      rows.locate(row, c, at, index);
      const T* const from = static_cast<const T*>(c.operand[k].data) + at[0];
      T* const to = static_cast<T*>(c.result[0].data) + at[1];
      for (long i = 0; i < n; ++i) to[i * rows.stride[1][last]] = from[i * rows.stride[0][last]];
    }
  }
}

/// Adds a gradient to those of earlier micro-batches, in place.
template <class T>
void run_accumulate(const call& c) {
  long n = 1;
  for (int f = 0; f < c.factors; ++f) n *= c.size[f];
  T* sum = static_cast<T*>(c.result[0].data);
  const T* g = static_cast<const T*>(c.operand[1].data);
  for (long i = 0; i < n; ++i) sum[i] = c.first ? g[i] : sum[i] + g[i];
}

/// Queues of experts, group by group: see queue_places. A dimension may be cut into several factors; shards are
/// contiguous.
template <class T>
void run_queue_places(const call& c) {
  const pattern& dims = c.r().operands[0];
  long size[3] = {1, 1, 1};
  for (int d = 0; d < dims.factors.size(); ++d) size[dims.group[d]] *= c.size[dims.factors[d]];
  const auto [groups, tokens, experts] = size;
  const long choices = static_cast<long>(c.op->scalars[0]);
  thrust::for_each_n(
      thrust::cpp::par, thrust::counting_iterator<long>(0), groups,
      [&, tokens = tokens, experts = experts](long group) {
        const T* gate = static_cast<const T*>(c.operand[0].data) + group * tokens * experts;
        T* place = static_cast<T*>(c.result[0].data) + group * tokens * experts;
        std::fill_n(place, tokens * experts, T(0));
        std::vector<long> waiting(static_cast<std::size_t>(experts), 0);
        for (long k = 0; k < choices; ++k)
          for (long s = 0; s < tokens; ++s) {
            long best = -1;  // of those not chosen yet
            for (long e = 0; e < experts; ++e)
              if (place[s * experts + e] == T(0) && (best < 0 || gate[s * experts + e] > gate[s * experts + best]))
                best = e;
            const T p = static_cast<T>(++waiting[static_cast<std::size_t>(best)]);
            place[s * experts + best] = k == 0 ? p : -p;
          }
      });
}

/// Dropout of a shard: random words belong to places in the whole tensor.
template <class T>
void run_dropout(const call& c) {
  const pattern& dims = c.r().operands[0];
  const int rank = dims.factors.size();
  const T* const in = static_cast<const T*>(c.operand[0].data);
  T* const out = static_cast<T*>(c.result[0].data);
  const std::uint32_t least = dropout_t::least(c.op->scalars[0]);
  const T scale = static_cast<T>(1 / (1 - c.op->scalars[0]));
  const auto pass = static_cast<std::uint64_t>(c.step * c.passes + c.pass);
  long rows = 1;
  for (int d = 0; d + 1 < rank; ++d) rows *= c.size[dims.factors[d]];
  const long n = rank > 0 ? c.size[dims.factors[rank - 1]] : 1;
  thrust::for_each_n(thrust::cpp::par, thrust::counting_iterator<long>(0), rows, [&](long row) {
    long first = rank > 0 ? c.start[dims.factors[rank - 1]] : 0, rest = row,
         step = 1;  // global index of the row's first element
    for (int d = rank - 1; d >= 0; --d) {
      const int f = dims.factors[d];
      if (d + 1 < rank) {
        first += (c.start[f] + rest % c.size[f]) * step;
        rest /= c.size[f];
      }
      step *= c.op->whole_of(f);
    }
    const T* const x = in + row * n;
    T* const y = out + row * n;
    for (long k = 0; k < n;) {
      const long at = (first + k) % 4;
      const auto words = dropout_t::words(c.seed, c.forward, pass, static_cast<std::uint64_t>((first + k) / 4));
      for (long j = at; j < 4 && k < n; ++j, ++k)
        y[k] = words.v[static_cast<std::size_t>(j)] >= least ? x[k] * scale : T(0);
    }
  });
}

/// Kernels for numbers of type T.
template <class T>
class kernels {
 public:
  using function = kernel_function;

  /// The operators of the catalogue.
  kernels();

  /// Operators of the user's own, with what their functors' derivatives need.
  template <class... Op>
  void add() {
    (add_one<Op>(std::make_index_sequence<static_cast<std::size_t>(bare_rule<Op>.operands.size())>{}), ...);
  }
  void add(const own_kernel& k) {
    table_[k.op] = std::is_same_v<T, double> ? k.in_float64 : std::is_same_v<T, float> ? k.in_float32 : k.in_bfloat16;
  }

  /// Throws bad_input with the operator's name if there is no kernel for it.
  function find(const op_info& op) const {
    if (const function known = found(op)) return known;
    throw host_kernels_missing({{std::string(op.type), std::string(op.label)}});
  }
  /// The same, with the names of all operators of a graph that have none.
  function find(const op_info& op, const graph& g) const {
    if (const function known = found(op)) return known;
    throw host_kernels_missing(missing_in(g, [this](const op_info& o) { return found(o) != nullptr; }));
  }

 private:
  using wide = wide_t<T>;

  function found(const op_info& op) const {
    switch (op.body) {
      case op_body::product: return stored_as<T, &run_product<wide>>();
      case op_body::unstack: return stored_as<T, &run_unstack<wide, false>>();
      case op_body::stack: return stored_as<T, &run_unstack<wide, true>>();
      case op_body::pieces: return stored_as<T, &run_pieces<wide>>();
      case op_body::update: return update_of<T>(op);
      case op_body::accumulate: return stored_as<T, &run_accumulate<wide>>();
      case op_body::map:
      case op_body::scan:  // devices have it themselves
      case op_body::routine: break;
    }
    const auto at = table_.find(rearranges(op) ? &info<copy_t> : &op);
    return at == table_.end() ? nullptr : at->second;
  }

  template <class... Op>
  void add_all(op_list<Op...>) {
    add<Op...>();
  }
  template <class Op, std::size_t... I>
  void add_one(std::index_sequence<I...>) {
    if constexpr (Op::body == op_body::map) {
      table_[&info<Op>] = stored_as<T, &run_map<Op, wide>, Op::index_operand>();
      if constexpr (has_slopes<Op>) (add_slope<Op, static_cast<int>(I)>(), ...);
    }
  }
  template <class Op, int I>
  void add_slope() {
    if constexpr (I != Op::index_operand)
      table_[&info<slope<Op, I>>] = stored_as<T, &run_map<slope<Op, I>, wide>, Op::index_operand>();
  }

  std::unordered_map<const op_info*, function> table_;
};

// Not inline: a program of many files may compile the catalogue once (see below).
template <class T>
kernels<T>::kernels() {
  add_all(catalogue{});
  table_[&info<queue_places_t>] = stored_as<T, &run_queue_places<wide>>();
  table_[&info<dropout_t>] = table_[&info<cfp::detail::dropout_input_t>] =
      stored_as<T, &run_dropout<wide>>();  // the same elements fall out
}

// With CFP_KERNELS_ELSEWHERE defined, one file without it must hold
// `template class cfp::host::kernels<float>;`, and the same for double and bfloat16 if they are used.
#if defined(CFP_KERNELS_ELSEWHERE) || defined(CFP_COMPILED)
extern template class kernels<float>;
extern template class kernels<double>;
extern template class kernels<bf16>;
#endif

}  // namespace cfp::host
