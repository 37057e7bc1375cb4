// What a session is made of.
#pragma once

#include <cfp/backend/device_memory.hpp>
#include <cfp/backend/threads.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/plan/search.hpp>
#include <cfp/plan/stages/realise_stages.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/session/callback.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/option_checks.hpp>
#include <cfp/session/session.hpp>
#include <cfp/session/train.hpp>

#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <unistd.h>

namespace cfp::inline v0_1 {

struct session::parts {
  session_options o;
  mesh_shape mesh;  // that of a stage, if there are
  int places = 0;   // along the stages; 0: there are none
  graph g;
  block_structure blocks;
  segmentation segments;
  decision_graph decided;
  std::vector<named_plan> usual;
  std::unique_ptr<backend> on, in_full;  // in_full: float32, where numbers are stored as less
  std::string against;                   // a saved plan to compare with
  std::optional<found_plan> found;
  std::optional<structure> known;
  cost_graph costs, corrected;               // of the search
  std::optional<state_file<float>> state;    // what training begins with: this, or
  std::optional<checkpoint> public_weights;  // this, or what the model says
  std::unique_ptr<trainer> training;
  long lost_at = 0;  // the first step of it whose loss is no finite number
  device_memory device;

  parts(const graph& forward, session_options options);

  /// What training begins with, if it is not what the model says.
  std::optional<training_start> start() const;
  mesh_shape whole() const { return places > 0 ? with_stages(mesh, places) : mesh; }

