// Elementary functions on numbers and on dual numbers, so that one functor yields its value and its derivative.
// Functors call `cfp::exp(x)` and so on: these never promote float to double.
#pragma once

#include <cfp/core/config.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

namespace cfp::inline v0_1 {

/// A constant, because devices do not call the standard library's functions.
template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

/// A number and its derivative along one input: value + slope * e with e*e = 0.
template <class T>
struct dual {
  T value{}, slope{};

  dual() = default;
  CFP_HOST_DEVICE constexpr explicit dual(double v) : value(static_cast<T>(v)) {}
  CFP_HOST_DEVICE constexpr dual(T v, T s) : value(v), slope(s) {}

  CFP_HOST_DEVICE friend constexpr dual operator+(dual a, dual b) { return {a.value + b.value, a.slope + b.slope}; }
  CFP_HOST_DEVICE friend constexpr dual operator-(dual a, dual b) { return {a.value - b.value, a.slope - b.slope}; }
  CFP_HOST_DEVICE friend constexpr dual operator-(dual a) { return {-a.value, -a.slope}; }
  CFP_HOST_DEVICE friend constexpr dual operator*(dual a, dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  CFP_HOST_DEVICE friend constexpr dual operator/(dual a, dual b) {
    const T q = a.value / b.value;
    return {q, (a.slope - q * b.slope) / b.value};
  }
  CFP_HOST_DEVICE friend constexpr bool operator<(dual a, dual b) { return a.value < b.value; }
  CFP_HOST_DEVICE friend constexpr bool operator>(dual a, dual b) { return a.value > b.value; }
  CFP_HOST_DEVICE friend constexpr bool operator<=(dual a, dual b) { return a.value <= b.value; }
};

// Templates, so that who writes `using namespace cfp` finds the standard library's functions of one type first.
template <class T>
  requires std::is_floating_point_v<T> CFP_HOST_DEVICE T exp(T x) { return std::exp(x); }
template <class T>
  requires std::is_floating_point_v<T> CFP_HOST_DEVICE T log(T x) { return std::log(x); }
template <class T>
  requires std::is_floating_point_v<T> CFP_HOST_DEVICE T sqrt(T x) { return std::sqrt(x); }
template <class T>
  requires std::is_floating_point_v<T> CFP_HOST_DEVICE T tanh(T x) { return std::tanh(x); }
template <class T>
  requires std::is_floating_point_v<T> CFP_HOST_DEVICE T sin(T x) { return std::sin(x); }
template <class T>
  requires std::is_floating_point_v<T> CFP_HOST_DEVICE T cos(T x) { return std::cos(x); }
template <class T>
  requires std::is_floating_point_v<T> CFP_HOST_DEVICE T erf(T x) { return std::erf(x); }
/// 1 / (1 + exp(-x)), with a derivative where exp(-x) overflows too: write x * sigmoid(x), not x / (1 + exp(-x)).
/// On devices by the fast instructions: off by less than 2^-21 (4 + |x|) of itself, which numbers of 16 bits do not
/// show.
CFP_HOST_DEVICE inline float sigmoid(float x) {
#if defined(__CUDA_ARCH__)
  return __fdividef(1.0f, 1.0f + __expf(-x));
#else
  return 1 / (1 + std::exp(-x));
#endif
}
CFP_HOST_DEVICE inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class T>
CFP_HOST_DEVICE dual<T> exp(dual<T> x) {
  const T e = cfp::exp(x.value);
  return {e, e * x.slope};
}
template <class T>
CFP_HOST_DEVICE dual<T> log(dual<T> x) {
  return {cfp::log(x.value), x.slope / x.value};
}
template <class T>
CFP_HOST_DEVICE dual<T> sqrt(dual<T> x) {
  const T r = cfp::sqrt(x.value);
  return {r, x.slope / (r + r)};
}
template <class T>
CFP_HOST_DEVICE dual<T> tanh(dual<T> x) {
  const T t = cfp::tanh(x.value);
  return {t, (T(1) - t * t) * x.slope};
}
template <class T>
CFP_HOST_DEVICE dual<T> erf(dual<T> x) {
  return {cfp::erf(x.value), T(1.1283791670955126) * cfp::exp(-x.value * x.value) * x.slope};
}
template <class T>
CFP_HOST_DEVICE dual<T> sigmoid(dual<T> x) {
  const T s = cfp::sigmoid(x.value);
  return {s, s * (T(1) - s) * x.slope};
}
template <class T>
CFP_HOST_DEVICE dual<T> sin(dual<T> x) {
  return {cfp::sin(x.value), cfp::cos(x.value) * x.slope};
}
template <class T>
CFP_HOST_DEVICE dual<T> cos(dual<T> x) {
  return {cfp::cos(x.value), -cfp::sin(x.value) * x.slope};
}

}  // namespace cfp
