#include "arguments.hpp"
#include "commands.hpp"

#include <cfp/profile/machine/fleet.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/course_plan.hpp>
#include <cfp/session/print_course.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <string>
#include <vector>

namespace program {

namespace {

using cfp::bad_input;

void check_alone(const arguments& a, const std::string& asked) {
  if (a.machine.empty()) throw bad_input(asked + ": it is of a machine that is described, give --machine too");
  if (!a.lengths.empty() && !a.then.empty())
    throw bad_input("--lengths: --then has the same model on other machines; leave one out");
  for (const char* const option : {"--stages", "--plan", "--explain", "--fleet", "--profile", "--save-plan",
                                   "--save-header", "--against", "--profile-mode", "--tolerance", "--deadline"})
    if (a.is_given(option))
      throw bad_input(std::string(option) + ": " + asked + " compares a plan for each; leave it out, or plan for one");
  if (a.micro_batches == 0)
    throw bad_input("--micro-batches 0: " + asked + " compares plans for as many micro-batches; say how many");
  if (a.backend != "threads") throw bad_input("--backend: plans under " + asked + " are simulated, leave it out");
}

// As many tokens a step of every length.
std::vector<cfp::condition> of_lengths(const arguments& a, const cfp::machine& m) {
  std::vector<cfp::condition> out;
  const long tokens = a.batch * a.sequence;
  for (auto l = a.lengths.begin(); l != a.lengths.end(); ++l) {
    const std::string length = std::to_string(*l);
    if (std::find(a.lengths.begin(), l, *l) != l) throw bad_input("--lengths: " + length + " stands twice");
    if (tokens % (*l * a.micro_batches) != 0)
      throw bad_input("--lengths: a step of " + std::to_string(tokens) + " tokens (--batch times --seq) has no whole " +
                      (a.micro_batches > 1 ? "micro-batches of " : "number of ") + "sequences of " + length);
    arguments sized = a;
    sized.sequence = *l;
    out.push_back({length + " tokens", make_model(sized, tokens / *l / a.micro_batches, a.layers, 1).forward, m});
  }
  return out;
}

// "a100-8:4": of a machine so many devices.
cfp::machine asked_part(const std::string& asked) {
  const std::size_t colon = asked.rfind(':');
  const cfp::machine m = cfp::load_machine(carried("machines", "--then", asked.substr(0, colon)).path);
  if (colon == std::string::npos) return m;
  const std::string devices = asked.substr(colon + 1);
  int n = 0;
  const auto [end, wrong] = std::from_chars(devices.data(), devices.data() + devices.size(), n);
  if (wrong != std::errc() || end != devices.data() + devices.size()) n = 0;  // no part has none
  return cfp::part_of(m, n, "--then " + asked);
}

std::vector<cfp::condition> of_machines(const arguments& a, const cfp::machine& m) {
  const made_model net = make_model(a, rows_of(a.batch, a.micro_batches), a.layers, 1);
  std::vector<cfp::condition> out{{m.name, net.forward, m}};
  for (const std::string& name : a.then) {
    const cfp::machine next = asked_part(name);
    out.push_back({next.name, net.forward, next});
  }
  return out;
}

}  // namespace

int plan_course(const arguments& a) {
  const std::string asked = a.lengths.empty() ? "--then" : "--lengths";
  check_alone(a, asked);
  const cfp::machine m = cfp::load_machine(carried("machines", "--machine", a.machine).path);
  arguments sized = a;
  if (!a.is_given("--batch")) sized.batch = 4l * m.devices();
  if (!a.is_given("--seq")) sized.sequence = 1024;
  const std::vector<cfp::condition> all = a.lengths.empty() ? of_machines(sized, m) : of_lengths(sized, m);
  cfp::machine_plan_options o = a.machine_plan();
  o.name = a.model;
  const cfp::course_plan found = cfp::plan_course(all, o);
  clear_progress();
  std::cout << a.model << (a.lengths.empty() ? "" : " on " + m.name) << ", a step of " << sized.batch * sized.sequence
            << " tokens; all times are simulated\n\n"
            << cfp::course_text(found);
  answer(a, cfp::course_json(found).dump(1));
  return 0;
}

}  // namespace program
