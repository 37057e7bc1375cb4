// Must not compile: a text stands among the operands of a model's operator.
// expected-error {{an operator of a model is called with tensors, then numbers and cfp::size_of}}
// expected-words {{split_heads: argument 1 is none of them}}
#include <cfp/model/trace.hpp>
#include <cfp/op/attention.hpp>
inline cfp::tensor heads(cfp::tensor x) { return cfp::split_heads(x, cfp::size_of{"heads", 2}); }
#ifndef CFP_CONTROL
inline cfp::tensor heads_by_name(cfp::tensor x) { return cfp::split_heads(x, "heads"); }
#endif
int main() {}
