// The loops themselves, one index at a time: plain ones, for it is layouts that are tested and not speed. They know
// numbers and sizes and no layouts: nvcc spells the names of kernels, and cannot spell one with a layout in it.
#pragma once

#include <cfp/core.hpp>

#include <cmath>

namespace trainer {

/// Between -1 and 1, by nothing but the two numbers: equal on every mesh and every machine.
CFP_HOST_DEVICE inline double noise(unsigned long seed, long index) {
  unsigned long x = seed * 0x9e3779b97f4a7c15UL + static_cast<unsigned long>(index);
  for (int round = 0; round < 3; ++round) x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9UL;
  return static_cast<double>(x >> 11) * 0x1p-52 - 1;
}

/// Where the piece of a device lies in the whole tensor.
struct piece {
  int rank = 0;
  long local[cfp::max_dims]{}, first[cfp::max_dims]{}, whole[cfp::max_dims]{};

  CFP_HOST_DEVICE long global(long i) const {
    long at = 0, stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      at += (first[d] + i % local[d]) * stride;
      i /= local[d];
      stride *= whole[d];
    }
    return at;
  }
};

/// The loops of a sum of products: the first `outer` of `all` run over the result, the others over what is summed. How
/// often each runs, and how far each moves in the two operands.
struct loops {
  int outer = 0, all = 0;
  long times[cfp::max_factors]{}, move[2][cfp::max_factors]{};

  constexpr long count(int from, int to) const {
    long n = 1;
    for (int f = from; f < to; ++f) n *= times[f];
    return n;
  }
  /// Where pass `i` of loops [from, to) stands in an operand.
  CFP_HOST_DEVICE long at(int operand, long i, int from, int to) const {
    long where = 0;
    for (int f = to - 1; f >= from; --f) {
      where += i % times[f] * move[operand][f];
      i /= times[f];
    }
    return where;
  }
};

template <class Machine, class N>
void copy(Machine& machine, const N* in, N* out, long size) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) { out[i] = in[i]; });
}
/// Weights to begin with, and tokens: by their places in the whole tensor, so that they are equal on every mesh.
template <class Machine, class N>
void fill(Machine& machine, N* out, long size, const piece& here, unsigned long seed, N middle, N spread) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) { out[i] = middle + spread * N(noise(seed, here.global(i))); });
}
template <class Machine>
void make_batch(Machine& machine, int* tokens, int* targets, long size, const piece& here, unsigned long seed,
                long words) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    const long word = static_cast<long>((noise(seed, here.global(i)) + 1) / 2 * static_cast<double>(words)) % words;
    tokens[i] = static_cast<int>(word);
    targets[i] = static_cast<int>((7 * word + 3) % words);
  });
}
template <class Machine, class N>
void nudge(Machine& machine, N* x, long size, const piece& here, long element, N by) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    if (here.global(i) == element) x[i] += by;
  });
}

/// From [major][minor][run] to [minor][major][run].
template <class Machine, class N>
void transpose(Machine& machine, const N* in, N* out, long major, long minor, long run) {
  machine.each(major * minor * run, [=] CFP_HOST_DEVICE(long i) {
    out[(i / run % minor * major + i / run / minor) * run + i % run] = in[i];
  });
}
/// Piece `own` of every so many.
template <class Machine, class N>
void cut(Machine& machine, const N* in, N* out, long size, long run, long own, long pieces) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) { out[i] = in[(i / run * pieces + own) * run + i % run]; });
}

template <class Machine, class N>
void sum_products(Machine& machine, const loops& l, const N* a, const N* b, N* out, long size) {
  const long inner = l.count(l.outer, l.all);
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    const long a_from = l.at(0, i, 0, l.outer), b_from = l.at(1, i, 0, l.outer);
    N sum = 0;
    for (long k = 0; k < inner; ++k) {
      const N x = a[a_from + l.at(0, k, l.outer, l.all)];
      sum += b == nullptr ? x : x * b[b_from + l.at(1, k, l.outer, l.all)];
    }
    out[i] = sum;
  });
}

