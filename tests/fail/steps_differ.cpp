// Must not compile: the steps of a program do not lead where its next operator starts.
// expected-error {{steps do not lead from one partition of a tensor to the other}}
// expected-words {{bias.grad: from 'partial:data partial:model' to 'replicated', the steps as written make 'partial:model'; owed: all_reduce over 'data' and 'model' (5376 bytes per device)}}
#include <cfp/core.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using g = cfp::held_as<"bias.grad", cfp::sharded<cfp::dims<"width=768">, mesh, cfp::partial<"data">, cfp::partial<"model">>>;
static_assert(cfp::owes<g, cfp::complete_t<g>, cfp::all_reduce<"data", "model">>);
static_assert(cfp::owes<g, cfp::complete_t<g>, cfp::all_reduce<"data">, cfp::all_reduce<"model">>);
#ifndef CFP_CONTROL
static_assert(cfp::owes<g, cfp::complete_t<g>, cfp::all_reduce<"data">>);
#endif
int main() {}
