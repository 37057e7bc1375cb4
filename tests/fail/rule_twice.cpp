// Must not compile: one factor twice in a tensor.
// expected-error {{rule_reader::fail}}
#include <cfp/core.hpp>
constexpr cfp::rule wrong = cfp::parse("b b -> b");
int main() {}
