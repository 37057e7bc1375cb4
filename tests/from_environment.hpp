// A number that a test is told by the environment: how many cases, from which seed on.
#pragma once

#include <cstdlib>

inline long from_environment(const char* name, long otherwise) {
  const char* const said = std::getenv(name);
  return said != nullptr ? std::atol(said) : otherwise;
}
