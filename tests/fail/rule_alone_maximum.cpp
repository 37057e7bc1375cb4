// Must not compile: a rule alone is marked max and has no functor.
// expected-error {{one marked max, min, onehot or scan needs a functor}}
#include <cfp/core.hpp>
#include <cfp/op/catalogue.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
inline constexpr struct greatest_t : cfp::op<"a b -> a; max b", greatest_t> {} greatest;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"a b -> a; max b"> wrong;
#endif
int main() {}
