// Must not compile: an operator of a model is called without the number that it takes.
// expected-error {{takes as many numbers behind its operands as its functor does}}
// expected-words {{scaled: is given 0 numbers behind its operands, takes 1}}
#include <cfp/model/trace.hpp>
#include <cfp/op/catalogue.hpp>
inline cfp::tensor half(cfp::tensor x) { return cfp::scaled(x, 0.5); }
#ifndef CFP_CONTROL
inline cfp::tensor scaled_by_what(cfp::tensor x) { return cfp::scaled(x); }
#endif
int main() {}
