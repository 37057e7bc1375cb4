// What a session does: everything below brought together.
#pragma once

#include <cfp/model/in_full.hpp>
#include <cfp/plan/machine_search.hpp>
#include <cfp/plan/reasons.hpp>
#include <cfp/session/print.hpp>
#include <cfp/session/race.hpp>
#include <cfp/session/repeatable.hpp>
#include <cfp/session/saved.hpp>
#include <cfp/session/session_search.hpp>
#include <cfp/session/verification.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

CFP_INLINE session::session(const graph& forward, session_options options)
    : parts_(std::make_unique<parts>(forward, std::move(options))) {}
CFP_INLINE session::session(const model& traced, session_options options)
    : session(traced.recorded, std::move(options)) {}
CFP_INLINE session::~session() = default;
CFP_INLINE session::session(session&&) noexcept = default;
CFP_INLINE session& session::operator=(session&&) noexcept = default;

CFP_INLINE session::parts& session::mine() const {
  if (parts_ == nullptr) throw bad_input("the session was moved from: call the one that it was moved to");
  return *parts_;
}

CFP_INLINE const structure& session::overview() const { return *mine().known; }

CFP_INLINE const structure& session::analyse() {
  parts& s = mine();
  if (!s.known->needs.empty()) return *s.known;
  if (s.places > 0)
    throw bad_input("mesh " + s.o.mesh + ": what plans need is analysed without stages; give a mesh without that axis");
  const decision_graph all = decisions(s.g, s.blocks, s.mesh, axis_choice::regathered);
  machine_options plain;  // what plans leave open is solved for a machine as simple as can be
  plain.lowered_for = bytes_of(s.o.type);
  plain.overlap = false;
  machine_search search(s.g, s.mesh, all, plain_machine(s.mesh), plain);
  for (const named_plan& n : compared_plans(s.mesh, has_experts(s.g), true)) {
    s.tell("making the program of plan " + n.name);
    const std::optional<evaluated> made = search.usual(n);
    if (!made) continue;
    const program& code = made->p.code;
    s.known->needs.push_back({n.name, detail::role_bytes(code, s.g, value_role::weight),
                              detail::role_bytes(code, s.g, value_role::state), code.arena_bytes,
                              count_collectives(code, s.g).total_bytes()});
  }
  return *s.known;
}

CFP_INLINE const found_plan& session::plan() { return mine().search(); }

CFP_INLINE const found_plan& session::use_plan(const std::string& path) {
  parts& s = mine();
  s.tell("reading plan " + path);
  s.choose_as_saved(path);
  const saved_plan saved = s.saved(path);
  s.measured_before();
  found_plan out;
  out.best = s.made_as("found", saved, path);
  out.stages = saved.stages;
  if (s.device) out.best.beside_bytes = beside_bytes(s.ranks(), largest(out.best), out.best.on_ranks().graph_of(s.g));
  out.from_file = true;
  s.check_fits(out.best, path);
  s.training.reset();
  s.take(std::move(out));
  return *s.found;
}

CFP_INLINE void session::compare_with(const std::string& path) {
  parts& s = mine();
  if (s.places > 0) {
    s.search();  // or it says that there is none yet
    s.found->others.push_back(s.made_as(path, s.saved(path), path));
    return;
  }
  s.choose_what_is_kept();
  s.saved(path);  // or it says why not
  s.against = path;
  s.found.reset();
}

CFP_INLINE std::string session::explain() {
  parts& s = mine();
  const found_plan& f = s.search();
  if (s.costs.nodes.empty()) throw bad_input("a plan from a file has no measurements to explain it by");
  std::vector<cfp::plan> all{f.best};
  all.insert(all.end(), f.others.begin(), f.others.end());
  solve_options brief;
  brief.max_seconds = 10;
  return reasons(s.costs, s.corrected, s.decided, all, s.limit(), brief);
}

CFP_INLINE verification session::verify(const batch_source& batches, long steps) {
  parts& s = mine();
  if (steps < 1) throw bad_input("a verification has at least 1 step, not " + std::to_string(steps));
  const cfp::plan& found = s.search().best;
  const batch_source same_each_time = repeatable(batches);
  const std::optional<training_start> from = s.start();
  // One of the trainings, which take from one share of the time to another. A process that trains alone stops alone.
  const bool lean = !is_in_full(s.g);
  const std::optional<graph> full = lean ? std::optional(in_full(s.g)) : std::nullopt;
  const graph& right = lean ? *full : s.g;
  const auto train_in = [&](backend& ranks, rank_programs p, const graph& g, const std::string& what, double begin,
                            double end) {
    detail::callback tell;
    train_options how;
    how.keep_changes = true;
    if (s.o.tell)
      how.tell = [&](const step_report& r) {
        const double share = static_cast<double>(r.step - (from ? from->step : 0)) / static_cast<double>(steps);
        return tell.go_on(s.o.tell, progress{what, begin + (end - begin) * share});
      };
    s.tell(what, begin);
    trained out;
    try {
      out = cfp::train(ranks, p, g, same_each_time, steps, s.o.seed, how, from ? &*from : nullptr);
    } catch (const cancelled&) {}
    if (s.o.tell) s.stop_if(tell);
    return out;
  };
  mesh_shape one;
  one.axes.push({"one", 1});
  const auto alone_in = [&](number type, const std::string& what, double begin, double end) {
    const std::unique_ptr<backend> single = threads(one, type, s.o.kernels);
    program p = lower(right, one, sharding::replicated(right), all_operations(right), single->lowered_for().real_bytes);
    single->lowered_for().complete(p, right);
    return train_in(*single, p, right, what, begin, end);
  };
  verification out;
  out.steps = steps;
  out.begun_after = from ? from->step : 0;
  const trained alone = alone_in(number::float32, "training on one rank", 0, 0.3);
  out.left_out = rounding_decides(alone, alone_in(number::float64, "training on one rank in float64", 0.3, 0.7), s.g);
  backend& ranks = s.ranks_in_full();
  const cfp::plan same = s.made("found", right, found.choices, s.found->stages, ranks);
  const trained together = train_in(ranks, same.on_ranks(), right, "training under the plan", 0.7, 0.85);
  out.alone = alone.loss;
  out.together = together.loss;
  out.apart = cfp::compare(alone, together, s.g, out.left_out);
  if (s.o.type == number::float32 && !lean) return out;
  out.stored_as = name_of(s.o.type);
  if (s.o.how.optimizer != optimizer_form::adamw_float32)
    out.stored_as.append(" and by ").append(name_of(s.o.how.optimizer));
  if (s.g.gradients != compression::none)
    out.stored_as.append(" and with gradients sent as ").append(name_of(s.g.gradients));
  const trained stored =
      train_in(s.ranks(), found.on_ranks(), s.g, "training under the plan in " + out.stored_as, 0.85, 1);
  out.stored_apart = loss_difference(alone, stored);
  return out;
}

