#include "arguments.hpp"
#include "commands.hpp"

namespace program {

int export_plan(const arguments& a) {
  if (a.plan.empty()) throw cfp::bad_input("export needs --plan FILE: a plan that --save-plan wrote");
  if (a.to.empty() && !a.output.empty()) throw cfp::bad_input("-o " + a.output + ": what for is missing, give --to");
  if (!a.to.empty()) return export_to(a);
  if (a.save_header.empty() && a.save_plan.empty())
    throw cfp::bad_input("say what to write: --to TARGET -o FILE, --save-header FILE or --save-plan FILE");
  prepared p = prepare(a);
  p.session.use_plan(a.plan);
  save(p, a);
  return 0;
}

}  // namespace program
