// Must not compile: a maximum over a factor that a result has.
// expected-error {{the column is where reading stopped}}
// expected-words {{max and min name factors that are reduced over: no result has them, column 32 of "batch in, in out -> batch out; max out"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"batch in, in out -> batch out; max out"> wrong;
#endif
int main() {}
