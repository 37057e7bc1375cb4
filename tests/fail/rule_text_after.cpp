// Must not compile: text after the rule.
// expected-error {{the column is where reading stopped}}
// expected-words {{unexpected text after the rule, column 8 of "a -> a -> a"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"a -> a -> a"> wrong;
#endif
int main() {}