template <class Machine, class N>
void add(Machine& machine, const N* x, const N* y, N* out, long size) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) { out[i] = x[i] + y[i]; });
}
/// Adds what is shorter, again and again.
template <class Machine, class N>
void add_rows(Machine& machine, N* x, const N* row, long size, long length) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) { x[i] += row[i % length]; });
}

template <class N>
struct moments {
  N mean, scale;
};
template <class N>
CFP_HOST_DEVICE moments<N> moments_of(const N* row, long length) {
  N mean = 0, square = 0;
  for (long m = 0; m < length; ++m) mean += row[m] / N(length);
  for (long m = 0; m < length; ++m) square += (row[m] - mean) * (row[m] - mean) / N(length);
  return {mean, 1 / std::sqrt(square + N(1e-5))};
}
template <class Machine, class N>
void normalise(Machine& machine, const N* x, N* out, long rows, long length) {
  machine.each(rows, [=] CFP_HOST_DEVICE(long r) {
    const moments<N> of = moments_of(x + r * length, length);
    for (long i = r * length; i < (r + 1) * length; ++i) out[i] = (x[i] - of.mean) * of.scale;
  });
}
template <class Machine, class N>
void scale_and_shift(Machine& machine, N* x, const N* gain, const N* bias, long size, long length) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) { x[i] = x[i] * gain[i % length] + bias[i % length]; });
}
template <class Machine, class N>
void normalise_gradient(Machine& machine, const N* x, const N* dy, const N* gain, N* dx, long rows, long length) {
  machine.each(rows, [=] CFP_HOST_DEVICE(long r) {
    const moments<N> of = moments_of(x + r * length, length);
    N mean = 0, along = 0;
    for (long m = 0; m < length; ++m) {
      const N d = dy[r * length + m] * gain[m] / N(length);
      mean += d;
      along += d * (x[r * length + m] - of.mean) * of.scale;
    }
    for (long m = 0; m < length; ++m) {
      const long i = r * length + m;
      dx[i] = of.scale * (dy[i] * gain[m] - mean - (x[i] - of.mean) * of.scale * along);
    }
  });
}

/// Softmax over the keys that a query may see, in place: those up to itself.
template <class Machine, class N>
void causal_softmax(Machine& machine, N* x, N scale, long rows, long queries, long keys) {
  machine.each(rows, [=] CFP_HOST_DEVICE(long r) {
    N* const row = x + r * keys;
    const long seen = r % queries + 1;
    N most = row[0], total = 0;
    for (long k = 1; k < seen; ++k) most = row[k] > most ? row[k] : most;
    for (long k = 0; k < seen; ++k) total += row[k] = std::exp(scale * (row[k] - most));
    for (long k = 0; k < keys; ++k) row[k] = k < seen ? row[k] / total : 0;
  });
}
/// Of the scores, in place of the gradient of the weights.
template <class Machine, class N>
void softmax_gradient(Machine& machine, const N* weights, N* d, N scale, long rows, long keys) {
  machine.each(rows, [=] CFP_HOST_DEVICE(long r) {
    N along = 0;
    for (long i = r * keys; i < (r + 1) * keys; ++i) along += weights[i] * d[i];
    for (long i = r * keys; i < (r + 1) * keys; ++i) d[i] = scale * weights[i] * (d[i] - along);
  });
}

/// Between [b][s][three][h][d] and [b][h][s][d]: one of the three, out of `all` or into it.
template <class Machine, class N>
void move_one_of_three(Machine& machine, N* all, N* one, int which, bool out, const cfp::extents& sizes) {
  const long seq = sizes[1], heads = sizes[3], d = sizes[4];
  machine.each(sizes[0] * heads * seq * d, [=] CFP_HOST_DEVICE(long i) {
    const long h = i / d / seq % heads, row = i / d / seq / heads * seq + i / d % seq;
    const long at = ((row * 3 + which) * heads + h) * d + i % d;
    if (out) one[i] = all[at];
    else all[at] = one[i];
  });
}

