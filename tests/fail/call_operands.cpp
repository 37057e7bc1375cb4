// Must not compile: an operator of a model is called with an operand too few.
// expected-error {{as many operands as its rule has}}
// expected-words {{add: is given 1 operand, its rule "..., ... -> ..." has 2}}
#include <cfp/model/trace.hpp>
#include <cfp/op/catalogue.hpp>
inline cfp::tensor twice(cfp::tensor x) { return cfp::add(x, x); }
#ifndef CFP_CONTROL
inline cfp::tensor once(cfp::tensor x) { return cfp::add(x); }
#endif
int main() {}
