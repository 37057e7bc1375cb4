#include "arguments.hpp"
#include "commands.hpp"

#include <iostream>

namespace program {

int explain(const arguments& a) {
  arguments some = a;
  some.explain = true;
  prepared p = prepare(some);
  introduce(p, some);
  plan_and_print(p, some);
  save(p, some);
  return 0;
}

}  // namespace program
