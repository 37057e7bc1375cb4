// Operators of ONNX that compute element by element.
#pragma once

#include <cfp/graphs/onnx_call.hpp>
#include <cfp/op/activation.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace onnx {

/// An operand that is one known number, however it is broadcast.
inline bool is_number(const held& h, const held& other, double& out) {
  std::vector<long> shape = other.shape;
  if (!h.known || !h.known->is_uniform() || !broadcast(shape, h.shape) || shape != other.shape) return false;
  out = h.known->at.front();
  return true;
}

/// Element by element, and nobody has a kernel for it. Known numbers are said as attributes are.
inline onnx_results pointwise(const onnx_call& c, bool is_whole = false) {
  std::vector<long> shape;
  std::vector<held> in;
  std::string attributes = c.attributes();
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    if (!c.has(i)) continue;
    if (!broadcast(shape, c.in[i].shape)) throw bad_input("its operands do not fit: " + c.p.shapes_of(c.in));
    if (i > 0 && c.in[i].known && c.in[i].known->is_uniform())
      attributes += " " + std::to_string(i) + ":" + std::to_string(c.in[i].known->at.front());
    else in.push_back(c.in[i]);
  }
  return element_by_element(c.p.build, c.node.op, attributes, in, shape, is_whole);
}
inline onnx_results compared(const onnx_call& c) { return pointwise(c, true); }

inline bool are_whole(const onnx_call& c) {
  for (const held& h : c.in)
    if (!h.is_whole) return false;
  return true;
}

inline onnx_results add(const onnx_call& c) {
  const held &x = c.operand(0), &y = c.operand(1);
  double by = 0;
  const bool whole = are_whole(c);
  if (is_number(y, x, by)) return {by == 0 ? x : c.p.elementwise(info<elementary::shifted_t>, {x}, {by}, whole)};
  if (is_number(x, y, by)) return {by == 0 ? y : c.p.elementwise(info<elementary::shifted_t>, {y}, {by}, whole)};
  return {c.p.elementwise(info<add_t>, {x, y}, {}, whole)};
}
inline onnx_results subtract(const onnx_call& c) {
  const held &x = c.operand(0), &y = c.operand(1);
  double by = 0;
  const bool whole = are_whole(c);
  if (is_number(y, x, by)) return {by == 0 ? x : c.p.elementwise(info<elementary::shifted_t>, {x}, {-by}, whole)};
  if (is_number(x, y, by)) {
    const held less = c.p.elementwise(info<scaled_t>, {y}, {-1}, whole);
    return {by == 0 ? less : c.p.elementwise(info<elementary::shifted_t>, {less}, {by}, whole)};
  }
  return {c.p.elementwise(info<elementary::subtract_t>, {x, y}, {}, whole)};
}
inline onnx_results multiply(const onnx_call& c) {
  const held &x = c.operand(0), &y = c.operand(1);
  double by = 0;
  const bool whole = are_whole(c);
  if (is_number(y, x, by)) return {by == 1 ? x : c.p.elementwise(info<scaled_t>, {x}, {by}, whole)};
  if (is_number(x, y, by)) return {by == 1 ? y : c.p.elementwise(info<scaled_t>, {y}, {by}, whole)};
  return {c.p.elementwise(info<mul_t>, {x, y}, {}, whole)};
}
inline onnx_results divide(const onnx_call& c) {
  const held &x = c.operand(0), &y = c.operand(1);
  double by = 0;
  if (are_whole(c)) return pointwise(c, true);
  if (is_number(y, x, by)) return {by == 1 ? x : c.p.elementwise(info<scaled_t>, {x}, {1 / by})};
  if (is_number(x, y, by)) return {c.p.elementwise(info<elementary::over_t>, {y}, {by})};
  return {c.p.elementwise(info<elementary::divide_t>, {x, y})};
}
inline onnx_results power(const onnx_call& c) {
  const held& x = c.operand(0);
  double by = 0;
  if (!is_number(c.operand(1), x, by) || x.is_whole) return pointwise(c, are_whole(c));
  if (by == 1) return {x};
  if (by == 2) return {c.p.elementwise(info<elementary::square_t>, {x})};
  if (by == 3) return {c.p.elementwise(info<elementary::cube_t>, {x})};
  if (by == 0.5) return {c.p.elementwise(info<elementary::root_t>, {x})};
  if (by == -0.5) return {c.p.elementwise(info<elementary::over_root_t>, {x})};
  if (by == -1) return {c.p.elementwise(info<elementary::over_t>, {x}, {1})};
  return pointwise(c);
}
/// The larger or smaller one of any number of operands.
inline onnx_results extreme(const onnx_call& c, const op_info& op) {
  held out = c.operand(0);
  double zero = 1;
  if (c.in.size() == 2 && &op == &info<elementary::larger_t> && is_number(c.operand(1), out, zero) && zero == 0)
    return {c.p.elementwise(info<relu_t>, {out})};
  const double least = &op == &info<elementary::larger_t> ? -infinity<double> : infinity<double>;
  for (std::size_t i = 1; i < c.in.size(); ++i)
    if (!is_number(c.operand(i), out, zero) || zero != least)
      out = c.p.elementwise(op, {out, c.operand(i)}, {}, are_whole(c));
  return {out};
}
inline onnx_results added_up(const onnx_call& c) {
  held out = c.operand(0);
  for (std::size_t i = 1; i < c.in.size(); ++i) out = c.p.elementwise(info<add_t>, {out, c.operand(i)});
  return {c.node.op == "Mean" ? c.p.scaled_by(out, 1 / static_cast<double>(c.in.size())) : out};
}
inline onnx_results chosen(const onnx_call& c) {
  const bool whole = c.operand(1).is_whole && c.operand(2).is_whole;
  return {c.p.elementwise(info<elementary::chosen_t>, {c.operand(0), c.operand(1), c.operand(2)}, {}, whole)};
}
inline onnx_results gaussian(const onnx_call& c) {
  const std::string form = c.text("approximate", "none");
  if (form != "none" && form != "tanh")
    throw bad_input("attribute 'approximate' must be none or tanh, is '" + form + "'");
  return {c.p.elementwise(form == "tanh" ? info<gelu_t> : info<gelu_exact_t>, {c.operand(0)})};
}

