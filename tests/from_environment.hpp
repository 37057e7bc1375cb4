// How many cases a test takes, and what it is told by the environment: how many, from which seed on.
#pragma once

#include <cstdlib>

#if defined(CFP_SANITIZED)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

inline long from_environment(const char* name, long otherwise) {
  const char* const said = std::getenv(name);
  return said != nullptr ? std::atol(said) : otherwise;
}

/// Of some number of cases: all where the environment says CFP_ALL=1 (tests/all_cases.sh), `some` otherwise, and `few`
/// under sanitizers, which are slow.
inline long how_many(long all, long some, long few) {
  return sanitized ? few : from_environment("CFP_ALL", 0) != 0 ? all : some;
}
