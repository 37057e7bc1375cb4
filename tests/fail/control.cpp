// A control: what the other files here get wrong, right. Must compile.
#include <cfp/core.hpp>
constexpr cfp::rule right = cfp::parse("b s -> b; max s");
int main() { return right.factors.size() == 2 ? 0 : 1; }
