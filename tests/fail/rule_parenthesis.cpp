// Must not compile: an open parenthesis.
// expected-error {{the column is where reading stopped}}
// expected-words {{expected the name of a factor or ')', column 8 of "b (h d -> b h d"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"b (h d -> b h d"> wrong;
#endif
int main() {}
