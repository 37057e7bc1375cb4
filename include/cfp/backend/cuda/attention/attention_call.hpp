// One fused attention on one GPU: sizes, strides and pointers.
#pragma once

#include <cfp/backend/cuda/kernel/kernel.hpp>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace cfp::inline v0_1::cuda {

inline constexpr float infinite = std::numeric_limits<float>::infinity();

/// Rows of `depth` neighbouring numbers of 16 bits; how far the next batch, head, query of a group, and row lie, in
/// numbers. Keys and values have no groups: their step is 0.
struct attention_tensor {
  void* data = nullptr;
  long batch = 0, head = 0, group = 0, row = 0;
};

/// What the operators `scores`, `masked_max`, `masked_sum`, `masked_softmax` and `weighted_sum` are told together, or
/// the grouped ones. Queries see keys up to their own global index + reach. `max` and `sum` are the statistics of these
/// names: of every query, without gaps, in the order batch, head, group, row.
struct attention_call {
  long batch = 1, heads = 1, group = 1;   ///< heads of keys and values; `group` heads of queries to each
  long queries = 0, keys = 0, depth = 0;  ///< of the local piece
  long first_query = 0, first_key = 0;    ///< global indices of its first elements
  double scale = 1, reach = 0;
  attention_tensor q, k, v, out;
  float *max = nullptr, *sum = nullptr;
  attention_tensor d_out, dq, dk, dv;  ///< backward only: gradients of the result, and of the operands
  void* workspace = nullptr;           ///< backward only: attention_workspace bytes, aligned to 16
};

/// Rows of a head in the workspace come in multiples.
inline constexpr int attention_padding = 64;

/// Heads of queries, of all batches.
inline long attention_heads(const attention_call& c) { return c.batch * c.heads * c.group; }
inline long attention_padded(const attention_call& c) {
  return (c.queries + attention_padding - 1) / attention_padding * attention_padding;
}
inline long attention_workspace(const attention_call& c) {
  return attention_heads(c) * attention_padded(c) * static_cast<long>(sizeof(pack<float, 2>));
}

/// Whether the kernels can do it: numbers of 16 bits, rows aligned to 16 bytes, a depth of 128 at most, a scale above
/// 0. Tensors without data do not take part.
inline bool attention_fits(const attention_call& c) {
  constexpr long most = 1L << 28, step = 8;  // rows, so that sums of some fit 32 bits; numbers in 16 bytes
  if (!(c.scale > 0) || std::isinf(c.scale)) return false;
  if (c.depth <= 0 || c.depth > 128 || c.depth % step != 0) return false;
  if (c.queries > most || c.keys > most || attention_heads(c) > most) return false;
  if (attention_heads(c) * ((c.queries > c.keys ? c.queries : c.keys) / attention_padding + 1) >
      std::numeric_limits<int>::max())
    return false;  // blocks
  if (c.k.group != 0 || c.v.group != 0 || c.dk.group != 0 || c.dv.group != 0) return false;
  for (const attention_tensor* x : {&c.q, &c.k, &c.v, &c.out, &c.d_out, &c.dq, &c.dk, &c.dv}) {
    if (reinterpret_cast<std::uintptr_t>(x->data) % 16 != 0) return false;
    if (x->row < 0 || x->row > (1L << 23)) return false;  // a tile's places are counted in 32 bits
    for (const long s : {x->batch, x->head, x->group, x->row})
      if (s % step != 0) return false;
  }
  return reinterpret_cast<std::uintptr_t>(c.workspace) % 16 == 0;
}

struct attention_head {
  int batch, head, group;
};

/// What the kernels hold: the call, and what follows from it.
struct attention_view {
  attention_call c;
  int heads, group, queries, keys, depth;
  int ahead;  ///< query q sees keys k <= q + ahead, both counted in the local piece
  float scale;
  float power;  ///< exp(scale x) = 2^(power x)
  long padded;  ///< rows of a head in the workspace

  explicit attention_view(const attention_call& call)
      : c(call), heads(static_cast<int>(c.heads)), group(static_cast<int>(c.group)),
        queries(static_cast<int>(c.queries)), keys(static_cast<int>(c.keys)), depth(static_cast<int>(c.depth)),
        scale(static_cast<float>(c.scale)), power(static_cast<float>(c.scale * 1.4426950408889634)),
        padded(attention_padded(c)) {
    // Beyond these bounds it makes no difference; no number sees nothing.
    const double far = std::floor(c.reach + static_cast<double>(c.first_query - c.first_key));
    ahead = far >= static_cast<double>(keys)      ? keys
            : far > -static_cast<double>(queries) ? static_cast<int>(far)
                                                  : -queries;
  }

  /// How many of the keys query `q` sees: the first ones.
  CFP_DEVICE int seen(int q) const {
    const int to = q + ahead + 1;
    return to < 0 ? 0 : to < keys ? to : keys;
  }

  /// Heads of queries, those of a group beside each other.
  CFP_DEVICE attention_head head(long number) const {
    const int i = static_cast<int>(number), all = heads * group;
    return {i / all, i % all / group, i % group};
  }
  CFP_DEVICE long number(const attention_head& h) const { return (h.batch * heads + h.head) * group + h.group; }

  /// Where the rows of a head begin.
  template <class T>
  CFP_DEVICE T* rows(const attention_tensor& x, const attention_head& h) const {
    return static_cast<T*>(x.data) + h.batch * x.batch + h.head * x.head + h.group * x.group;
  }
  CFP_DEVICE pack<float, 2>* workspace(const attention_head& h) const {
    return static_cast<pack<float, 2>*>(c.workspace) + number(h) * padded;
  }
};

}  // namespace cfp::cuda