  // Throw `cancelled` on every process if one was told to stop, and on that one what its callback threw.
  void tell(const std::string& what, double share = -1);
  void stop_if(const detail::callback& told);
  std::unique_ptr<backend> make(number type) const;
  backend& ranks();
  backend& ranks_in_full();
  std::string id() const;
  void choose_what_is_kept();
  /// What a saved plan may choose, be there a limit of memory or not.
  void choose_as_saved(const std::string& path);
  void decide(axis_choice::rest_t weights, keeping::resting_t on_host);
  saved_plan saved(const std::string& path) const;
  /// The programs of some choices of a training.
  cfp::plan made(const std::string& label, const graph& of, const std::vector<int>& choices,
                 const std::optional<staged_layout>& stages, backend& ranks) const;
  cfp::plan made_as(const std::string& label, const saved_plan& saved, const std::string& path);
  /// The table of times, if there is one; ranks compute by what was chosen by timing then.
  profile_table measured_before();
  const found_plan& search();
  void search_with(profiler& measure_with, const profile_table& measured, found_plan& out);
  void take(found_plan out);
  void check_memory(int ranks_here) const;
  std::optional<long> limit() const { return device.limit(o.memory); }
  /// What is to be saved to `path`.
  trainer& trained_for(session& of, const std::string& path);
  void check_fits(const cfp::plan& p, const std::string& path) const;
  std::string does_not_fit(const std::string& what) const;
};

namespace detail {

// To gather weights again for backward saves memory and never time: a choice only where memory is asked about.
inline axis_choice::rest_t furthest(const session_options& o) {
  return o.memory > 0 ? axis_choice::regathered : axis_choice::scattered;
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double log10_per_operator(const graph& g, const mesh_shape& mesh) {
  double log = 0;
  for (const operation& o : g.operations) {
    if (o.when != phase::forward) continue;
    int choices = 1;
    for (int f = 0; f < o.r.factors.size(); ++f) choices += !o.r.factors[f].whole && o.sizes[f] > 1;
    log += mesh.rank() * std::log10(static_cast<double>(choices));
  }
  return log;
}

}  // namespace detail

CFP_INLINE session::parts::parts(const graph& forward, session_options options)
    : o(std::move(options)), mesh(read_mesh(o.mesh)) {
  detail::check(o);
  if (has_stages(mesh)) places = mesh.size(0), mesh = without_stages(mesh);
  o.how = in_micro_batches(o.how, o.micro_batches);
  if (!o.on) o.on = [](const mesh_shape& m, number type, const own_kernels& own) { return threads(m, type, own); };
  const auto begin = std::chrono::steady_clock::now();
  tell("making the training graph");
  detail::check_runs(forward);
  g = differentiate(refine(checked(forward)), checked(o.how));
  tell("finding blocks");
  blocks = parallel_blocks(g);
  tell("finding equal runs of blocks");
  segments = cfp::segments(g, blocks);
  tell("listing what could be chosen");
  decided = decisions(g, blocks, mesh, detail::furthest(o));
  usual = compared_plans(mesh, has_experts(g), detail::furthest(o) == axis_choice::regathered);
  tell("counting plans");
  structure s;
  s.model = o.name;
  s.mesh = to_string(whole());
  s.operators = g.size();
  for (const operation& op : g.operations) s.forward += op.when == phase::forward;
  s.blocks = static_cast<long>(blocks.blocks.size());
  s.unique_blocks = static_cast<long>(segments.unique_blocks);
  s.segments = static_cast<long>(segments.segments.size());
  s.unique_segments = static_cast<long>(segments.unique);
  std::set<std::string> unique;
  for (const decision& n : decided.nodes) {
    if (n.kind != decision::strategy_of_part) continue;
    s.log10_blocks += std::log10(static_cast<double>(n.choices()));
    if (unique.insert(fingerprint(g, n.operations)).second) s.strategies += static_cast<long>(n.choices());
  }
  s.log10_operators = detail::log10_per_operator(g, mesh);
  for (const value& v : g.values)
    if (v.role == value_role::weight && v.producer < 0) s.parameters += static_cast<double>(elements(v.shape));
  s.uneven.assign(decided.uneven.begin(), decided.uneven.end());
  s.seconds = detail::seconds_since(begin);
  known = std::move(s);
}

CFP_INLINE void session::parts::tell(const std::string& what, double share) {
  if (!o.tell) return;
  detail::callback told;
  told.go_on(o.tell, progress{what, share});
  stop_if(told);
}

CFP_INLINE void session::parts::stop_if(const detail::callback& told) {
  double stop = told.enough() ? 1 : 0;
  if (on)
    on->run([&](rank& r) {
      double mine = stop;
      r.combine(std::span(&mine, 1), reduction::max);
      r.barrier();
      if (r.leads()) stop = mine;
    });
  told.rethrow();
  if (stop > 0) throw cancelled();
}

CFP_INLINE std::unique_ptr<backend> session::parts::make(number type) const {
  auto out = o.on(whole(), type, o.kernels);
  out->set_deadline(std::chrono::nanoseconds(static_cast<std::int64_t>(o.deadline * 1e9)));
  return out;
}

CFP_INLINE backend& session::parts::ranks() {
  if (!on) {
    if (mesh.devices() > 1 && !detail::splits(decided))
      throw bad_input("mesh " + o.mesh + " divides nothing of the model (" + o.name +
                      "); choose axis sizes that divide one of its dimensions");
    std::unique_ptr<backend> made;
    try {
      made = make(o.type);
    } catch (const bad_input& e) {
      throw bad_input("mesh " + o.mesh + ": " + e.what());
    }
    device = memory_of(*made);
    if (places == 0) check_memory(made->on_this_machine());
    on = std::move(made);
  }
  return *on;
}

CFP_INLINE backend& session::parts::ranks_in_full() {
  if (o.type == number::float32) return ranks();
  if (!in_full) in_full = make(number::float32);
  return *in_full;
}

// Before anything long begins: the plan people begin with holds all of the model on every rank, which is memory of this
// machine. On GPUs others may fit, but none that holds less than its part of weights and states.
CFP_INLINE void session::parts::check_memory(int ranks_here) const {
  mesh_shape one;
  one.axes.push({"one", 1});
  program single = lower(g, one, sharding::replicated(g), all_operations(g),
                         device ? bytes_of(o.type) : static_cast<long>(sizeof(float)));
  if (device) {
    const long least =
        (detail::role_bytes(single, g, value_role::weight) + detail::role_bytes(single, g, value_role::state)) /
        mesh.devices();
    if (least > *limit())
      throw nothing_fits(*limit(), least,
                         does_not_fit("weights and optimizer state alone, split over all ranks, need " +
                                      std::to_string(least) + " bytes, " + std::to_string(least - *limit()) + " more"));
    return;
  }
  plan_memory(single);
  const double gib = 1 << 30, needed = static_cast<double>(predicted_peak(single)) * ranks_here / gib;
  const double present =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / gib;
  if (needed > present)
    throw bad_input("replicated on " + std::to_string(ranks_here) + " ranks this needs " +
                    std::to_string(static_cast<long>(needed + 1)) + " GiB, the machine has " +
                    std::to_string(static_cast<long>(present)) + "; take a smaller model or batch, or only analyse it");
}

CFP_INLINE std::string session::parts::id() const { return o.name + detail::said_of(o.how, o.type); }

CFP_INLINE cfp::plan session::parts::made(const std::string& label, const graph& of, const std::vector<int>& choices,
                                          const std::optional<staged_layout>& stages, backend& ranks) const {
  return stages ? realise(label, of, *stages, decided, choices, ranks.lowered_for())
                : realise(label, of, mesh, decided, choices, ranks.lowered_for());
}

CFP_INLINE void session::parts::take(found_plan out) {
  out.model = id();
  out.mesh = to_string(whole());
  static_cast<memory_split&>(out) = detail::split_of(largest(out.best), out.best.on_ranks().graph_of(g));
  out.peak_bytes = predicted_peak(out.best);
  out.limit_bytes = limit().value_or(0);
  out.device_bytes = device.total;
  out.taken_bytes = device.taken();
  found = std::move(out);
  found->lines = detail::lines_of(found->best, g, decided, costs);
}

}  // namespace cfp
