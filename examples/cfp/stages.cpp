#include "arguments.hpp"
#include "commands.hpp"
#include "described.hpp"

#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/plan_in_stages.hpp>
#include <cfp/session/print_terms.hpp>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

namespace program {

// Nothing is trained.
described_stages stages_there(const arguments& a) {
  using cfp::bad_input;
  for (const char* const option : {"--together", "--profile"})
    if (a.is_given(option))
      throw bad_input(std::string(option) + ": plans in stages do not know of it so far; leave it out");
  if (a.is_given("--micro-batches") && a.micro_batches == 1)
    throw bad_input("--micro-batches: a pipeline has 2 or more, got: 1; leave it out for those that take least");
  if (a.backend != "threads") throw bad_input("--backend: plans in stages are simulated, leave it out");
  const cfp::machine m = cfp::load_machine(carried("machines", "--machine", a.machine).path);
  described_stages out{a, {}, {}};
  arguments& sized = out.sized;
  if (!a.is_given("--batch")) sized.batch = 4l * m.devices();
  if (!a.is_given("--seq")) sized.sequence = 1024;
  if (a.micro_batches > 0) rows_of(sized.batch, a.micro_batches);  // or it says why they are not whole
  const auto model = [&](long rows) { return make_model(sized, rows, a.layers, 1).forward; };
  out.net = make_model(sized, sized.batch, a.layers, 1);
  cfp::machine_plan_options o = a.machine_plan();
  o.name = a.model + " " + out.net.sizes;
  const std::vector<int> places = a.stages == std::vector<int>{0} ? std::vector<int>{} : a.stages;
  for (auto p = places.begin(); p != places.end(); ++p)
    if (*p == 0 || std::find(places.begin(), p, *p) != p)
      throw bad_input(*p == 0 ? "--stages: 0 is any number of places, leave out the others"
                              : "--stages: " + std::to_string(*p) + " stands twice, leave one out");
  if (o.axes > 2) throw bad_input("--axes: a mesh inside stages has 1 or 2 so far, got: " + std::to_string(o.axes));
  if (o.optimizers.size() > 1) throw bad_input("--optimizer: stages are planned for one, name one");
  std::string why;
  std::optional<cfp::stages_plan> found = cfp::plan_in_stages(model, sized.batch, m, o, places, &why);
  clear_progress();
  if (!found) throw bad_input(why);
  out.found = *std::move(found);
  return out;
}

int plan_in_stages(const arguments& a) {
  described_stages there = stages_there(a);
  const arguments& sized = there.sized;
  cfp::stages_plan& found = there.found;
  std::cout << a.model << ": " << there.net.sizes << '\n' << found;
  if (a.explain)
    std::cout << "\neach stage by itself, by sums of parts\n"
              << found.explain() << "\nall places\n"
              << cfp::terms_text(cfp::mean_terms(found.terms()));
  answer(a, found.json());
  found.model = a.model + " " + make_model(sized, found.plan.rows, a.layers, 1).sizes;  // of a micro-batch
  if (!a.save_header.empty()) found.save_header(a.save_header);
  if (a.save_plan.empty()) return 0;
  found.save_plan(a.save_plan);
  std::cout << how_to_train(sized, cfp::to_string(found.plan.layout.whole()), found.plan.micro_batches, found.type);
  return 0;
}

}  // namespace program
