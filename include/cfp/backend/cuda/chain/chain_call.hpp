// A chain bound to memory: rows, sizes, strides and pointers.
#pragma once

#include <cfp/backend/cuda/chain/chain.hpp>
#include <cfp/backend/cuda/kernel/divisor.hpp>

#include <cstdint>

namespace cfp::inline v0_1::cuda {

inline constexpr int max_rows = 8;     ///< dimensions of rows
inline constexpr int max_scalars = 8;  ///< of a step

/// The longest row of a chain with steps that gather, where 16 bytes hold `width` numbers; a multiple of that.
constexpr long longest_gathered(int width) { return 256L * 4 * width; }

/// A tensor, and how far a step along each dimension moves in it, in elements; 0 where it lacks the dimension.
struct chain_tensor {
  void* data = nullptr;  ///< a result: null if it is not wanted
  bool wide = false;     ///< stored as float whatever T is; also said of indices, which have 32 bits too
  long stride[max_rows] = {};
  long along = 0;  ///< for a step along the row
};

/// Elements are rows of `length` numbers. Where steps reduce, either each row is reduced, or (columns) all rows to one.
struct chain_call {
  int dims = 0;  ///< dimensions of the rows, outermost first
  long size[max_rows] = {};
  long start[max_rows] = {};  ///< global index of the first
  long length = 1;
  long first = 0;      ///< global index of a row's first element
  long elements = -1;  ///< if not negative, rows follow one another in so many elements, and the last may be shorter
  chain_tensor input[max_inputs], result[max_steps];
  float scalar[max_steps][max_scalars] = {};
  signed char coordinate[max_steps][4] =
      {};  ///< of each index the step's functor reads: the dimension it is of, -1 for the row
  // Table positions (one-hot factors): an index for each row and element, and how far a position moves in each input.
  chain_tensor positions{};
  long table_first = 0, table_size = 0;
  long table_stride[max_inputs] = {};

  CFP_HOST_DEVICE long rows() const {
    long n = 1;
    for (int d = 0; d < dims; ++d) n *= size[d];
    return n;
  }
};

/// Takes the number of a row apart.
class row_order {
 public:
  row_order() = default;
  explicit row_order(const chain_call& c) : dims_(c.dims) {
    for (int d = 0; d < dims_; ++d) size_[d] = divisor(c.size[d]);
  }

  CFP_DEVICE int dims() const { return dims_; }
  /// The index in dimension d, of what is left after the dimensions within it; `row` becomes what is left for those
  /// around it.
  CFP_DEVICE long index(int d, long& row) const {
    long out;
    row = size_[d].divide(row, out);
    return out;
  }

 private:
  int dims_ = 0;
  divisor size_[max_rows];
};

}  // namespace cfp::cuda
