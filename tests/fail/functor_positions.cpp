// Must not compile: a rule marks two factors whose positions the functor does not take.
// expected-error {{a functor is called with what its rule and its `scalars` say}}
// expected-words {{mask: apply is called with 1 operand, 0 scalars and 2 positions, and cannot be}}
#include <cfp/model/trace.hpp>
struct masked_t : cfp::op<"... q k -> ... q k; index q k", masked_t> {
  template <class T>
  static T apply(T x, long q, long k) {
    return k <= q ? x : T(0);
  }
};
inline cfp::tensor masked(cfp::tensor x) { return masked_t{}(x); }
#ifndef CFP_CONTROL
struct mask_t : cfp::op<"... q k -> ... q k; index q k", mask_t> {
  template <class T>
  static T apply(T x) {
    return x;
  }
};
inline cfp::tensor mask(cfp::tensor x) { return mask_t{}(x); }
#endif
int main() {}
