// Must not compile: a rule without an arrow.
// expected-error {{the column is where reading stopped}}
// expected-words {{expected '->' or ',', column 7 of "b s, s"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"b s, s"> wrong;
#endif
int main() {}
