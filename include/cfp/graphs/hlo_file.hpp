// What an HLO file says: an HloModuleProto, read field by field.
#pragma once

#include <cfp/graphs/wire.hpp>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// ShapeProto: of a tuple there are parts.
struct hlo_shape {
  long type = 0;
  std::vector<long> dims;
  std::vector<hlo_shape> parts;
};

struct hlo_instruction {
  std::string name, op, source;  ///< `source`: what the program that was compiled calls it
  hlo_shape shape;
  long id = 0, parameter = 0, tuple_index = 0;
  std::vector<long> operands, called, dims, slice_sizes;
  std::vector<std::vector<long>> slices;                   ///< start, limit, stride of each dimension
  std::map<std::uint32_t, std::vector<long>> dot, gather;  ///< by the numbers of their fields
  std::string direction;
  std::string_view literal{}, window{}, convolution{};
  std::string target;  ///< of a custom call
};

struct hlo_computation {
  std::string name;
  long id = 0, root = 0;
  std::vector<hlo_instruction> instructions;
};

struct hlo_file {
  std::string path, name;
  long entry = 0;
  std::vector<hlo_computation> computations;
};

namespace detail {

inline hlo_shape read_hlo_shape(std::string_view bytes, const std::string& where, int depth = 0) {
  if (depth > 4) throw bad_input(where + ": tuples stand in tuples more than 4 deep");
  hlo_shape out;
  each_field(bytes, where, [&](field& f) {
    if (f.number() == 2) out.type = f.integer();
    else if (f.number() == 3) f.integers(out.dims);
    else if (f.number() == 4) out.parts.push_back(read_hlo_shape(f.bytes(), where, depth + 1));
  });
  return out;
}

inline void read_hlo_numbers(std::string_view bytes, const std::string& where,
                             std::map<std::uint32_t, std::vector<long>>& out) {
  each_field(bytes, where, [&](field& f) { f.integers(out[f.number()]); });
}

inline std::vector<long> read_hlo_slice(std::string_view bytes, const std::string& where) {
  std::vector<long> out = {0, 0, 1};
  each_field(bytes, where, [&](field& f) {
    if (f.number() >= 1 && f.number() <= 3) out[f.number() - 1] = f.integer();
  });
  return out;
}

inline hlo_instruction read_hlo_instruction(std::string_view bytes, const std::string& where) {
  hlo_instruction out;
  each_field(bytes, where, [&](field& f) {
    switch (f.number()) {
      case 1: out.name = f.text(); return;
      case 2: out.op = f.text(); return;
      case 3: out.shape = read_hlo_shape(f.bytes(), where); return;
      case 7:
        each_field(f.bytes(), where, [&](field& of) {
          if (of.number() == 2) out.source = of.line();
        });
        return;
      case 8: out.literal = f.bytes(); return;
      case 9: out.parameter = f.integer(); return;
      case 13: out.tuple_index = f.integer(); return;
      case 14: return f.integers(out.dims);
      case 15: out.window = f.bytes(); return;
      case 16: out.convolution = f.bytes(); return;
      case 17: out.slices.push_back(read_hlo_slice(f.bytes(), where)); return;
      case 28: out.target = f.line(); return;
      case 30: return read_hlo_numbers(f.bytes(), where, out.dot);
      case 33: return read_hlo_numbers(f.bytes(), where, out.gather);
      case 34: return f.integers(out.slice_sizes);
      case 35: out.id = f.integer(); return;
      case 36: return f.integers(out.operands);
      case 38: return f.integers(out.called);
      case 63: out.direction = f.line(); return;
      default: return;
    }
  });
  return out;
}

inline hlo_computation read_hlo_computation(std::string_view bytes, const std::string& where) {
  hlo_computation out;
  each_field(bytes, where, [&](field& f) {
    if (f.number() == 1) out.name = f.text();
    else if (f.number() == 2) out.instructions.push_back(read_hlo_instruction(f.bytes(), where));
    else if (f.number() == 5) out.id = f.integer();
    else if (f.number() == 6) out.root = f.integer();
  });
  return out;
}

}  // namespace detail

/// Reads an HloModuleProto; what it returns has views of `bytes`. Throws bad_input for what is none.
inline hlo_file read_hlo(std::string_view bytes, const std::string& path) {
  hlo_file out;
  out.path = path;
  each_field(bytes, path, [&](field& f) {
    if (f.number() == 1) out.name = f.text();
    else if (f.number() == 3) out.computations.push_back(detail::read_hlo_computation(f.bytes(), path));
    else if (f.number() == 6) out.entry = f.integer();
  });
  if (out.computations.empty()) throw bad_input(path + ": it is no HLO module: there are no computations in it");
  return out;
}

/// PrimitiveType: whether elements are numbers, or whole; others are not read.
enum class hlo_kind : unsigned char { none, numbers, whole };
constexpr hlo_kind hlo_kind_of(long type) {
  if (type >= 1 && type <= 9) return hlo_kind::whole;  // PRED, S8 to U64
  return type == 10 || type == 11 || type == 12 || type == 16 ? hlo_kind::numbers : hlo_kind::none;
}

}  // namespace cfp::graphs
