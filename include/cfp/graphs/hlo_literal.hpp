// The numbers of a LiteralProto.
#pragma once

#include <cfp/graphs/hlo_file.hpp>
#include <cfp/graphs/onnx_numbers.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// Throws bad_input where there are not as many as the shape says. `where` names the instruction.
inline constant numbers_of(const hlo_instruction& i, const std::string& where) {
  constant out{i.shape.dims, {}, hlo_kind_of(i.shape.type) == hlo_kind::whole};
  const long count = checked_known(out.shape);
  std::vector<long> integers;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::string_view halves;
  each_field(i.literal, where, [&](field& f) {
    switch (f.number()) {
      case 2:
      case 4:
      case 5:
      case 6:
      case 7: return f.integers(integers);
      case 3:
      case 15:
        for (const char c : f.bytes()) integers.push_back(f.number() == 3 ? static_cast<unsigned char>(c) : c);
        return;
      case 8: return f.reals(floats);
      case 9: return f.wide_reals(doubles);
      case 11:
      case 13: halves = f.bytes(); return;
      default: return;
    }
  });
  const bool brain = i.shape.type == 16;
  for (std::size_t k = 0; k + 1 < halves.size(); k += 2) {
    const auto bits = detail::at_of<std::uint16_t>(halves, k / 2);
    doubles.push_back(brain ? detail::brain_number(bits) : detail::half_number(bits));
  }
  out.at = doubles;
  for (const float x : floats) out.at.push_back(static_cast<double>(x));
  for (const long n : integers) {
    const bool narrow = i.shape.type == 4;  // of 32 bits, and read as 64
    out.at.push_back(static_cast<double>(narrow ? static_cast<std::int32_t>(n) : n));
  }
  if (static_cast<long>(out.at.size()) != count)
    throw bad_input(where + ": its literal has " + std::to_string(out.at.size()) + " elements, its shape says " +
                    std::to_string(count));
  return out;
}

}  // namespace cfp::graphs
