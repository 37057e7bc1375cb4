// A saved plan, priced on a described machine.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/file/whole_file.hpp>
#include <cfp/session/plan_for_implementation.hpp>

#include <optional>
#include <string>
#include <utility>

namespace cfp::inline v0_1 {

namespace detail {

inline std::string text_of_plan(const std::string& path) {
  std::optional<std::string> text = whole_file(path);
  if (!text) throw bad_input("plan " + path + unreadable(path));
  return *std::move(text);
}

// What it may choose, be there a limit of memory or not.
inline decision_graph decided_as_saved(const planned_graph& g, const mesh_shape& mesh, const std::string& text,
                                       const machine_options& options) {
  const auto says = [&](const char* what) { return text.find(what) != std::string::npos; };
  const bool on_host = says(" on the host");
  return decided(g, mesh, options, {}, on_host || says(" recomputed"),
                 on_host ? keeping::weights_on_host : keeping::on_device);
}

}  // namespace detail

CFP_INLINE plan_outline saved_outline(const std::string& path) {
  return outline_of_plan(detail::text_of_plan(path), "plan " + path);
}

CFP_INLINE machine_plan price_saved(const graph& forward, const machine& m, const std::string& path,
                                    const machine_plan_options& o) {
  const std::string where = "plan " + path, text = detail::text_of_plan(path);
  mesh_plans of{outline_of_plan(text, where).mesh, {}, {}};
  if (has_stages(of.mesh)) throw bad_input(where + ": it is in stages, give it to the function that knows of them");
  checked_name(o.name);
  const training how = in_micro_batches(o.how, o.micro_batches);
  machine_options options = detail::search_options(o);
  detail::measured_operators measured(o);
  const graph g = differentiate(refine(checked(forward)), checked(how));
  options.known = measured.known();
  const detail::planned_graph planned(g, options.lowered_for);
  of.decisions = detail::decided_as_saved(planned, of.mesh, text, options);
  machine_plan out = detail::begun(o, m, how, measured.words());
  const saved_plan saved = read_plan(text, where, out.model + out.trained, g, of.mesh, of.decisions);
  described_conversions conversions(m, of.mesh);
  machine_search search(g, of.mesh, of.decisions, m, options, &planned.again, &conversions);
  const evaluated taken = search.evaluate("saved", saved.choices);
  of.plans.sums = search.costs();
  of.plans.candidates.push_back(taken);
  for (const named_plan& p : usual_plans(of.mesh, has_experts(g))) {
    if (o.tell && !o.tell({"pricing " + p.name})) throw cancelled();
    if (auto e = search.usual(p)) of.plans.usual.push_back(*std::move(e));
  }
  if (auto e = search.alpa(true)) of.plans.alpa.push_back(*std::move(e));
  measured.keep();
  out.times = measured.words();
  out.meshes.push_back(detail::priced_on(of));
  detail::take(out, taken, g, std::move(of), m, options);
  return out;
}

}  // namespace cfp
