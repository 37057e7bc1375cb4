// Must not compile: a rule without an arrow.
// expected-error {{rule_reader::fail}}
#include <cfp/core.hpp>
constexpr cfp::rule wrong = cfp::parse("b s, s");
int main() {}
