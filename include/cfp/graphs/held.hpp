// What a name in a file stands for, while its graph is read.
#pragma once

#include <cfp/graphs/constant.hpp>
#include <cfp/graphs/tensor_view.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// What the file gives and the graph has not asked for yet: whether it becomes an input of numbers, one of indices, a
/// weight, or nothing, says who reads it.
struct given_tensor {
  std::string label;
  std::vector<std::string> names;  ///< of its dimensions, where the file has any
  std::vector<long> shape;
  bool is_weight = false, is_whole = false;
  std::string_view floats{};       ///< a weight's numbers as they lie in the file, or nothing
  int numbers = -1, indices = -1;  ///< what was declared for it
  long below = 0;                  ///< indices are taken to be from 0 on and below this; 0: nothing is taken
};

/// A tensor: seen through reshapes and transposes, known, or both given and not yet declared.
struct held {
  std::vector<long> shape;                ///< as the file has it; the graph's tensors have no dimensions of one element
  bool is_whole = false;                  ///< whole numbers or truth values
  known_constant known{};                 ///< where the file tells its numbers
  std::shared_ptr<given_tensor> given{};  ///< stored by the file
  int id = -1;                            ///< stored by the graph
  tensor_view view{};
  std::shared_ptr<int> moved = std::make_shared<int>(-1);  ///< where a movement made what is seen

  bool is_scalar_of_floats() const { return !is_whole && elements_of(shape) == 1; }
};

/// Dimensions of more than one element, called by the file or by their sizes.
inline tensor_view view_of(const std::vector<long>& shape, const std::vector<std::string>& names = {}) {
  std::vector<std::pair<std::string, long>> dims;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1)
      dims.emplace_back(d < names.size() && !names[d].empty() ? names[d] : name_of_size(shape[d]), shape[d]);
  return tensor_view(dims);
}
inline held held_constant(constant c) {
  held out;
  out.shape = c.shape;
  out.is_whole = c.whole;
  out.view = view_of(c.shape);
  out.known = std::make_shared<const constant>(std::move(c));
  return out;
}
inline held held_given(const std::shared_ptr<given_tensor>& t) {
  held out;
  out.shape = t->shape;
  out.is_whole = t->is_whole;
  out.view = view_of(t->shape, t->names);
  out.given = t;
  return out;
}

}  // namespace cfp::graphs
