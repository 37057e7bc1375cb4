// Must not compile: a result dimension from nowhere.
// expected-error {{rule_reader::fail}}
#include <cfp/core.hpp>
constexpr cfp::rule wrong = cfp::parse("b s -> b t");
int main() {}
