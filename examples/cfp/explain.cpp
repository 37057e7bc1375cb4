#include "arguments.hpp"
#include "commands.hpp"

namespace program {

int explain(const arguments& a) {
  arguments some = a;
  some.explain = true;
  return plan(some);
}

}  // namespace program
