#include "arguments.hpp"
#include "commands.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

namespace program {

namespace {

using json = nlohmann::ordered_json;

int check(bool holds, const char* broken) {
  if (holds) return 0;
  if (is_first()) std::cerr << broken << '\n';
  return 1;
}

// Plans, then does of the rest what is asked for.
int do_all(const arguments& a) {
  for (const auto& [option, given] : {std::pair("--save-state", &a.save_state),
                                      {"--load-state", &a.load_state},
                                      {"--save-weights", &a.save_weights},
                                      {"--load-weights", &a.load_weights}})
    if (a.steps == 0 && !given->empty())
      throw cfp::bad_input(std::string(option) + ": --steps 0 trains nothing, leave one of them out");
  prepared p = prepare(a);
  introduce(p, a);
  const cfp::found_plan& found = plan_and_print(p, a);
  json summary = summary_of(p, a, found);
  int broken = 0;
  if (a.steps > 0) {
    const cfp::verification v = p.session.verify(p.text, a.steps);
    clear_progress();
    std::cout << '\n' << v << std::flush;
    summary["verification"] = json::parse(v.json());
    broken += check(v.holds(), "the plan is not verified");
    if (!a.save_state.empty() || !a.save_weights.empty()) p.session.train(p.text, a.steps);
    save_trained(p, a);
  }
  if (a.compare > 0) {
    const cfp::plan_comparison c = p.session.compare(p.text, a.compare);
    clear_progress();
    std::cout << '\n' << c << std::flush;
    summary["plans"] = json::parse(c.json());
    summary["oversubscribed"] = c.oversubscribed;
    broken +=
        check(c.counts_agree(), "collectives counted in the communicators differ from those inferred from the rules");
  }
  save(p, a);
  save_summary(p, a, summary.dump(1));
  return broken > 0 ? 1 : 0;
}

}  // namespace

int run(const arguments& a) { return do_all(a); }

int verify(const arguments& a) {
  arguments some = a;
  some.compare = 0;
  return do_all(some);
}

int compare(const arguments& a) {
  arguments some = a;
  some.steps = 0;
  return do_all(some);
}

}  // namespace program
