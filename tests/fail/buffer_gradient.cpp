// Must not compile: a gradient goes into a flat buffer before it is completed over the other axes.
// expected-error {{a gradient is laid into a buffer as parts of a sum over the axis that shares it, else as its tensor}}
// expected-words {{adam: the gradient of ln is 'partial:data partial:model', and the buffer takes 'partial:data'; owed before: all_reduce over 'model' (60 bytes per device)}}
#include <cfp/core.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using ln = cfp::held_as<"ln", cfp::sharded<cfp::dims<"width=10">, mesh>>;
using adam = cfp::flat_buffer<"adam", "data", ln>;
static_assert(adam::takes<ln, cfp::sharded<cfp::dims<"width=10">, mesh, cfp::partial<"data">>>);
#ifndef CFP_CONTROL
static_assert(adam::takes<ln, cfp::sharded<cfp::dims<"width=10">, mesh, cfp::partial<"data">, cfp::partial<"model">>>);
#endif
int main() {}
