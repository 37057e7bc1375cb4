// Must not compile: five factors whose positions the functor is to be given.
// expected-error {{the column is where reading stopped}}
// expected-words {{at most 4 factors can be marked index, 'e' is number 5, column 39}}
#include <cfp/core.hpp>
#include <cfp/op/op.hpp>
struct fits_t : cfp::op<"a b c d e -> a b c d e; index a b c d", fits_t> {};
inline constexpr fits_t fits;
#ifndef CFP_CONTROL
struct wrong_t : cfp::op<"a b c d e -> a b c d e; index a b c d e", wrong_t> {};
inline constexpr wrong_t wrong;
#endif
int main() {}
