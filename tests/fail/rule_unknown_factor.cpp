// Must not compile: a rule mark of an unknown factor.
// expected-error {{rule_reader::fail}}
#include <cfp/core.hpp>
constexpr cfp::rule wrong = cfp::parse("b s -> b; max v");
int main() {}
