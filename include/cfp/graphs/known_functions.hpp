// Functions of numbers that are known while a graph is read, by what ONNX calls them.
#pragma once

#include <cfp/graphs/constant.hpp>

#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

using two_numbers = double (*)(double, double);

namespace known {

inline double divided(double x, double y) { return x / y; }
inline double whole_divided(double x, double y) { return y == 0 ? 0 : std::trunc(x / y); }
inline double whole_rest(double x, double y) { return y == 0 ? 0 : x - y * std::floor(x / y); }

}  // namespace known

inline const std::map<std::string_view, two_numbers>& known_functions() {
  using namespace known;
  static const std::map<std::string_view, two_numbers> all = {
      {"Add", [](double x, double y) { return x + y; }},
      {"Sub", [](double x, double y) { return x - y; }},
      {"Mul", [](double x, double y) { return x * y; }},
      {"Div", divided},
      {"Mod", whole_rest},
      {"Pow", [](double x, double y) { return std::pow(x, y); }},
      {"Max", [](double x, double y) { return x < y ? y : x; }},
      {"Min", [](double x, double y) { return y < x ? y : x; }},
      {"Equal", [](double x, double y) { return x == y ? 1.0 : 0.0; }},
      {"Greater", [](double x, double y) { return x > y ? 1.0 : 0.0; }},
      {"GreaterOrEqual", [](double x, double y) { return x >= y ? 1.0 : 0.0; }},
      {"Less", [](double x, double y) { return x < y ? 1.0 : 0.0; }},
      {"LessOrEqual", [](double x, double y) { return x <= y ? 1.0 : 0.0; }},
      {"And", [](double x, double y) { return x != 0 && y != 0 ? 1.0 : 0.0; }},
      {"Or", [](double x, double y) { return x != 0 || y != 0 ? 1.0 : 0.0; }}};
  return all;
}
inline const std::map<std::string_view, double (*)(double)>& known_functions_of_one() {
  static const std::map<std::string_view, double (*)(double)> all = {
      {"Neg", [](double x) { return -x; }},
      {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Sin", [](double x) { return std::sin(x); }},
      {"Cos", [](double x) { return std::cos(x); }}};
  return all;
}

/// A function on corresponding elements, broadcast. Throws bad_input where shapes do not fit.
inline constant of_two(const constant& x, const constant& y, two_numbers f, bool is_whole) {
  std::vector<long> shape = x.shape;
  if (!broadcast(shape, y.shape))
    throw bad_input("its operands do not fit: " + shape_text(x.shape) + ", " + shape_text(y.shape));
  checked_known(shape);
  const std::vector<double> a = spread(x, shape), b = spread(y, shape);
  constant out{shape, {}, is_whole};
  for (std::size_t i = 0; i < a.size(); ++i) out.at.push_back(f(a[i], b[i]));
  return out;
}
inline constant where_known(const constant& which, const constant& x, const constant& y) {
  std::vector<long> shape = which.shape;
  if (!broadcast(shape, x.shape) || !broadcast(shape, y.shape)) throw bad_input("its operands do not fit");
  checked_known(shape);
  const std::vector<double> w = spread(which, shape), a = spread(x, shape), b = spread(y, shape);
  constant out{shape, {}, x.whole && y.whole};
  for (std::size_t i = 0; i < w.size(); ++i) out.at.push_back(w[i] != 0 ? a[i] : b[i]);
  return out;
}

}  // namespace cfp::graphs
