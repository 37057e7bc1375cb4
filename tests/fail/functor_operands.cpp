// Must not compile: a functor takes an operand less than its rule has.
// expected-error {{a functor is called with what its rule and its `scalars` say}}
// expected-words {{gate: apply is called with 2 operands, 0 scalars and 0 positions, and cannot be}}
#include <cfp/model/trace.hpp>
struct gated_t : cfp::op<"..., ... -> ...", gated_t> {
  template <class T>
  static T apply(T x, T gate) {
    return x * gate;
  }
};
inline cfp::tensor gated(cfp::tensor x) { return gated_t{}(x, x); }
#ifndef CFP_CONTROL
struct gate_t : cfp::op<"..., ... -> ...", gate_t> {
  template <class T>
  static T apply(T x) {
    return x * x;
  }
};
inline cfp::tensor gate(cfp::tensor x) { return gate_t{}(x, x); }
#endif
int main() {}
