// What a model's function writes: tensors, their dimensions, and sizes that they do not show.
#pragma once

#include <cfp/core/text.hpp>

namespace cfp::inline v0_1 {

/// A named dimension of a weight or an input. A name behind '~' is equal to every name, as that which only a rule gave:
/// `{"~keys", n}` of positions, for the keys are called otherwise.
struct dimension {
  name label;
  long size = 0;

  constexpr dimension(const name& called, long elements) : label(called), size(elements) {}
};

/// Size of a factor that the operands do not show: `split_qkv(x, size_of{"three", 3}, size_of{"h", 12})`.
struct size_of {
  name factor;
  long size = 0;
};

class model;

/// A handle of a value of the graph being traced.
struct tensor {
  model* net = nullptr;
  int id = -1;
};

/// Where something was called, as the compiler says it: a default argument that is the caller's place.
struct source_place {
  const char* file = nullptr;
  int line = 0;
};

/// What an operator is called with first, and where.
struct first_operand {
  tensor value;
  source_place at;

  constexpr first_operand(const tensor& first, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : value(first), at{file, line} {}
};

}  // namespace cfp
