// Must not compile: the gradient of a square weight goes transposed into a flat buffer.
// expected-error {{a gradient is laid into a buffer as parts of a sum over the axis that shares it, else as its tensor}}
// expected-words {{adam: the gradient (out=8 in=8) of w (in=8 out=8) has other dimensions}}
#include <cfp/core.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using w = cfp::held_as<"w", cfp::sharded<cfp::dims<"in=8", "out=8">, mesh>>;
using adam = cfp::flat_buffer<"adam", "data", w>;
static_assert(adam::takes<w, cfp::sharded<cfp::dims<"in=8", "out=8">, mesh, cfp::partial<"data">>>);
#ifndef CFP_CONTROL
static_assert(adam::takes<w, cfp::sharded<cfp::dims<"out=8", "in=8">, mesh, cfp::partial<"data">>>);
#endif
int main() {}
