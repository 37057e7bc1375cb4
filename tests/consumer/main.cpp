#include "consumer.hpp"

#include <cstdio>
#include <type_traits>

int main() {
  constexpr cfp::rule rule = cfp::parse("b s -> b; max s");
  const bool right = rule.combine == cfp::reduction::max && operands_seen_by_second(rule) == 1;
  // An operator's address is its name, so it must be one across translation units.
  const bool one = project_seen_by_second() == &cfp::info<std::remove_const_t<decltype(project)>>;
  std::printf("b s -> b is a max: %s; one address per operator: %s\n", right ? "yes" : "no", one ? "yes" : "no");
  return right && one ? 0 : 1;
}
