// Loops over the factors of an operator, with the strides of every tensor in them.
#pragma once

#include <cfp/program/call.hpp>

#include <utility>

namespace cfp::inline v0_1 {

/// A nest of loops over factors, outermost first, with the strides of every tensor in it.
template <int Tensors>
struct loop_nest {
  int depth = 0;
  long size[max_factors] = {};
  int factor[max_factors] = {};
  long stride[Tensors][max_factors] = {};

  void add(const call& c, int f, const call_tensor* const* tensors) {
    size[depth] = c.size[f];
    factor[depth] = f;
    for (int t = 0; t < Tensors; ++t) stride[t][depth] = tensors[t]->stride[f];
    ++depth;
  }
  // Merges neighbouring loops that walk all tensors evenly, except factors whose index the functor reads.
  void collapse(const rule& r) {
    for (int i = depth - 2; i >= 0; --i) {
      bool even = !is_read(r, factor[i]) && !is_read(r, factor[i + 1]);
      for (int t = 0; t < Tensors && even; ++t) even = stride[t][i] == stride[t][i + 1] * size[i + 1];
      if (!even) continue;
      size[i] *= size[i + 1];
      for (int t = 0; t < Tensors; ++t) stride[t][i] = stride[t][i + 1];
      for (int k = i + 1; k + 1 < depth; ++k) {
        size[k] = size[k + 1];
        factor[k] = factor[k + 1];
        for (int t = 0; t < Tensors; ++t) stride[t][k] = stride[t][k + 1];
      }
      --depth;
    }
  }
  // Largest strides of the first tensor outermost.
  void sort() {
    for (int i = 1; i < depth; ++i)
      for (int k = i; k > 0 && stride[0][k - 1] < stride[0][k]; --k) {
        std::swap(size[k], size[k - 1]);
        std::swap(factor[k], factor[k - 1]);
        for (auto& s : stride) std::swap(s[k], s[k - 1]);
      }
  }
  static bool is_read(const rule& r, int f) { return r.coordinate_of(f) >= 0 || r.factors[f].one_hot; }
  long count() const {
    long n = 1;
    for (int i = 0; i < depth; ++i) n *= size[i];
    return n;
  }
  // Offsets of iteration `n`, and global indices of the factors looped over.
  void locate(long n, const call& c, long* offset, long* index) const {
    for (int i = depth - 1; i >= 0; --i) {
      const long k = n % size[i];
      n /= size[i];
      for (int t = 0; t < Tensors; ++t) offset[t] += k * stride[t][i];
      index[factor[i]] = c.start[factor[i]] + k;
    }
  }
};

}  // namespace cfp
