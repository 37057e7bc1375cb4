// Must not compile: a mark of a factor the rule does not have.
// expected-error {{the column is where reading stopped}}
// expected-words {{a mark names a factor the rule does not have, column 15 of "b s -> b; max v"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"b s -> b; max v"> wrong;
#endif
int main() {}
