// Must not compile: a mark that does not exist.
// expected-error {{the column is where reading stopped}}
// expected-words {{unknown mark; known are whole, onehot, index, max, min, scan, halo, column 11 of "b s -> b; most s"}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
inline constexpr cfp::op<"b s -> b s"> fits;
#ifndef CFP_CONTROL
inline constexpr cfp::op<"b s -> b; most s"> wrong;
#endif
int main() {}