// tanh's argument is bent * (x + cubic * x^3).
inline constexpr double bent = 0.7978845608028654, cubic = 0.044715;
template <class Machine, class N>
void gelu(Machine& machine, const N* x, N* out, long size) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    out[i] = N(0.5) * x[i] * (1 + std::tanh(N(bent) * (x[i] + N(cubic) * x[i] * x[i] * x[i])));
  });
}
template <class Machine, class N>
void gelu_gradient(Machine& machine, const N* x, const N* dy, N* dx, long size) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    const N t = std::tanh(N(bent) * (x[i] + N(cubic) * x[i] * x[i] * x[i]));
    const N slope = N(bent) * (1 + 3 * N(cubic) * x[i] * x[i]);
    dx[i] = dy[i] * N(0.5) * (1 + t + x[i] * (1 - t * t) * slope);
  });
}

/// Rows of a table of which `first` and those behind it are here; zero for the others.
template <class Machine, class N>
void look_up(Machine& machine, const N* table, const int* tokens, N* out, long size, long width, long first,
             long rows) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    const long row = tokens[i / width] - first;
    out[i] = row >= 0 && row < rows ? table[row * width + i % width] : 0;
  });
}
template <class Machine, class N>
void add_look_up_gradient(Machine& machine, const N* d, const int* tokens, N* table, long size, long width, long first,
                          long count) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    for (long t = 0; t < count; ++t)
      if (tokens[t] - first == i / width) table[i] += d[t * width + i % width];
  });
}

template <class Machine, class N>
void largest_of(Machine& machine, const N* logits, N* out, long rows, long length) {
  machine.each(rows, [=] CFP_HOST_DEVICE(long r) {
    N most = logits[r * length];
    for (long i = r * length; i < (r + 1) * length; ++i) most = logits[i] > most ? logits[i] : most;
    out[r] = most;
  });
}
template <class Machine, class N>
void sum_of_exponentials(Machine& machine, const N* logits, const N* largest, N* out, long rows, long length) {
  machine.each(rows, [=] CFP_HOST_DEVICE(long r) {
    N sum = 0;
    for (long i = r * length; i < (r + 1) * length; ++i) sum += std::exp(logits[i] - largest[r]);
    out[r] = sum;
  });
}
/// The logit of the target, zero where another device has it.
template <class Machine, class N>
void pick(Machine& machine, const N* logits, const int* targets, N* out, long rows, long length, long first) {
  machine.each(rows, [=] CFP_HOST_DEVICE(long r) {
    const long at = targets[r] - first;
    out[r] = at >= 0 && at < length ? logits[r * length + at] : 0;
  });
}
template <class Machine, class N>
void cross_entropy(Machine& machine, const N* largest, const N* total, const N* picked, N* out, long rows, N share) {
  machine.each(rows, [=] CFP_HOST_DEVICE(long r) { out[r] = (std::log(total[r]) + largest[r] - picked[r]) * share; });
}
template <class Machine, class N>
void cross_entropy_gradient(Machine& machine, const N* logits, const N* largest, const N* total, const int* targets,
                            N* out, long size, long length, long first, N share) {
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    const long r = i / length;
    out[i] = (std::exp(logits[i] - largest[r]) / total[r] - N(targets[r] - first == i % length)) * share;
  });
}

/// AdamW. Epsilon is large: the gradient of the key's bias is zero but for rounding, of which Adam would make steps.
template <class Machine, class N>
void adam_step(Machine& machine, const N* gradient, N* first, N* second, N* weights, long size, int step) {
  const N rate = N(0.01), decay = N(0.01), b1 = N(0.9), b2 = N(0.99), epsilon = N(1e-3);
  const N whole1 = 1 - std::pow(b1, N(step)), whole2 = 1 - std::pow(b2, N(step));
  machine.each(size, [=] CFP_HOST_DEVICE(long i) {
    first[i] = b1 * first[i] + (1 - b1) * gradient[i];
    second[i] = b2 * second[i] + (1 - b2) * gradient[i] * gradient[i];
    weights[i] -= rate * (first[i] / whole1 / (std::sqrt(second[i] / whole2) + epsilon) + decay * weights[i]);
  });
}

}  // namespace trainer
