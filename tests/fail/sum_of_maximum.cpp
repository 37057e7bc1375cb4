// Must not compile: parts of a maximum are added up.
// expected-error {{steps do not lead from one partition of a tensor to the other}}
// expected-words {{largest: from 'batch:data partial_max:model' to 'batch:data', step 1, all_reduce over 'model', cannot follow: the tensor is then 'batch:data partial_max:model'; owed: all_reduce_max over 'model'}}
#include <cfp/core.hpp>
#include <cfp/op/softmax.hpp>
using mesh = cfp::mesh<cfp::axis<"data", 2>, cfp::axis<"model", 4>>;
using x = cfp::sharded<cfp::dims<"batch", "vocabulary">, mesh, cfp::split<"batch", "data">, cfp::split<"vocabulary", "model">>;
using largest = cfp::held_as<"largest", cfp::result_t<cfp::logits_max, x>>;
static_assert(cfp::owes<largest, cfp::complete_t<largest>, cfp::all_reduce_max<"model">>);
#ifndef CFP_CONTROL
static_assert(cfp::owes<largest, cfp::complete_t<largest>, cfp::all_reduce<"model">>);
#endif
int main() {}
