// Numbers that a file tells: shapes, scales, masks. Whole numbers are held as they are up to 2^53, which sizes are.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// Most elements that are computed while a graph is read.
inline constexpr long most_known = 1l << 22;

/// Counts them, of all known tensors of a file. Throws bad_input where that takes too much memory.
class known_budget {
 public:
  void take(std::size_t elements) {
    taken_ += static_cast<long>(elements);
    if (taken_ > 4 * most_known) throw bad_input("numbers that are known while it is read take too much memory");
  }

 private:
  long taken_ = 0;
};

struct constant {
  std::vector<long> shape;
  std::vector<double> at;  ///< row-major
  bool whole = false;      ///< whole numbers or truth values

  /// Whether it is one number, however often.
  bool is_uniform() const {
    for (const double x : at)
      if (!(x == at.front())) return false;
    return !at.empty();
  }
};
using known_constant = std::shared_ptr<const constant>;

/// How many elements there are; -1 where that is no number that memory could hold, or a size is negative.
inline long elements_of(const std::vector<long>& shape) {
  long out = 1;
  for (const long n : shape) {
    if (n < 0 || (n > 0 && out > (1l << 56) / n)) return -1;
    out *= n;
  }
  return out;
}

/// "[4 128 768]".
inline std::string shape_text(const std::vector<long>& shape) {
  std::string out;
  for (const long n : shape) out += (out.empty() ? "[" : " ") + std::to_string(n);
  return out.empty() ? "[]" : out + "]";
}

/// The shape without dimensions of one element.
inline std::vector<long> without_ones(const std::vector<long>& shape) {
  std::vector<long> out;
  for (const long n : shape)
    if (n != 1) out.push_back(n);
  return out;
}

/// How far apart neighbours along each dimension lie.
inline std::vector<long> strides_of(const std::vector<long>& shape) {
  std::vector<long> out(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) out[d - 1] = out[d] * shape[d];
  return out;
}

/// What two shapes become together, aligned at their ends; false where they do not fit.
inline bool broadcast(std::vector<long>& all, const std::vector<long>& other) {
  if (other.size() > all.size()) all.insert(all.begin(), other.size() - all.size(), 1);
  for (std::size_t d = 0; d < other.size(); ++d) {
    long& a = all[all.size() - other.size() + d];
    if (a == 1) a = other[d];
    else if (other[d] != 1 && other[d] != a) return false;
  }
  return true;
}

/// The elements of a constant as they lie in a larger shape.
inline std::vector<double> spread(const constant& c, const std::vector<long>& shape) {
  const std::vector<long> mine = strides_of(c.shape), whole = strides_of(shape);
  const std::size_t lead = shape.size() - c.shape.size();
  std::vector<double> out(static_cast<std::size_t>(elements_of(shape)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    long from = 0;
    for (std::size_t d = 0; d < c.shape.size(); ++d)
      if (c.shape[d] != 1) from += static_cast<long>(i) / whole[lead + d] % shape[lead + d] * mine[d];
    out[i] = c.at[static_cast<std::size_t>(from)];
  }
  return out;
}

/// How many elements a known tensor of this shape has. Throws bad_input where they are too many.
inline long checked_known(const std::vector<long>& shape) {
  const long n = elements_of(shape);
  if (n < 0 || n > most_known) throw bad_input("a known tensor would have the shape " + shape_text(shape));
  return n;
}

/// Each element of the result from where `place` says.
template <class Place>
constant taken(const constant& from, const std::vector<long>& shape, const Place& place) {
  constant out{shape, {}, from.whole};
  const std::vector<long> strides = strides_of(shape);
  const long n = checked_known(shape);
  std::vector<long> at(shape.size());
  for (long i = 0; i < n; ++i) {
    for (std::size_t d = 0; d < shape.size(); ++d) at[d] = i / strides[d] % shape[d];
    out.at.push_back(from.at[static_cast<std::size_t>(place(at))]);
  }
  return out;
}

/// Its dimensions in another order.
inline constant permuted(const constant& c, const std::vector<std::size_t>& order) {
  const std::vector<long> strides = strides_of(c.shape);
  std::vector<long> shape;
  for (const std::size_t d : order) shape.push_back(c.shape[d]);
  return taken(c, shape, [&](const std::vector<long>& at) {
    long place = 0;
    for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * strides[order[d]];
    return place;
  });
}

}  // namespace cfp::graphs
