// What a chain of operators makes of each element of one tensor.
#pragma once

#include <cfp/model/graph.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/elementary.hpp>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// A value as a function of another one, of equal shape: elementwise operators between them, at most 24.
class element_function {
 public:
  element_function(const graph& g, int value, int of) : g_(g), value_(value), of_(of) {}

  int of() const { return of_; }

  /// Whether it is a function, by its values at places all over where it is not flat. Constants in files are rounded to
  /// 24 bits.
  template <class F>
  bool is(const F& f) const {
    for (const double x : {-6.1, -2.9, -1.7, -1.03, -0.31, -0.07, 0.0, 0.13, 0.57, 0.91, 1.83, 3.3, 5.7}) {
      std::map<int, double> known = {{of_, x}};
      const double mine = at(value_, known, 0), wanted = f(x);
      if (!(std::fabs(mine - wanted) <= 1e-6 * (1 + std::fabs(wanted)))) return false;
    }
    return true;
  }

 private:
  double at(int v, std::map<int, double>& known, int depth) const {
    if (const auto is = known.find(v); is != known.end()) return is->second;
    return known[v] = depth > 24 ? std::nan("") : computed(v, known, depth);
  }
  double computed(int v, std::map<int, double>& known, int depth) const {
    using namespace elementary;
    const operation& o = g_.get().at(g_.get()[v].producer);
    const double a = at(o.operands[0], known, depth + 1),
                 b = o.operands.size() > 1 ? at(o.operands[1], known, depth + 1) : 0;
    const double s = o.scalars.empty() ? 0 : o.scalars[0];
    if (o.op == &info<add_t>) return a + b;
    if (o.op == &info<mul_t>) return a * b;
    if (o.op == &info<subtract_t>) return a - b;
    if (o.op == &info<divide_t>) return a / b;
    if (o.op == &info<scaled_t>) return a * s;
    if (o.op == &info<shifted_t>) return a + s;
    if (o.op == &info<over_t>) return s / a;
    if (o.op == &info<square_t>) return a * a;
    if (o.op == &info<cube_t>) return a * a * a;
    if (o.op == &info<exponential_t>) return std::exp(a);
    if (o.op == &info<tangent_t>) return std::tanh(a);
    if (o.op == &info<logistic_t>) return sigmoid(a);
    if (o.op == &info<error_t>) return std::erf(a);
    return std::nan("");
  }

  std::reference_wrapper<const graph> g_;
  int value_, of_;
};

namespace detail {

// Whether an operator goes element by element, of operands as large as its result, and is one that is computed above.
inline bool is_element_by_element(const operation& o) {
  using namespace elementary;
  for (const op_info* const known : {&info<add_t>, &info<mul_t>, &info<subtract_t>, &info<divide_t>, &info<scaled_t>,
                                     &info<shifted_t>, &info<over_t>, &info<square_t>, &info<cube_t>,
                                     &info<exponential_t>, &info<tangent_t>, &info<logistic_t>, &info<error_t>}) {
    if (o.op != known) continue;
    for (const pattern& p : o.r.operands)
      if (!(p == o.r.results[0])) return false;
    return true;
  }
  return false;
}

}  // namespace detail

/// The value as a function of each one that all ways of elementwise operators to it come from, the nearest first. They
/// are found by taking apart, one after another, whatever was made last.
inline std::vector<element_function> functions_of(const graph& g, int value) {
  std::vector<element_function> out;
  std::map<int, int> open = {{-g[value].producer, value}};  // by the number of the operation that made it, last first
  for (int taken = 0; taken < 24; ++taken) {
    const int v = open.begin()->second, made_by = g[v].producer;
    if (open.size() == 1 && v != value) out.emplace_back(g, value, v);
    if (made_by < 0 || !detail::is_element_by_element(g.at(made_by))) return out;
    open.erase(open.begin());
    for (const int x : g.at(made_by).operands) {
      if (g[x].producer < 0) return out;
      open.emplace(-g[x].producer, x);
    }
  }
  return out;
}

}  // namespace cfp::graphs
