// Must not compile: a result dimension from nowhere.
// expected-error {{the column is where reading stopped}}
// expected-words {{a result has a factor that no operand has, column 8 of "b s -> b t"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"b s -> b t"> wrong;
#endif
int main() {}