CFP_INLINE training_report session::train(const batch_source& batches, long steps,
                                          const std::function<bool(const step_report&)>& tell) {
  parts& s = mine();
  detail::check(batches);
  if (steps < 0) throw bad_input("a training has 0 steps or more, not " + std::to_string(steps));
  const cfp::plan& found = s.search().best;
  s.tell("training", 0);
  if (!s.training) {
    auto begun = std::make_unique<trainer>(s.ranks(), found.on_ranks(), s.g, s.o.seed);
    if (const std::optional<training_start> from = s.start()) begun->resume(*from);
    s.training = std::move(begun);
    s.lost_at = 0;
  }
  training_report out;
  out.first = s.training->done() + 1;
  train_options how;
  if (tell || s.o.tell)
    how.tell = [&, first = s.training->done()](const step_report& r) {
      const bool on = !tell || tell(r);
      return (!s.o.tell || s.o.tell({"training", static_cast<double>(r.step - first) / static_cast<double>(steps)})) &&
             on;
    };
  trained t;
  try {
    t = s.training->run(batches, steps, how);
  } catch (...) {
    if (s.training->lost()) s.training.reset();  // it begins anew
    throw;
  }
  out.last = s.training->done();
  out.loss = std::move(t.loss);
  out.ms = std::move(t.ms);
  if (s.lost_at == 0) s.lost_at = out.lost_at();
  return out;
}

CFP_INLINE plan_comparison session::compare(const batch_source& batches, int steps) {
  parts& s = mine();
  detail::check(batches);
  if (steps < 1) throw bad_input("a comparison has at least 1 step, not " + std::to_string(steps));
  const found_plan& f = s.search();
  std::vector<const cfp::plan*> plans{&f.best};
  for (const cfp::plan& p : f.others) plans.push_back(&p);
  const auto run = [&](const std::vector<const cfp::plan*>& some, const std::string& what, std::uint64_t seed) {
    std::vector<rank_programs> programs;
    for (const cfp::plan* p : some) programs.push_back(p->on_ranks());
    race_options how;
    how.steps = steps;
    how.seed = seed;
    if (s.o.tell) how.tell = [&](int done, int of) { return s.o.tell({what, static_cast<double>(done) / of}); };
    return race(s.ranks(), programs, s.g, batches, how);
  };
  s.tell("comparing plans", 0);
  const std::vector<observed> seen = run(plans, "comparing plans", s.o.seed);
  plan_comparison out;
  out.ranks_here = s.ranks().on_this_machine();
  out.oversubscribed = is_oversubscribed(s.ranks());
  for (const value& v : s.g.values)
    if (v.role == value_role::input && v.type == element::index && v.producer < 0 && v.fill.bound > 0 && v.rank() > 1)
      out.tokens = std::max(out.tokens, static_cast<double>(elements(v.shape)) * s.g.passes);
  for (std::size_t p = 0; p < seen.size(); ++p) {
    plan_comparison::entry e;
    e.plan = plans[p]->name;
    e.predicted_ms = plans[p]->predicted_ms;
    e.measured_ms = median(seen[p].ms);
    e.ratio = paired_ratio(seen[p].ms, seen[0].ms);
    e.predicted_peak = predicted_peak(*plans[p]);
    e.measured_peak = seen[p].peak_bytes;
    e.fits = e.predicted_peak <= s.limit().value_or(e.predicted_peak);
    e.sent = seen[p].sent;
    e.inferred = seen[p].inferred;
    e.outside = seen[p].outside;
    // A plan that seems faster beyond doubt must be so on fresh steps too.
    if (p > 0 && e.fits && e.ratio[2] < 0.95) {
      s.tell("checking " + e.plan + " again", 0);
      const auto again = run({plans[0], plans[p]}, "checking " + e.plan + " again", s.o.seed + 1);
      e.ratio = paired_ratio(again[1].ms, again[0].ms);
    }
    out.plans.push_back(std::move(e));
  }
  return out;
}

CFP_INLINE const graph& session::training_graph() const { return mine().g; }
CFP_INLINE backend& session::ranks() { return mine().ranks(); }

}  // namespace cfp
