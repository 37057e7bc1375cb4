#include "arguments.hpp"
#include "commands.hpp"
#include "described.hpp"
#include "files.hpp"

#include <cfp/profile/machine/fleet_file.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/fleet_plan.hpp>
#include <cfp/session/print_fleet.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <string>

namespace program {

namespace {

using cfp::bad_input;

cfp::fleet fleet_of(const arguments& a) {
  const std::string path = carried("fleets", "--fleet", a.fleet).path;
  return cfp::read_fleet(contents(path), path, [](const std::string& name) {
    return cfp::load_machine(carried("machines", "machine", name).path);
  });
}

void check_alone(const arguments& a) {
  for (const char* const option : {"--machine", "--mesh", "--plan", "--explain", "--axes"})
    if (a.is_given(option))
      throw bad_input(std::string(option) + ": --fleet asks which machine and mesh; leave one out");
  for (const char* const option :
       {"--against", "--profile", "--profile-mode", "--tolerance", "--deadline", "--share-gpus"})
    if (a.is_given(option)) throw bad_input("--fleet simulates and runs nothing: leave out " + std::string(option));
  if (!a.stages.empty() && a.stages != std::vector<int>{0})
    throw bad_input("--stages: --fleet asks how many places there are; say 0, for any number");
  if (a.backend != "threads") throw bad_input("--backend: plans for a fleet are simulated, leave it out");
}

double cheapest_hour(const cfp::fleet_plan& f) {
  double out = f.offers.front().hourly;
  for (const cfp::fleet_offer& x : f.offers) out = std::min(out, x.hourly);
  return out;
}

void save(const arguments& a, const arguments& sized, const cfp::fleet_offer& taken) {
  const auto named = [&](long rows) { return a.model + " " + make_model(sized, rows, a.layers, 1).sizes; };
  const auto write = [&](const auto& p) {
    if (!a.save_plan.empty()) p.save_plan(a.save_plan);
    if (!a.save_header.empty()) p.save_header(a.save_header);
  };
  const auto save = [&](auto p, long rows) {
    p.model = named(rows);  // of a micro-batch
    write(p);
  };
  if (taken.in_stages) return save(*taken.in_stages, taken.in_stages->plan.rows);
  if (!taken.in_copies) return save(taken.plan, sized.batch / taken.plan.micro_batches);
  cfp::copies_plan all = *taken.in_copies;
  for (cfp::machine_plan& p : all.copies) p.model = named(all.rows);
  write(all);
}

}  // namespace

int plan_in_fleet(const arguments& a) {
  check_alone(a);
  const cfp::fleet all = fleet_of(a);
  arguments sized = a;
  int most = 1;
  for (const cfp::fleet::pool& p : all.pools) most = std::max(most, p.on.devices());
  if (!a.is_given("--batch")) sized.batch = 4l * most;
  if (!a.is_given("--seq")) sized.sequence = 1024;
  const auto model = [&](long rows) { return make_model(sized, rows, a.layers, 1).forward; };
  const made_model net = make_model(sized, sized.batch, a.layers, 1);
  cfp::machine_plan_options o = a.machine_plan();
  o.micro_batches = a.is_given("--micro-batches") ? a.micro_batches : 0;
  o.name = a.model + " " + net.sizes;
  cfp::fleet_question q;
  if (a.budget > 0) q.budget = a.budget;
  if (a.least == "devices") q.wanted = cfp::fleet_question::least_devices;
  q.stages = !a.stages.empty();
  const cfp::fleet_plan found = cfp::plan_for(model, sized.batch, all, o, q);
  clear_progress();
  if (found.count(cfp::fleet_offer::above_budget) == static_cast<int>(found.offers.size()))
    throw bad_input("--budget " + cfp::detail::printed("%g", a.budget) + ": the cheapest part of " + all.name +
                    " costs " + cfp::detail::printed("%g ", cheapest_hour(found)) + all.currency + " an hour");
  const auto step_tokens = static_cast<double>(sized.batch) * static_cast<double>(net.inputs.length(sized.sequence));
  std::cout << a.model << ": " << net.sizes << "\n\n" << cfp::fleet_text(found, step_tokens, a.tokens_in_all);
  const cfp::fleet_offer* const taken = a.least == "money"     ? found.cheapest()
                                        : a.least == "devices" ? found.smallest()
                                                               : found.fastest();
  if (taken == nullptr)
    throw bad_input("no plan for " + all.name + (a.budget > 0 ? " within the budget" : "") +
                    " fits; take another --fleet, a smaller --batch or more --micro-batches" +
                    (a.budget > 0 ? ", or a larger --budget" : ""));
  std::cout << "\nleast " << a.least << ": " << cfp::detail::devices_text(*taken) << '\n';
  if (taken->in_stages) std::cout << *taken->in_stages;
  else if (taken->in_copies) std::cout << *taken->in_copies;
  else std::cout << taken->plan;
  nlohmann::ordered_json summary = cfp::fleet_json(found, step_tokens);
  summary["least"] = a.least;
  summary["taken"] = {{"machine", taken->machine}, {"devices", taken->devices}};
  answer(a, summary.dump(1));
  save(a, sized, *taken);
  return 0;
}

}  // namespace program
