// What a session returns, printed for people and as JSON.
#pragma once

#include <cfp/session/print_gradients.hpp>
#include <cfp/session/texts.hpp>

#include <thread>

namespace cfp::inline v0_1 {

CFP_INLINE std::ostream& operator<<(std::ostream& out, const structure& s) {
  using detail::printed, detail::gib, detail::mib;
  out << s.operators << " operators (" << s.forward << " forward) -> " << s.blocks << " blocks (" << s.unique_blocks
      << " unique) -> " << s.segments << " segments (" << s.unique_segments << " unique)\n"
      << printed("search space: 10^%.0f per operator, 10^%.0f per block; %ld strategies to measure\n",
                 s.log10_operators, s.log10_blocks, s.strategies);
  for (const std::string& why : s.uneven) out << "left out: " << why << '\n';
  if (s.needs.empty()) return out;
  out << printed("%.3f billion parameters; analysed in %.2f s\n\n%-29s %12s %14s %14s %14s\n", s.parameters / 1e9,
                 s.seconds, "plan, of each device", "weights GiB", "optimizer GiB", "arena GiB", "sends MiB");
  for (const structure::need& n : s.needs)
    out << printed("%-29s %12.2f %14.2f %14.2f %14.1f\n", n.plan.c_str(), gib(n.weights), gib(n.state), gib(n.arena),
                   mib(n.sent));
  return out;
}

CFP_INLINE std::ostream& operator<<(std::ostream& out, const found_plan& p) {
  using detail::printed, detail::gib, detail::mib;
  // Plans whose segments were run may have run out before one was near enough.
  const double certified = p.gap > p.tolerance ? p.gap : p.tolerance;
  if (p.figures > 0)
    out << "certified: no other plan is "
        << (certified > 0 ? printed("more than %.3g%% faster", 100 * certified) : std::string("faster"))
        << ", by bounds; of " << p.figures << " figures " << p.figures_measured << " were measured"
        << (p.below_bound > 0
                ? printed(",\nbut %d figures were below theirs, by at most %.3g ms", p.below_bound, p.below_by)
                : std::string())
        << '\n';
  if (p.from_file) out << printed("from a file; %.1f ms when it was found\n", p.best.predicted_ms);
  else
    out << printed("measured %d programs in %.1f s, solved in %.1f ms\n", p.measured, p.profile_seconds,
                   1000 * p.solve_seconds)
        << printed(
               "found after running the segments of %d plans: %.1f ms a step by segments, %.1f ms by parts;\n"
               "untried plans: at most %.1f%% faster by parts\n",
               p.tried, p.best.predicted_ms, p.best.additive_ms, 100 * p.gap);
  if (p.stages)
    out << printed("%d stages on %d places, %s\n", p.stages->stages(), p.stages->places, p.stages->schedule.c_str());
  detail::print_lines(out << '\n', p.lines);
  if (p.stages) out << "of the place that takes most:\n";
  detail::print_memory(out, p);
  const long planned = p.weight_bytes + p.state_bytes + p.kept_bytes + p.transient_bytes;
  out << printed("with %.1f MiB beside them in all %.1f", mib(p.peak_bytes - planned), mib(p.peak_bytes))
      << (p.limit_bytes > 0 ? printed(" of %.1f that it may take\n", mib(p.limit_bytes)) : "\n");
  if (p.device_bytes > 0)
    out << printed("memory of a GPU: %.1f GiB, %.1f taken by contexts, NCCL and libraries, %.1f planned\n",
                   gib(p.device_bytes), gib(p.taken_bytes), gib(p.peak_bytes));
  return out;
}

CFP_INLINE std::vector<std::string> verification::faults() const {
  using detail::printed;
  std::vector<std::string> out;
  for (std::size_t s = 0; s < alone.size(); ++s)
    if (!std::isfinite(alone[s]))
      return {
          printed("it cannot be judged: on one rank too the loss of step %ld is no finite number; data or weights "
                  "are none, or the rate is too high",
                  begun_after + static_cast<long>(s) + 1)};
  if (!(apart.loss <= most_loss))
    out.push_back(
        printed("it does not train as one rank does: losses differ by %.1e, at most %.0e", apart.loss, most_loss));
  if (!(apart.parameters <= most_parameters))
    out.push_back(printed("it does not train as one rank does: changes of '%s' differ by %.1e, at most %.0e",
                          apart.worst.c_str(), apart.parameters, most_parameters));
  if (static_cast<double>(left_out.count) > most_left_out * static_cast<double>(left_out.of))
    out.push_back(
        printed("it cannot be judged: float32 rounding alone decides %.1f%% of the parameters, at most %.0f%%; "
                "verify over more steps or with a higher learning rate",
                100 * static_cast<double>(left_out.count) / static_cast<double>(left_out.of), 100 * most_left_out));
  if (!(stored_apart <= most_stored))
    out.push_back(printed("in %s its losses differ by %.1e from those in float32, at most %.0e", stored_as.c_str(),
                          stored_apart, most_stored));
  return out;
}

CFP_INLINE std::ostream& operator<<(std::ostream& out, const verification& v) {
  using detail::printed;
  if (v.begun_after > 0) out << "going on after step " << v.begun_after << '\n';
  out << (v.holds() ? "verified" : "NOT verified")
      << printed(" over %ld steps: loss %.4f -> %.4f, largest relative difference %.1e;\nparameters %.1e", v.steps,
                 v.alone.front(), v.alone.back(), v.apart.loss, v.apart.parameters)
      << (v.apart.worst.empty() ? "" : " (" + v.apart.worst + ")") << '\n';
  for (const std::string& fault : v.faults()) out << fault << '\n';
  if (!v.stored_as.empty())
    out << printed("that was in float32; in %s the loss is within %.1e of it\n", v.stored_as.c_str(), v.stored_apart);
  if (v.left_out.count > 0)
    out << printed("left out of %ld parameters: %ld that float32 rounding alone decides on one rank, most of %s\n",
                   v.left_out.of, v.left_out.count, v.left_out.most.c_str());
  return out;
}

CFP_INLINE std::ostream& operator<<(std::ostream& out, const training_report& t) {
  if (t.loss.empty()) return out << "nothing was trained\n";
  double ms = 0;
  for (const double x : t.ms) ms += x;
  out << detail::printed("trained steps %ld to %ld: loss %.4f -> %.4f, %.1f ms a step\n", t.first, t.last,
                         t.loss.front(), t.loss.back(), ms / static_cast<double>(t.ms.size()));
  if (const long step = t.lost_at(); step > 0)
    out << "at step " << step << " the loss is no number any more, and neither are the weights behind it: go on from a "
        << "state before it, with a lower rate or a clip\n";
  return out;
}

CFP_INLINE std::ostream& operator<<(std::ostream& out, const plan_comparison& c) {
  using detail::printed, detail::mib;
  out << printed("%-29s %10s %10s %10s %22s %10s %12s\n", "plan", "predicted", "measured",
                 c.tokens > 0 ? "tokens/s" : "steps/s", "time / found's", "peak MiB", "sent MiB");
  for (const plan_comparison::entry& e : c.plans)
    out << printed("%-29s %7.1f ms %7.1f ms %10.0f    %5.3f [%5.3f, %5.3f] %10.1f %12.2f\n", e.plan.c_str(),
                   e.predicted_ms, e.measured_ms, 1000 * (c.tokens > 0 ? c.tokens : 1) / e.measured_ms, e.ratio[0],
                   e.ratio[1], e.ratio[2], mib(e.measured_peak), mib(e.sent.total_bytes()));
  std::string above;
  for (const plan_comparison::entry& e : c.plans)
    if (!e.fits) above += (above.empty() ? "" : ", ") + e.plan;
  if (!above.empty()) out << "above the limit of memory, so that they are no plans to take: " << above << '\n';
  if (c.beaten() && !c.oversubscribed)
    out << "a compared plan is faster than the found one, on fresh steps too: what was measured does not hold "
           "here;\nprofile again, on an idle machine and without a table\n";
  if (c.oversubscribed)
    out << "oversubscribed: " << c.ranks_here << " ranks on " << std::thread::hardware_concurrency()
        << " threads; these times are no timings\n";
  return out;
}

CFP_INLINE std::string structure::json() const {
  nlohmann::ordered_json j;
  j["operators"] = operators;
  j["blocks"] = blocks;
  j["segments"] = {{"total", segments}, {"unique", unique_segments}};
  j["search"] = {{"exhaustive_log10", log10_operators}, {"strategies", strategies}};
  j["parameters"] = parameters;
  for (const need& n : needs)
    j["plans"][n.plan] = {
        {"weight_bytes", n.weights}, {"state_bytes", n.state}, {"arena_bytes", n.arena}, {"bytes_per_rank", n.sent}};
  return j.dump(1);
}

CFP_INLINE std::string found_plan::json() const {
  nlohmann::ordered_json j;
  j["model"] = model;
  j["mesh"] = mesh;
  j["predicted_ms"] = best.predicted_ms;
  j["predicted_peak_bytes"] = peak_bytes;
  if (device_bytes > 0) {
    j["device_bytes"] = device_bytes;
    j["taken_bytes"] = taken_bytes;
  }
  j["measured"] = measured;
  j["profile_seconds"] = profile_seconds;
  j["solve_seconds"] = solve_seconds;
  j["gap"] = gap;
  for (const plan_line& l : lines)
    j["decisions"].push_back(
        {{"decision", l.decision}, {"choice", l.choice}, {"ms", l.ms}, {"bytes_per_rank", l.sent.total_bytes()}});
  for (const plan& p : others) j["others"].push_back({{"name", p.name}, {"predicted_ms", p.predicted_ms}});
  return j.dump(1);
}

CFP_INLINE std::string verification::json() const {
  nlohmann::ordered_json j;
  j["steps"] = steps;
  j["loss_single"] = alone;
  j["loss_parallel"] = together;
  j["max_relative_error"] = apart.loss;
  j["parameters_max_relative_error"] = apart.parameters;
  j["parameters"] = left_out.of;
  j["parameters_left_out"] = left_out.count;
  j["holds"] = holds();
  return j.dump(1);
}

CFP_INLINE std::string gradient_check::json() const {
  nlohmann::ordered_json j;
  j["holds"] = holds();
  j["loss"] = loss;
  j["seed"] = seed;
  j["step"] = step;
  j["plans"] = plans;
  j["losses"] = losses;
  j["tensors"] = nlohmann::ordered_json::array();
  for (const of_tensor& t : tensors) {
    nlohmann::ordered_json place = nlohmann::ordered_json::object();
    for (const auto& [dimension, at] : t.worst.place) place[dimension] = at;
    j["tensors"].push_back({{"tensor", t.tensor},
                            {"elements", t.elements},
                            {"tried", t.tried},
                            {"left_out", t.left_out},
                            {"worst",
                             {{"place", place},
                              {"plan", t.worst.plan},
                              {"derived", t.worst.derived},
                              {"by_differences", t.worst.by_differences},
                              {"relative", t.relative()},
                              {"bound", t.relative_bound()},
                              {"holds", t.worst.holds()}}}});
  }
  return j.dump(1);
}

CFP_INLINE std::string training_report::json() const {
  return nlohmann::ordered_json{{"first", first}, {"last", last}, {"loss", loss}, {"ms", ms}, {"lost_at", lost_at()}}
      .dump(1);
}

CFP_INLINE std::string plan_comparison::json() const {
  nlohmann::ordered_json j = nlohmann::ordered_json::array();
  for (const entry& e : plans)
    j.push_back({{"name", e.plan},
                 {"predicted_ms", e.predicted_ms},
                 {"measured_ms", e.measured_ms},
                 {"predicted_peak_bytes", e.predicted_peak},
                 {"measured_peak_bytes", e.measured_peak},
                 {"fits", e.fits},
                 {"ratio_to_found", e.ratio},
                 {"collectives", detail::count_json(e.sent)},
                 {"bytes_per_rank", e.sent.total_bytes()},
                 {"outside_kernels", e.outside}});
  return j.dump(1);
}

}  // namespace cfp
