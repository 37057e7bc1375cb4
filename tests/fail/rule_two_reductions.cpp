// Must not compile: a rule that reduces by a maximum and a sum.
// expected-error {{the column is where reading stopped}}
// expected-words {{a rule with max or min must name every factor it reduces over, column 1 of "a b c -> a; max b"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"a b c -> a; max b"> wrong;
#endif
int main() {}
