// The numbers of a tensor of an ONNX file.
#pragma once

#include <cfp/graphs/constant.hpp>
#include <cfp/graphs/onnx_file.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// TensorProto.DataType: bytes of an element, and whether it is a whole number or a truth value. 0 bytes: not read.
struct onnx_element {
  long bytes = 0;
  bool whole = false;
};
constexpr onnx_element onnx_element_of(long type) {
  switch (type) {
    case 1: return {4, false};
    case 10: return {2, false};
    case 16: return {2, false};
    case 11: return {8, false};
    case 2: return {1, true};
    case 3: return {1, true};
    case 9: return {1, true};
    case 4: return {2, true};
    case 5: return {2, true};
    case 6: return {4, true};
    case 12: return {4, true};
    case 7: return {8, true};
    case 13: return {8, true};
    default: return {};
  }
}

namespace detail {

inline double half_number(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction == 0 ? std::numeric_limits<double>::infinity()
                                                        : std::numeric_limits<double>::quiet_NaN())
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return (bits >> 15) != 0 ? -size : size;
}
inline double brain_number(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}
template <class T>
T at_of(std::string_view raw, std::size_t i) {
  T out;
  std::memcpy(&out, raw.data() + i * sizeof(T), sizeof(T));
  return out;
}

inline double raw_number(std::string_view raw, long type, std::size_t i) {
  switch (type) {
    case 1: return static_cast<double>(at_of<float>(raw, i));
    case 10: return half_number(at_of<std::uint16_t>(raw, i));
    case 16: return brain_number(at_of<std::uint16_t>(raw, i));
    case 11: return at_of<double>(raw, i);
    case 2: return at_of<std::uint8_t>(raw, i);
    case 9: return at_of<std::uint8_t>(raw, i) != 0 ? 1 : 0;
    case 3: return at_of<std::int8_t>(raw, i);
    case 4: return at_of<std::uint16_t>(raw, i);
    case 5: return at_of<std::int16_t>(raw, i);
    case 6: return at_of<std::int32_t>(raw, i);
    case 12: return at_of<std::uint32_t>(raw, i);
    case 13: return static_cast<double>(at_of<std::uint64_t>(raw, i));
    default: return static_cast<double>(at_of<std::int64_t>(raw, i));
  }
}

}  // namespace detail

/// Throws bad_input for a tensor whose element type, sizes or number of elements cannot be; `where` names it.
inline long checked_elements(const onnx_tensor& t, const std::string& where) {
  const onnx_element e = onnx_element_of(t.type);
  if (e.bytes == 0)
    throw bad_input(where + ": its elements are of type " + std::to_string(t.type) +
                    " of TensorProto.DataType, which is not read");
  const long n = elements_of(t.dims);
  if (n < 0) throw bad_input(where + ": its sizes are negative or more than memory can hold");
  if (t.elsewhere) return n;
  const long given = !t.raw.empty()       ? static_cast<long>(t.raw.size()) / e.bytes
                     : !t.floats.empty()  ? static_cast<long>(t.floats.size())
                     : !t.doubles.empty() ? static_cast<long>(t.doubles.size())
                                          : static_cast<long>(t.integers.size());
  if (given != n || static_cast<long>(t.raw.size()) % e.bytes != 0)
    throw bad_input(where + ": it has " + std::to_string(given) + " elements, its sizes say " + std::to_string(n));
  return n;
}

/// All its numbers, in float64. They must be in the file.
inline constant numbers_of(const onnx_tensor& t, const std::string& where) {
  const auto n = static_cast<std::size_t>(checked_elements(t, where));
  if (t.elsewhere) throw bad_input(where + ": its numbers are in another file, which is not read");
  constant out{t.dims, {}, onnx_element_of(t.type).whole};
  out.at.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!t.raw.empty()) out.at.push_back(detail::raw_number(t.raw, t.type, i));
    else if (!t.floats.empty()) out.at.push_back(static_cast<double>(t.floats[i]));
    else if (!t.doubles.empty()) out.at.push_back(t.doubles[i]);
    else if (t.type == 10) out.at.push_back(detail::half_number(static_cast<std::uint16_t>(t.integers[i])));
    else if (t.type == 16) out.at.push_back(detail::brain_number(static_cast<std::uint16_t>(t.integers[i])));
    else out.at.push_back(static_cast<double>(t.integers[i]));
  }
  return out;
}

}  // namespace cfp::graphs
