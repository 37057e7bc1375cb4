// Must not compile: a functor takes a number that its operator does not say.
// expected-error {{a functor is called with what its rule and its `scalars` say}}
// expected-words {{shift: apply is called with 1 operand, 0 scalars and 0 positions, and cannot be}}
#include <cfp/model/trace.hpp>
struct shifted_t : cfp::op<"... -> ...", shifted_t> {
  static constexpr int scalars = 1;
  template <class T>
  static T apply(T x, T by) {
    return x + by;
  }
};
inline cfp::tensor shifted(cfp::tensor x) { return shifted_t{}(x, 0.5); }
#ifndef CFP_CONTROL
struct shift_t : cfp::op<"... -> ...", shift_t> {
  template <class T>
  static T apply(T x, T by) {
    return x + by;
  }
};
inline cfp::tensor shift(cfp::tensor x) { return shift_t{}(x); }
#endif
int main() {}
