#include "arguments.hpp"
#include "as_saved.hpp"
#include "commands.hpp"
#include "described.hpp"

#include <cfp/export/report/report_page.hpp>
#include <cfp/export/report/trace_file.hpp>
#include <cfp/session/first_process.hpp>
#include <cfp/session/texts.hpp>

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

namespace program {

namespace {

using cfp::bad_input;

void write(const cfp::report_view& v, const arguments& a) {
  cfp::write_report(v, a.output);
  if (!a.trace.empty()) cfp::write_trace(v, a.trace);
  const auto gib = [](long bytes) { return static_cast<double>(bytes) / (1 << 30); };
  const bool fits = v.limit_bytes == 0 || v.peak_bytes <= v.limit_bytes;
  nlohmann::ordered_json summary;
  summary["model"] = v.model;
  summary["mesh"] = v.mesh;
  summary["predicted_ms"] = v.predicted_ms;
  summary["predicted_peak_bytes"] = v.peak_bytes;
  summary["fits"] = fits;
  summary["page"] = a.output;
  summary["trace"] = a.trace;
  answer(a, summary.dump(1));
  std::cout << v.model
            << cfp::detail::printed("\nmesh %s: a step takes %.1f ms, a device at most %.2f GiB\n", v.mesh.c_str(),
                                    v.predicted_ms, gib(v.peak_bytes))
            << (fits ? "" : cfp::detail::printed("it does not fit in %.2f GiB\n", gib(v.limit_bytes))) << a.output
            << ": the page; any browser opens it\n";
  if (!a.trace.empty()) std::cout << a.trace << ": the timeline, for https://ui.perfetto.dev or chrome://tracing\n";
}

// A saved plan in stages says how many micro-batches there are.
cfp::stages_plan saved_stages(const arguments& a, int micro_batches) {
  const cfp::machine m = cfp::load_machine(carried("machines", "--machine", a.machine).path);
  const long rows = rows_of(a.batch, micro_batches);
  const auto model = [&](long some) { return make_model(a, some, a.layers, 1).forward; };
  cfp::machine_plan_options o = a.machine_plan();
  o.micro_batches = 1;
  o.name = a.model + " " + make_model(a, rows, a.layers, 1).sizes;
  return cfp::price_saved_stages(model, a.batch, m, a.plan, o);
}

int report_saved(const arguments& given, const cfp::plan_outline& saved) {
  const arguments a = as_saved(given, saved);
  if (saved.micro_batches > 0) write(saved_stages(a, saved.micro_batches).report(), a);
  else write(plan_there(a, false).found.report(), a);
  return 0;
}

int report_described(const arguments& a) {
  if (!a.plan.empty()) return report_saved(a, cfp::saved_outline(a.plan));
  if (!a.stages.empty()) {
    described_stages there = stages_there(a);
    const long rows = there.found.plan.rows;
    there.found.model = a.model + " " + make_model(there.sized, rows, a.layers, 1).sizes;  // of a micro-batch
    write(there.found.report(), a);
    return 0;
  }
  const described_plan there = plan_there(a, false);
  check_fits(a, there.found);
  write(there.found.report(), a);
  return 0;
}

}  // namespace

int report_plan(const arguments& given) {
  if (given.output.empty()) throw bad_input("report needs -o FILE: where the page is written");
  check_planning(given);
  if (!given.plan.empty() && given.machine.empty())
    throw bad_input("--plan " + given.plan +
                    ": a saved plan has no times of its own; give the --machine that it is priced on");
  for (const char* const option : {"--stages", "--axes", "--mesh"})
    if (!given.plan.empty() && given.is_given(option))
      throw bad_input(std::string(option) + ": a saved plan says its own mesh; leave it out");
  arguments a = given;
  a.explain = true;  // what memory is worth; on ranks here all is measured
  if (!a.machine.empty()) return report_described(a);
  prepared p = prepare(a);
  if (!a.against.empty()) p.session.compare_with(a.against);
  const cfp::report_view v = p.session.report();
  clear_progress();
  cfp::in_first_process(p.session.ranks(), [&] { write(v, a); });
  return 0;
}

}  // namespace program
