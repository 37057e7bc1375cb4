// What the consumer's two translation units both see.
#pragma once

#include <cfp/core.hpp>
#include <cfp/op/op.hpp>

inline constexpr cfp::op<"rows in, in out -> rows out"> project;

int operands_seen_by_second(const cfp::rule& rule);
const cfp::op_info* project_seen_by_second();
