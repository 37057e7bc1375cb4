// The plan as a C++ header: partition types of every tensor, operator by operator, once per unique segment with its
// repeat count, and what is communicated. Whoever includes it has the compiler derive and check all of it.
#pragma once

#include <cfp/core/planned.hpp>
#include <cfp/export/header_writer.hpp>
#include <cfp/plan/segment_times.hpp>

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

inline std::string count_text(const collective_count& n) {
  std::string calls, bytes;
  for (std::size_t k = 0; k < n.calls.size(); ++k) {
    calls += (k ? ", " : "") + std::to_string(n.calls[k]);
    bytes += (k ? ", " : "") + std::to_string(n.bytes[k]);
  }
  return "cfp::collective_count{{" + calls + "}, {" + bytes + "}}";
}

// How weights and inputs rest, a line for each.
inline std::string tensors_text(const header_writer& w, const plan& p, const graph& g) {
  std::string out;
  std::set<int> listed;
  for (const buffer& b : p.code.buffers) {
    const value& v = g[b.value];
    if (v.producer >= 0 || (v.role != value_role::weight && v.role != value_role::input) || !b.persistent ||
        !listed.insert(b.value).second)
      continue;
    std::string dims = w.dims(v);
    dims = dims.substr(10, dims.size() - 11);
    for (std::size_t at; (at = dims.find("\", \"")) != std::string::npos;) dims.replace(at, 4, " ");
    out += "      {\"" + std::string(v.label.view()) + "\", " + (dims.empty() ? "\"\"" : dims) + ", \"" +
           w.placement(b.held, v) + "\"},\n";
  }
  return out;
}

}  // namespace detail

/// The text of a header that holds the plan in namespace `space`.
inline std::string plan_header(const std::string& space, const std::string& model, const plan& p, const graph& g,
                               const mesh_shape& mesh, const segment_times& times) {
  // Every instruction goes to the segment of the operation it computes or is made for.
  std::vector<std::vector<const instruction*>> of_segment(times.size());
  std::vector<std::size_t> owner(g.operations.size());
  for (std::size_t s = 0; s < times.size(); ++s)
    for (int o : times.operations(s)) owner[static_cast<std::size_t>(o)] = s;
  for (const instruction& i : p.code.code)
    for (const instruction& part : p.code.parts(i))  // what one kernel computes has its rules too
      of_segment[owner[static_cast<std::size_t>(part.op)]].push_back(&part);

  detail::header_writer w(p, g, mesh);
  std::vector<detail::header_writer::body> bodies;
  std::vector<int> repeats;
  std::map<std::string, std::size_t> known;
  for (const auto& code : of_segment) {
    detail::header_writer::body b = w.write(code);
    const auto [at, fresh] = known.try_emplace(b.shape, bodies.size());
    if (fresh) bodies.push_back(std::move(b)), repeats.push_back(0);
    ++repeats[at->second];
  }

  std::string out = "// A plan for " + model +
                    ", written by cfp. The compiler derives it again: what is changed here by hand and\n"
                    "// does not fit does not compile.\n#pragma once\n\n#include <cfp/core.hpp>\n\nnamespace " +
                    space + " {\n\nstatic_assert(cfp::planned_in_version<" + std::to_string(plan_header_version) +
                    ">);\n\nusing mesh = cfp::mesh<";
  for (int a = 0; a < mesh.rank(); ++a)
    out += std::string(a ? ", " : "") + "cfp::axis<\"" + std::string(mesh.axes[a].label.view()) + "\", " +
           std::to_string(mesh.size(a)) + ">";
  out += ">;\n\n";
  std::string all, total;
  for (std::size_t s = 0; s < bodies.size(); ++s) {
    const std::string id = "segment_" + std::to_string(s);
    out += "namespace " + id + " {\n\ninline constexpr int repeats = " + std::to_string(repeats[s]) + ";\n\n" +
           bodies[s].aliases + "\n" + bodies[s].checks + "\nusing communication = cfp::reshards<" + bodies[s].reshards +
           ">;\ninline constexpr cfp::collective_count sent = " + detail::count_text(bodies[s].sent) +
           ";\nstatic_assert(cfp::sent_as_planned<communication, sent>);\n\n}  // namespace " + id + "\n\n";
  }
  collective_count sum;
  for (std::size_t s = 0; s < bodies.size(); ++s)
    for (int n = 0; n < repeats[s]; ++n) sum += bodies[s].sent;
  out += "struct plan {\n  using mesh = ::" + space + "::mesh;\n  static constexpr std::string_view model = \"" +
         model + "\";\n";
  char ms[64];
  std::snprintf(ms, sizeof ms, "%.3f", p.predicted_ms);
  out += "  static constexpr double predicted_ms = " + std::string(ms) +
         ";\n  static constexpr long predicted_peak_bytes = " + std::to_string(predicted_peak(p)) +
         ";\n  /// Micro-batches of a step.\n  static constexpr int passes = " + std::to_string(p.code.passes) +
         ";\n  /// All segments, each as often as it repeats; of several micro-batches one, and the update.\n  static "
         "constexpr cfp::collective_count sent = " +
         detail::count_text(sum) +
         ";\n  /// How weights and inputs rest.\n  static constexpr cfp::planned_tensor tensors[] = {\n";
  return out + detail::tensors_text(w, p, g) + "  };\n};\n\n}  // namespace " + space + "\n";
}

}  // namespace cfp
