#include "arguments.hpp"
#include "commands.hpp"

#include <cfp/file/new_file.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/plan_in_stages.hpp>
#include <cfp/solve/explain/explanation.hpp>

#include <iostream>

namespace program {

// Plans in stages for a machine that is described; nothing is trained.
int plan_in_stages(const arguments& a) {
  using cfp::bad_input;
  for (const char* const option : {"--explain", "--save-header", "--together", "--profile"})
    if (a.is_given(option))
      throw bad_input(std::string(option) + ": plans in stages do not know of it so far; leave it out");
  if (a.is_given("--micro-batches") && a.micro_batches < 2)
    throw bad_input("--micro-batches: a pipeline has 2 or more, got: 1; leave it out for those that take least");
  if (a.backend != "threads") throw bad_input("--backend: plans in stages are simulated, leave it out");
  const cfp::machine m = cfp::load_machine(carried("machines", "--machine", a.machine).path);
  arguments sized = a;
  if (!a.is_given("--batch")) sized.batch = 4l * m.devices();
  if (!a.is_given("--seq")) sized.sequence = 1024;
  rows_of(sized.batch, a.micro_batches);  // or it says why they are not whole
  const auto model = [&](long rows) { return make_model(sized, rows, a.layers, 1).forward; };
  const cfp::families::built_model net = make_model(sized, sized.batch, a.layers, 1);
  cfp::machine_plan_options o = a.machine_plan();
  o.name = a.model + " " + net.sizes;
  const std::vector<int> places = a.stages == std::vector<int>{0} ? std::vector<int>{} : a.stages;
  std::optional<cfp::stages_plan> found = cfp::plan_in_stages(model, sized.batch, m, o, places);
  clear_progress();
  if (!found)
    throw bad_input("no plan in stages fits " + m.name + " with " +
                    cfp::detail::bytes_text(o.memory > 0 ? o.memory : m.device.memory) + " a device" +
                    (a.is_given("--seconds") ? " that was found within --seconds" : "") +
                    "; a batch has at least as many micro-batches as there are stages, and a model as many segments "
                    "(cfp analyse): take a larger --batch, other --micro-batches, fewer --stages, more --layers, more "
                    "--memory (bytes), or another --machine or --optimizer");
  std::cout << a.model << ": " << net.sizes << '\n' << *found;
  if (!a.summary.empty()) cfp::write_file(a.summary, found->json());
  if (a.save_plan.empty()) return 0;
  found->model = a.model + " " + make_model(sized, found->plan.rows, a.layers, 1).sizes;  // of a micro-batch
  found->save_plan(a.save_plan);
  std::cout << "\nto train under it, with the same model and batch: cfp train --plan " << a.save_plan << "\n  --mesh "
            << cfp::to_string(found->plan.layout.whole()) << " --micro-batches " << found->plan.micro_batches
            << " --batch " << sized.batch << " --seq " << sized.sequence << " --type " << cfp::name_of(o.type) << '\n';
  return 0;
}

}  // namespace program
