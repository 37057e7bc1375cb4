// A contraction of two operands as matrix products, for a matrix library: factors are sorted into rows, columns, sums
// and loops.
#pragma once

#include <cfp/program/call.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

namespace detail {

// Factors that stand in the same two tensors, merged from the inside as far as both walk evenly.
struct merged {
  long size = 1;
  long stride[3] = {1, 1, 1};
  list<int, max_factors> rest;  // factors that did not merge: loops around
};

inline merged merge(const call& c, const list<int, max_factors>& factors, const call_tensor* const* t, int x, int y) {
  merged out;
  bool open = true;
  for (int i = factors.size() - 1; i >= 0; --i) {
    const int f = factors[i];
    if (c.size[f] == 1) continue;
    const bool first = out.size == 1;
    const bool even = t[x]->stride[f] == out.stride[x] * out.size && t[y]->stride[f] == out.stride[y] * out.size;
    if (open && (first || even)) {
      if (first)
        for (int k = 0; k < 3; ++k) out.stride[k] = t[k]->stride[f];
      out.size *= c.size[f];
    } else {
      open = false;
      out.rest.push(f);
    }
  }
  return out;
}

inline bool has_unit(const merged& x, const merged& y, int tensor) {
  return x.size == 1 || y.size == 1 || x.stride[tensor] == 1 || y.stride[tensor] == 1;
}

}  // namespace detail

/// c (rows x columns) = a (rows x sums) b (sums x columns), row-major, over and over: tensor 0 is a, 1 is b, 2 the
/// result; where `swapped` operand 1 of the contraction is a. A transposed matrix lies as its transpose would.
struct matrix_product {
  long rows = 1, columns = 1, sums = 1;
  bool transposed[2] = {};
  long leading[3] = {};  ///< elements from one row (of a transposed matrix: column) to the next
  bool swapped = false;
  int loops = 0, plain = 0;                                  ///< those from `plain` on add to the result
  long size[max_factors] = {}, stride[3][max_factors] = {};  ///< of loops, outermost first

  long repeats() const {
    long n = 1;
    for (int l = 0; l < loops; ++l) n *= size[l];
    return n;
  }
  /// Without a loop, one of those that do not add.
  void drop(int loop) {
    const auto out = [&](long* of) { std::copy(of + loop + 1, of + max_factors, of + loop); };
    out(size);
    for (auto& of : stride) out(of);
    --loops;
    --plain;
  }
  /// Where the matrices of a repeat begin, and whether it adds to the result.
  bool locate(long repeat, long (&at)[3]) const {
    bool adds = false;
    at[0] = at[1] = at[2] = 0;
    for (int l = loops - 1; l >= 0; --l) {
      const long q = repeat % size[l];
      repeat /= size[l];
      for (int x = 0; x < 3; ++x) at[x] += q * stride[x][l];
      adds = adds || (l >= plain && q > 0);
    }
    return adds;
  }
};

namespace detail {

// Loops that walk evenly in all three tensors become one; those from number `plain` on add to the result.
inline void add_loops(matrix_product& out, const call& c, const call_tensor* const* t,
                      const list<int, max_factors>& loops, int plain) {
  const int order[3] = {out.swapped ? 1 : 0, out.swapped ? 0 : 1, 2};
  for (int i = 0; i < loops.size(); ++i) {
    const int f = loops[i];
    if (c.size[f] == 1) continue;
    bool even = out.loops > 0 && (i < plain || out.loops > out.plain);  // merges with the loop around it
    for (int x = 0; x < 3 && even; ++x) even = out.stride[x][out.loops - 1] == t[order[x]]->stride[f] * c.size[f];
    const int at = even ? out.loops - 1 : out.loops++;
    out.size[at] = (even ? out.size[at] : 1) * c.size[f];
    for (int x = 0; x < 3; ++x) out.stride[x][at] = t[order[x]]->stride[f];
    if (i < plain) out.plain = out.loops;
  }
}

}  // namespace detail

/// The result is the sum over shared factors of operand 0 times operand 1.
inline matrix_product as_matrices(const call& c) {
  const rule& r = c.r();
  const call_tensor* t[3] = {&c.operand[0], &c.operand[1], &c.result[0]};
  list<int, max_factors> rows, columns, sums, loops;
  const auto sorted = [&](const pattern& order, auto&& wanted, list<int, max_factors>& into) {
    for (signed char f : order.factors)
      if (wanted(f)) into.push(f);
  };
  const auto in = [&](int tensor, int f) {
    return tensor < 2 ? r.operands[tensor].dim_of(f) >= 0 : r.results[0].dim_of(f) >= 0;
  };
  sorted(
      r.results[0], [&](int f) { return in(0, f) && !in(1, f); }, rows);
  sorted(
      r.results[0], [&](int f) { return in(1, f) && !in(0, f); }, columns);
  sorted(
      r.results[0], [&](int f) { return in(0, f) && in(1, f); }, loops);
  sorted(
      r.operands[0], [&](int f) { return in(1, f) && !in(2, f); }, sums);
  detail::merged m = detail::merge(c, rows, t, 0, 2), n = detail::merge(c, columns, t, 1, 2);
  const detail::merged k = detail::merge(c, sums, t, 0, 1);
  // A matrix that no direction walks by one becomes vectors, which may have any stride.
  if (!detail::has_unit(m, k, 0) || !detail::has_unit(m, n, 2)) m = {1, {1, 1, 1}, rows};
  if (!detail::has_unit(k, n, 1)) n = {1, {1, 1, 1}, columns};
  for (int f : m.rest) loops.push(f);
  for (int f : n.rest) loops.push(f);
  const int plain = loops.size();
  for (int f : k.rest) loops.push(f);

  // Each matrix has one unit stride; a result whose rows are the unit ones is computed transposed.
  const auto leading = [](long outer_stride, long outer_size, long inner_size) {
    return outer_size > 1 ? outer_stride : (inner_size > 1 ? inner_size : 1);
  };
  const bool a_plain = k.size == 1 || k.stride[0] == 1, b_plain = n.size == 1 || n.stride[1] == 1;
  const long lda = a_plain ? leading(m.stride[0], m.size, k.size) : leading(k.stride[0], k.size, m.size);
  const long ldb = b_plain ? leading(k.stride[1], k.size, n.size) : leading(n.stride[1], n.size, k.size);
  matrix_product out;
  out.swapped = n.size > 1 && n.stride[2] != 1;
  out.sums = k.size;
  if (out.swapped) {
    out.rows = n.size, out.columns = m.size;
    out.transposed[0] = b_plain, out.transposed[1] = a_plain;
    out.leading[0] = ldb, out.leading[1] = lda;
    out.leading[2] = leading(n.stride[2], n.size, m.size);
  } else {
    out.rows = m.size, out.columns = n.size;
    out.transposed[0] = !a_plain, out.transposed[1] = !b_plain;
    out.leading[0] = lda, out.leading[1] = ldb;
    out.leading[2] = leading(m.stride[2], m.size, n.size);
  }
  detail::add_loops(out, c, t, loops, plain);
  return out;
}

}  // namespace cfp
