#include "consumer.hpp"

#include <type_traits>

int operands_seen_by_second(const cfp::rule& rule) {
  return rule == cfp::parse("b s -> b; max s") ? rule.operands.size() : -1;
}

const cfp::op_info* project_seen_by_second() { return &cfp::info<std::remove_const_t<decltype(project)>>; }
