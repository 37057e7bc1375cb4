// How a session searches: profiles, solves, and keeps what was measured.
#pragma once

#include <cfp/model/name_hash.hpp>
#include <cfp/plan/search.hpp>
#include <cfp/program/find_saved.hpp>
#include <cfp/session/first_process.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/session_parts.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// What plans choose among, the same in every run.
inline std::string identity_of(const decision_graph& d) {
  std::string all;
  for (const decision& n : d.nodes) {
    all += '\n' + std::to_string(n.kind) + n.label;
    for (std::size_t c = 0; c < n.choices(); ++c) all += '\t' + n.names[c];
  }
  return std::to_string(name_hash(all));
}

/// Throws bad_input for what is no plan.
inline const std::vector<int>& choices_of(const remembered_plan& p, const decision_graph& d, const std::string& table) {
  bool all = p.choices.size() == d.nodes.size();
  for (std::size_t n = 0; all && n < d.nodes.size(); ++n)
    all = static_cast<std::size_t>(p.choices[n]) < d.nodes[n].choices();
  if (!all)
    throw bad_input("table " + table + ": one of its plans makes other choices than there are of this model; remove " +
                    "'plans' from it, or the file");
  return p.choices;
}

}  // namespace detail

CFP_INLINE void session::parts::search_with(profiler& measure_with, const profile_table& measured, found_plan& out) {
  const std::vector<int> own = against.empty() ? std::vector<int>() : saved(against).choices;
  const auto start = std::chrono::steady_clock::now();
  measure_with.tell = [&](int done, int all, const std::string& what) {
    tell("measuring " + what, all ? static_cast<double>(done) / all : -1);
  };
  if (o.lazy) measure_with.be_lazy(o.tolerance);
  if (!o.lazy) measure_with.build();
  const segment_times whole(blocks, segments, decided);
  plan_search search(g, mesh, decided, whole, measure_with);
  if (o.lazy) search.tolerance = o.tolerance;
  if (device) search.beside_bytes = [&](const program& p) { return beside_bytes(*on, p, g); };
  for (const named_plan& n : usual) search.add(n.name, follow(n, decided, mesh));
  if (!against.empty()) search.add(against, own);
  const std::string among = detail::identity_of(decided);
  for (const remembered_plan& p : measured.plans)
    if (p.among == among) search.remember(detail::choices_of(p, decided, o.table));
  device = memory_of(*on);  // by now libraries have what they take when something first runs
  search_options limits;
  limits.memory_limit = limit();
  try {
    out.others = search.run(limits, [&](const std::string& what) { tell(what, 1); });
  } catch (const nothing_fits& e) {
    throw nothing_fits(e.limit, e.least, does_not_fit(e.least > 0 ? nothing_fits::needs(e.limit, e.least) : ""));
  }
  out.best = std::move(out.others.front());
  out.others.erase(out.others.begin());
  out.solve_seconds = search.solve_seconds;
  out.tried = search.rounds + static_cast<int>(out.others.size());
  out.gap = search.gap;
  out.profile_seconds = detail::seconds_since(start) - out.solve_seconds;
  out.measured = measure_with.measured;
  costs = search.costs();
  corrected = search.corrected();
  if (!o.lazy) return;
  const profiler::knowledge k = measure_with.known();
  out.tolerance = o.tolerance;
  out.figures = k.of;
  out.figures_measured = k.measured;
  out.below_bound = k.below_bound;
  out.below_by = k.by;
}

// A sentence: what of how much memory, and on GPUs what of that no plan can have.
CFP_INLINE std::string session::parts::does_not_fit(const std::string& what) const {
  std::string out = o.memory > 0 ? "memory " + std::to_string(o.memory)
                                 : "memory of a GPU, " + std::to_string(device.total) + " bytes";
  out += ": no plan fits" + (what.empty() ? "" : "; " + what);
  if (!device) return out;
  out += "; contexts, NCCL, libraries and others take " + std::to_string(device.taken()) + " of the GPU's " +
         std::to_string(device.total);
  if (o.memory == 0) out += "; with its memory given as a limit, weights may also be gathered again for backward";
  return out;
}

CFP_INLINE void session::parts::check_fits(const cfp::plan& p, const std::string& path) const {
  const std::optional<long> most = limit();
  const long needs = predicted_peak(p);
  if (!most || needs <= *most) return;
  const std::string bytes = std::to_string(needs) + " bytes, " + std::to_string(needs - *most) + " more";
  throw nothing_fits(*most, needs, does_not_fit("plan " + path + " needs " + bytes));
}

CFP_INLINE profile_table session::parts::measured_before() {
  backend& here = ranks();
  profile_table table;
  table.origin = {here.description(), id(), to_string(mesh)};
  if (!o.table.empty() && std::filesystem::exists(o.table))
    if (const std::string why = table.load(o.table); !why.empty())
      throw bad_input("table " + o.table + ": " + why + "; name another file, or remove it");
  if (!table.choices.empty()) here.run([&](rank& r) { r.choose(table.choices); });
  return table;
}

CFP_INLINE void session::parts::decide(axis_choice::rest_t weights, keeping::resting_t on_host) {
  const recomputation again(g, blocks, segments, find_saved(g, ranks().lowered_for()));
  decided = decisions(g, blocks, mesh, weights, {}, &again, on_host);
}

// Within a limit of memory, which is what it takes for that to pay.
CFP_INLINE void session::parts::choose_what_is_kept() {
  if (o.memory > 0 && decided.remade.empty()) decide(detail::furthest(o), keeping::on_device);
}

// Plans that leave weights on the host, or their state, nothing measures, so that no search finds them.
CFP_INLINE void session::parts::choose_as_saved(const std::string& path) {
  const std::string text = detail::whole_file(path).value_or("");
  const auto says = [&](const char* what) { return text.find(what) != std::string::npos; };
  const bool on_host = says(" on the host"), again = says(" recomputed"), regathered = says("/regathered");
  if (on_host || again || regathered)
    decide(regathered ? axis_choice::regathered : detail::furthest(o),
           on_host ? keeping::weights_on_host : keeping::on_device);
  else choose_what_is_kept();
}

CFP_INLINE const found_plan& session::parts::search() {
  if (found) return *found;
  if (places > 0)
    throw bad_input(
        "mesh " + o.mesh +
        ": plans in stages are found for machines that are described (cfp plan --machine FILE --stages " +
        std::to_string(places) +
        " --save-plan FILE, or plan_in_stages), and used here: give the saved one (--plan FILE, or use_plan)");
  backend& here = ranks();
  choose_what_is_kept();
  profile_table table = measured_before();
  const auto keep = [&] {
    if (!o.table.empty()) table.save(o.table);
  };
  found_plan out;
  try {
    profiler measure_with(g, decided, here, table);
    search_with(measure_with, table, out);
  } catch (...) {  // what was measured is kept, however it ended; and how it ended is told, whatever becomes of that
    if (here.is_first()) try {
        keep();
      } catch (const bad_input&) {}
    throw;
  }
  here.run([&](rank& r) {
    if (!r.choices().empty()) r.load(out.best.code, g, o.seed);  // all of its products are among them then
    if (r.number() == 0) table.choices = r.choices();
  });
  table.remember({detail::identity_of(decided), out.best.choices});
  in_first_process(here, keep);
  take(std::move(out));
  return *found;
}

}  // namespace cfp
