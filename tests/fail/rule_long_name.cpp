// Must not compile: a name of 24 letters.
// expected-error {{the column is where reading stopped}}
// expected-words {{a name has at most 23 characters, 'abcdefghijklmnopqrstuvwx' has 24, column 3 of "b
// abcdefghijklmnopqrstuvwx -> b"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b abcdefghijklmnopqrstuvw -> b"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"b abcdefghijklmnopqrstuvwx -> b"> wrong;
#endif
int main() {}
