// Must not compile: one factor twice in a tensor.
// expected-error {{the column is where reading stopped}}
// expected-words {{a factor stands twice in one tensor, column 3 of "b b -> b"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"b b -> b"> wrong;
#endif
int main() {}
