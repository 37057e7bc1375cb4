// Writes HLO modules, for tests: a HloModuleProto of instructions.
#pragma once

#include <protozero/pbf_writer.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hlo_tests {

enum : int { pred = 1, s32 = 4, f32 = 11 };
using numbers = std::vector<std::int64_t>;

/// What an instruction says beside its operands, by the numbers of its fields: integers, or messages of them.
struct more {
  numbers dims;
  std::vector<std::pair<int, numbers>> dot;
  std::vector<numbers> slices;
  std::string direction;
  std::int64_t called = 0, parameter = 0;
};

class module_writer {
 public:
  std::int64_t instruction(const std::string& op, int type, const numbers& dims, const numbers& operands,
                           const more& with = {}, const std::string& literal = "") {
    std::string text;
    protozero::pbf_writer to(text);
    to.add_string(1, op + "." + std::to_string(++count_));
    to.add_string(2, op);
    to.add_message(3, shape(type, dims));
    if (op == "constant") to.add_message(8, literal);
    to.add_int64(9, with.parameter);
    if (!with.dims.empty()) to.add_packed_int64(14, with.dims.begin(), with.dims.end());
    for (const numbers& one : with.slices) {
      protozero::pbf_writer slice(to, 17);
      for (std::size_t k = 0; k < one.size(); ++k) slice.add_int64(static_cast<std::uint32_t>(k) + 1, one[k]);
    }
    if (!with.dot.empty()) {
      protozero::pbf_writer dot(to, 30);
      for (const auto& [field, all] : with.dot)
        dot.add_packed_int64(static_cast<std::uint32_t>(field), all.begin(), all.end());
    }
    to.add_int64(35, count_);
    to.add_packed_int64(36, operands.begin(), operands.end());
    if (with.called > 0) to.add_packed_int64(38, &with.called, &with.called + 1);
    if (!with.direction.empty()) to.add_string(63, with.direction);
    instructions_.push_back(text);
    return count_;
  }
  std::int64_t parameter(int type, const numbers& dims, std::int64_t number) {
    more with;
    with.parameter = number;
    return instruction("parameter", type, dims, {}, with);
  }
  std::int64_t number(float x) {
    std::string literal;
    protozero::pbf_writer to(literal);
    to.add_message(1, shape(f32, {}));
    to.add_packed_float(8, &x, &x + 1);
    return instruction("constant", f32, {}, {}, {}, literal);
  }
  /// The instructions so far are a computation, whose result is the last one.
  std::int64_t computation(const std::string& name) {
    std::string text;
    protozero::pbf_writer to(text);
    to.add_string(1, name);
    for (const std::string& i : instructions_) to.add_message(2, i);
    to.add_int64(5, ++computations_);
    to.add_int64(6, count_);
    all_ += message(3, text);
    instructions_.clear();
    return computations_;
  }
  /// The last computation is the module's own.
  std::string bytes() const {
    std::string text;
    protozero::pbf_writer to(text);
    to.add_string(1, "module");
    to.add_int64(6, computations_);
    return text + all_;
  }

 private:
  static std::string shape(int type, const numbers& dims) {
    std::string text;
    protozero::pbf_writer to(text);
    to.add_int64(2, type);
    to.add_packed_int64(3, dims.begin(), dims.end());
    return text;
  }
  static std::string message(std::uint32_t field, const std::string& bytes) {
    std::string text;
    protozero::pbf_writer to(text);
    to.add_message(field, bytes);
    return text;
  }

  std::int64_t count_ = 0, computations_ = 0;
  std::vector<std::string> instructions_;
  std::string all_;
};

/// A layer with a softmax, and one of movements: to start from.
inline std::vector<std::string> some_modules() {
  module_writer m;
  const auto reducer = [&m](const std::string& op) {
    m.instruction(op, f32, {}, {m.parameter(f32, {}, 0), m.parameter(f32, {}, 1)});
    return m.computation("by_" + op);
  };
  const std::int64_t adds = reducer("add"), largest = reducer("maximum");
  const std::int64_t x = m.parameter(f32, {4, 6}, 0), w = m.parameter(f32, {6, 8}, 1);
  const std::int64_t y = m.instruction("dot", f32, {4, 8}, {x, w}, {{}, {{1, {1}}, {2, {0}}}, {}, "", 0, 0});
  const std::int64_t top =
      m.instruction("reduce", f32, {4}, {y, m.number(-1.0f / 0.0f)}, {{1}, {}, {}, "", largest, 0});
  const std::int64_t less = m.instruction("subtract", f32, {4, 8},
                                          {y, m.instruction("broadcast", f32, {4, 8}, {top}, {{0}, {}, {}, "", 0, 0})});
  const std::int64_t e = m.instruction("exponential", f32, {4, 8}, {less});
  const std::int64_t sum = m.instruction("reduce", f32, {4}, {e, m.number(0)}, {{1}, {}, {}, "", adds, 0});
  m.instruction("divide", f32, {4, 8}, {e, m.instruction("broadcast", f32, {4, 8}, {sum}, {{0}, {}, {}, "", 0, 0})});
  m.computation("softmax");
  module_writer n;
  const std::int64_t a = n.parameter(f32, {4, 6}, 0);
  const std::int64_t half = n.instruction("slice", f32, {4, 3}, {a}, {{}, {}, {{0, 4, 1}, {3, 6, 1}}, "", 0, 0});
  const std::int64_t both = n.instruction("concatenate", f32, {4, 9}, {half, a}, {{1}, {}, {}, "", 0, 0});
  const std::int64_t seen = n.instruction("reshape", f32, {2, 2, 9}, {n.instruction("tanh", f32, {4, 9}, {both})});
  const std::int64_t turned = n.instruction("transpose", f32, {9, 2, 2}, {seen}, {{2, 0, 1}, {}, {}, "", 0, 0});
  const std::int64_t is = n.instruction("compare", pred, {9, 2, 2}, {turned, turned}, {{}, {}, {}, "LE", 0, 0});
  n.instruction("select", f32, {9, 2, 2}, {is, turned, n.instruction("custom-call", f32, {9, 2, 2}, {turned})});
  n.computation("movements");
  return {m.bytes(), n.bytes()};
}

}  // namespace hlo_tests
