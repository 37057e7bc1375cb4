#include "arguments.hpp"
#include "commands.hpp"
#include "files.hpp"

#include <cfp/file/new_file.hpp>
#include <cfp/pipeline/named_schedules.hpp>
#include <cfp/pipeline/schedule_file.hpp>
#include <cfp/pipeline/schedule_picture.hpp>
#include <cfp/session/texts.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <vector>

namespace program {

namespace {

using cfp::detail::printed;

// What is given must say something.
void refuse(const arguments& a, const std::set<std::string>& options, const std::string& why) {
  for (const std::string& o : options)
    if (a.is_given(o)) throw cfp::bad_input(o + ": " + why);
}

// By name, else a file.
cfp::pipeline_schedule asked_for(const arguments& a, const cfp::stage_cost& cost) {
  const auto named = [&](const cfp::named_schedule& s) { return s.name == a.pipeline; };
  if (std::none_of(cfp::named_schedules.begin(), cfp::named_schedules.end(), named)) {
    if (std::filesystem::exists(a.pipeline)) {
      refuse(a, {"--ranks", "--micro-batches", "--chunks", "--slices"},
             "the schedule of " + a.pipeline + " is as long as it is");
      return cfp::load_schedule(a.pipeline);
    }
    throw cfp::bad_input("schedule '" + a.pipeline + "' is none of " + cfp::schedule_names() +
                         ", and no file that can be read");
  }
  if (a.pipeline != "interleaved") refuse(a, {"--chunks"}, "a rank has one stage unless the schedule is interleaved");
  if (a.pipeline != "terapipe" && a.pipeline != "seq1f1b")
    refuse(a, {"--slices"}, "a micro-batch is whole unless the schedule is terapipe or seq1f1b");
  const int micro_batches = a.is_given("--micro-batches") ? a.micro_batches : 2 * a.ranks;
  return cfp::schedule_named(a.pipeline, {a.ranks, micro_batches, a.chunks, cost, a.slices});
}

void print(const cfp::pipeline_schedule& s, const cfp::pipeline_run& run, const cfp::stage_cost& cost) {
  const std::string slices = s.slices > 1 ? printed(" of %d slices", s.slices) : "";
  std::cout << printed("%s: %d stages on %d ranks, %d micro-batches%s; forward %.4g ms, backward %.4g\n\n",
                       s.name.c_str(), s.stages / s.slices, s.count(), s.micro_batches, slices.c_str(), cost.forward,
                       cost.backward_inputs + cost.backward_weights)
            << cfp::text_of(s, run, std::max(run.ms / 100, std::min(1.0, cost.forward)))
            << printed("\n%.6g ms, %.2f%% idle\n", run.ms, 100 * run.idle());
  std::string kept = s.slices > 1 ? "kept at most, in slices of a stage, by rank:"
                                  : "kept at most, in micro-batches of a stage, by rank:";
  for (const double k : run.peak) {
    const std::string one = printed(" %g", k);
    if (kept.size() - (kept.rfind('\n') + 1) + one.size() > 100) kept += "\n ";
    kept += one;
  }
  std::cout << kept << '\n';
  const int versions = *std::max_element(run.versions.begin(), run.versions.end());
  const int stale = *std::max_element(run.staleness.begin(), run.staleness.end());
  if (versions > 1 || stale > 0)
    std::cout << printed("%d versions of weights at most; gradients are of weights %d updates old at most%s\n",
                         versions, stale, run.consistent ? "" : ", forward and backward of different ones");
}

nlohmann::ordered_json json_of(const cfp::pipeline_schedule& s, const cfp::pipeline_run& run) {
  return {{"schedule", s.name},
          {"ranks", s.count()},
          {"stages", s.stages / s.slices},
          {"slices", s.slices},
          {"micro_batches", s.micro_batches},
          {"ms", run.ms},
          {"idle", run.idle()},
          {"kept", run.peak},
          {"versions", run.versions},
          {"staleness", run.staleness},
          {"consistent", run.consistent}};
}

}  // namespace

int schedule(const arguments& a) {
  if (a.forward + a.backward <= 0)
    throw cfp::bad_input("--forward and --backward are both 0: give one of them some milliseconds");
  cfp::stage_cost cost;
  cost.forward = a.forward;
  cost.backward_inputs = cost.backward_weights = a.backward / 2;
  cost.send_forward = cost.send_backward = a.send;
  if (const std::string why = wrong_files(a); !why.empty()) throw cfp::bad_input(why);
  const cfp::pipeline_schedule s = asked_for(a, cost);
  const cfp::pipeline_run run = cfp::simulate(s, std::vector(static_cast<std::size_t>(s.stages), cost));
  print(s, run, cost);
  answer(a, json_of(s, run).dump(1));
  if (!a.svg.empty()) cfp::write_file(a.svg, cfp::svg_of(s, run));
  if (!a.save_schedule.empty()) cfp::write_file(a.save_schedule, cfp::write_schedule(s));
  return 0;
}

}  // namespace program
