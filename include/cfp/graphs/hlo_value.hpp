// What an instruction of HLO stands for: shapes are written out there, and what is repeated along a dimension is held
// once.
#pragma once

#include <cfp/graphs/row_operators.hpp>

#include <cstddef>
#include <vector>

namespace cfp::inline v0_1::graphs {

struct hlo_value {
  held small;                      ///< of as many dimensions; where it has one element and `shape` more it is repeated
  std::vector<long> shape;         ///< as the file has it
  std::vector<hlo_value> parts{};  ///< of a tuple

  bool is_repeated() const { return small.shape != shape; }
};

inline hlo_value hlo_whole(held h) {
  hlo_value out;
  out.shape = h.shape;
  out.small = std::move(h);
  return out;
}

/// All of its elements. Indices cannot be repeated.
inline held written_out(primitives& p, const hlo_value& v) {
  if (!v.is_repeated()) return v.small;
  if (v.small.known) {
    checked_known(v.shape);
    return held_constant({v.shape, spread(*v.small.known, v.shape), v.small.is_whole});
  }
  return p.expanded(v.small, v.shape);
}

/// The operand's dimension i becomes dimension `dims[i]` of the result.
inline hlo_value repeated(primitives& p, const hlo_value& v, const std::vector<long>& dims,
                          const std::vector<long>& shape) {
  if (dims.size() != v.shape.size()) throw bad_input("its dimensions are not as many as its operand's");
  std::vector<long> small(shape.size(), 1);
  long last = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] <= last || dims[i] >= static_cast<long>(shape.size()) ||
        (v.shape[i] != 1 && v.shape[i] != shape[static_cast<std::size_t>(dims[i])]))
      throw bad_input("its operand " + shape_text(v.shape) + " does not become " + shape_text(shape) + " along " +
                      shape_text(dims));
    last = dims[i];
    small[static_cast<std::size_t>(last)] = v.small.shape[i];
  }
  return {p.reshaped(v.small, small), shape};
}

inline hlo_value seen_as(primitives& p, const hlo_value& v, const std::vector<long>& shape) {
  if (elements_of(shape) != elements_of(v.shape))
    throw bad_input("a tensor " + shape_text(v.shape) + " cannot be seen as " + shape_text(shape));
  if (!v.is_repeated()) return hlo_whole(p.reshaped(v.small, shape));
  if (elements_of(v.small.shape) == 1) return {p.reshaped(v.small, std::vector<long>(shape.size(), 1)), shape};
  if (without_ones(shape) != without_ones(v.shape)) return hlo_whole(p.reshaped(written_out(p, v), shape));
  std::vector<long> own, small;
  for (std::size_t d = 0; d < v.shape.size(); ++d)
    if (v.shape[d] != 1) own.push_back(v.small.shape[d]);
  std::size_t at = 0;
  for (const long n : shape) small.push_back(n == 1 ? 1 : own[at++]);
  return {p.reshaped(v.small, small), shape};
}

}  // namespace cfp::graphs