/// Functions of one operand.
inline const std::map<std::string_view, const op_info*>& functions() {
  using namespace elementary;
  static const std::map<std::string_view, const op_info*> all = {
      {"Relu", &info<relu_t>},       {"Sigmoid", &info<logistic_t>}, {"Tanh", &info<tangent_t>},
      {"Exp", &info<exponential_t>}, {"Log", &info<logarithm_t>},    {"Sqrt", &info<root_t>},
      {"Erf", &info<error_t>},       {"Sin", &info<sine_t>},         {"Cos", &info<cosine_t>},
      {"FastGelu", &info<gelu_t>}};
  return all;
}
/// Those that are known to go element by element, and have no kernel.
inline bool is_pointwise(std::string_view op) {
  for (const std::string_view known :
       {"Abs",       "Ceil", "Floor",           "Round", "Sign",     "Clip",     "Elu",
        "Celu",      "Selu", "LeakyRelu",       "PRelu", "Softplus", "Softsign", "HardSigmoid",
        "HardSwish", "Mish", "ThresholdedRelu", "Tan",   "Asin",     "Acos",     "Atan",
        "Sinh",      "Cosh", "Asinh",           "Acosh", "Atanh",    "Mod",      "QuickGelu"})
    if (op == known) return true;
  return false;
}
inline bool is_comparison(std::string_view op) {
  for (const std::string_view known : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor",
                                       "Not", "IsNaN", "IsInf", "BitShift"})
    if (op == known) return true;
  return false;
}

inline onnx_results function(const onnx_call& c) {
  return {c.p.elementwise(*functions().at(c.node.op), {c.operand(0)})};
}

}  // namespace onnx

}  // namespace cfp::graphs
