// Must not compile: too many operands.
// expected-error {{the column is where reading stopped}}
// expected-words {{an operator has at most 8 operands, column 25 of "a, a, a, a, a, a, a, a, a -> a"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"a, a, a, a, a, a, a, a, a -> a"> wrong;
#endif
int main() {}
