#include "arguments.hpp"
#include "commands.hpp"

#include <iostream>

namespace program {

int train(const arguments& a) {
  prepared p = prepare(a);
  introduce(p, a);
  plan_and_print(p, a);
  save(p, a);
  const long every = std::max(1l, a.steps / 20);
  const cfp::training_report report = p.session.train(p.text, a.steps, [&](const cfp::step_report& r) {
    if (is_first() && (r.step % every == 0 || r.step == 1))
      std::cout << "step " << r.step << ": loss " << r.loss << ", " << r.ms << " ms\n" << std::flush;
    return true;
  });
  std::cout << report;
  if (!a.save_state.empty()) p.session.save_state(a.save_state);
  return 0;
}

}  // namespace program
