// What a model's function writes: tensors, their dimensions, and sizes that they do not show.
#pragma once

#include <cfp/model/source_place.hpp>

namespace cfp::inline v0_1 {

/// A named dimension of a weight or an input. A name behind '~' is equal to every name, as that which only a rule gave:
/// `{"~keys", n}` of positions, for the keys are called otherwise. A name that is too long is said with the place where
/// it is written.
struct dimension {
  name label;
  long size = 0;

  constexpr dimension(std::string_view called, long elements, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE())
      : label(named_at<name>({file, line}, called)), size(elements) {}
};

/// Size of a factor that the operands do not show: `split_qkv(x, size_of{"three", 3}, size_of{"h", 12})`.
struct size_of {
  name factor;
  long size = 0;

  constexpr size_of() = default;
  constexpr size_of(std::string_view called, long elements, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE())
      : factor(named_at<name>({file, line}, called)), size(elements) {}
};

class model;

/// A handle of a value of the graph being traced.
struct tensor {
  model* net = nullptr;
  int id = -1;
};

/// What an operator is called with first, and where.
struct first_operand {
  tensor value;
  source_place at;

  constexpr first_operand(const tensor& first, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : value(first), at{file, line} {}
};

}  // namespace cfp
