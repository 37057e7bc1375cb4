#include "report.hpp"

#include "arguments.hpp"

#include <cfp/communicator/communicator.hpp>
#include <cfp/core/shape_error.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/first_process.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>

namespace program {

int report() {
  clear_progress();
  const auto say = [](const char* what, int code) {
    if (is_first()) std::fprintf(stderr, "%s\n", what);
    return code;
  };
  try {
    throw;
  } catch (const cfp::bad_input& e) {
    return say(e.what(), 2);
  } catch (const cfp::shape_error& e) {
    return say(e.what(), 2);
  } catch (const cfp::rank_failure& e) {  // the first process may not be there any more: then the second speaks
    const int failed = e.errors().front().rank;
    if (!is_first() && (failed == process || (failed == 0 && process == 1))) std::fprintf(stderr, "%s\n", e.what());
    return say(e.what(), 1);
  } catch (const std::exception& e) {
    return say(e.what(), 1);
  }
}

namespace {
auto begun = std::chrono::steady_clock::now();
double last_share = 0;
}  // namespace

bool show_progress(const cfp::progress& p) {
  static const bool terminal = isatty(2) != 0;
  if (!terminal || !is_first()) return true;
  if (p.share < last_share) begun = std::chrono::steady_clock::now();  // something new
  last_share = p.share;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::fprintf(stderr, "\r\033[K");
  if (p.share >= 0) std::fprintf(stderr, "%3.0f%% ", 100 * p.share);
  std::fprintf(stderr, "%s", p.what.substr(0, 90).c_str());
  if (p.share > 0.02 && p.share < 1) std::fprintf(stderr, ", about %.0f s left", seconds / p.share - seconds);
  std::fflush(stderr);
  return true;
}

void clear_progress() {
  if (is_first() && isatty(2) != 0) std::fprintf(stderr, "\r\033[K");
}

void say_model(const arguments& a, const made_model& net, const std::string& more) {
  std::cout << a.model << ": " << net.sizes << more << '\n';
  if (net.vocabulary != net.vocabulary_given)
    std::cout << "vocabulary " << net.vocabulary_given << " padded to " << net.vocabulary << '\n';
  say_decided(net);
}

void say_decided(const made_model& net) {
  if (!net.file) return;
  for (const std::string& decided : net.file->read.said) std::cout << decided << '\n';
}

void introduce(prepared& p, const arguments& a) {
  const cfp::structure& s = p.session.overview();
  say_model(a, p.net, ", mesh " + a.mesh);
  std::cout << s << std::flush;
}

const cfp::found_plan& plan_and_print(prepared& p, const arguments& a) {
  if (!a.against.empty()) p.session.compare_with(a.against);
  const cfp::found_plan& found = a.plan.empty() ? p.session.plan() : p.session.use_plan(a.plan);
  clear_progress();
  std::cout << found << std::flush;
  if (a.explain) {
    const std::string why = p.session.explain();
    clear_progress();
    std::cout << '\n' << why << std::flush;
  }
  return found;
}

nlohmann::ordered_json summary_of(prepared& p, const arguments& a, const cfp::found_plan& found) {
  using json = nlohmann::ordered_json;
  const json known = json::parse(p.session.overview().json());
  json out;
  out["model"] = a.model;
  out["layers"] = p.net.layers;
  out["batch"] = a.batch;
  out["sequence"] = a.sequence;
  out["type"] = a.type;
  for (const cfp::mesh_axis& axis : cfp::read_mesh(a.mesh).axes)
    out["mesh"][std::string(axis.label.view())] = axis.size;
  out["operators"] = known["operators"];
  out["blocks"] = known["blocks"];
  out["segments"] = known["segments"];
  out["search"] = known["search"];
  out["search"]["profiled"] = found.measured;
  out["profile_seconds"] = found.profile_seconds;
  out["solve_seconds"] = found.solve_seconds;
  out["plans"] = json::array();
  return out;
}

void save_trained(prepared& p, const arguments& a) {
  if (!a.save_state.empty()) p.session.save_state(a.save_state);
  if (!a.save_weights.empty()) p.session.save_weights(a.save_weights, p.net.weights);
}

void save(prepared& p, const arguments& a) {
  if (!a.save_plan.empty()) p.session.save_plan(a.save_plan);
  if (!a.save_header.empty()) p.session.save_header(a.save_header);
}

void save_summary(prepared& p, const arguments& a, const std::string& json) {
  if (a.summary.empty() && !a.json) return;
  cfp::in_first_process(p.session.ranks(), [&] { answer(a, json); });
}

namespace {
// Standard output, whatever becomes of std::cout.
std::ostream& output() {
  static std::ostream out(std::cout.rdbuf());
  return out;
}
}  // namespace

void print_only_json() {
  output();
  std::cout.rdbuf(nullptr);
}

void answer(const arguments& a, const std::string& json) {
  if (!a.summary.empty()) cfp::write_file(a.summary, json);
  if (a.json) output() << json << std::endl;
}

}  // namespace program
