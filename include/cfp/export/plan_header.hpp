// The plan as a C++ header: partition types of every tensor, operator by operator, once per unique segment with its
// repeat count, and what is communicated. Whoever includes it has the compiler derive and check all of it.
#pragma once

#include <cfp/core/planned.hpp>
#include <cfp/export/header_writer.hpp>
#include <cfp/plan/segment_times.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>
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
inline std::string tensors_text(const plan& p, const graph& g) {
  std::string out;
  std::set<int> listed;
  for (const program& one : p.programs()) {
    const header_writer w(one, g);
    for (const buffer& b : one.buffers) {
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
  }
  return out;
}

// Segments that differ, how often each repeats, and what crosses between those of stages.
class header_segments {
 public:
  // What a program does once and for one micro-batch; every instruction goes to the segment of the operation it
  // computes or is made for, and what was added to the graph for stages to the last.
  void add(const program& p, const graph& g, const segment_times& times) {
    std::vector<std::vector<const instruction*>> of_segment(times.size() + 1);
    std::vector<std::size_t> owner(g.operations.size(), times.size());
    for (std::size_t s = 0; s < times.size(); ++s)
      for (int o : times.operations(s)) owner[static_cast<std::size_t>(o)] = s;
    for (const instruction& i : p.code) {
      const auto is_of_another = [&](int b) { return p[b].pass > 0; };
      if (std::any_of(i.in.begin(), i.in.end(), is_of_another) ||
          std::any_of(i.out.begin(), i.out.end(), is_of_another))
        continue;
      for (const instruction& part : p.parts(i))  // what one kernel computes has its rules too
        of_segment[owner[static_cast<std::size_t>(part.op)]].push_back(&part);
    }
    header_writer w(p, g);
    for (const auto& code : of_segment)
      if (!code.empty() || !p.has_all_passes()) add(w.write(code), p.place);
  }

  // Of each segment its namespace.
  std::string text() const {
    std::string out;
    for (std::size_t s = 0; s < bodies_.size(); ++s) {
      const std::string id = "segment_" + std::to_string(s);
      out += "namespace " + id + " {\n\ninline constexpr int repeats = " + std::to_string(repeats_[s]) + ";\n\n" +
             bodies_[s].aliases + "\n" + bodies_[s].checks + "\nusing communication = cfp::reshards<" +
             bodies_[s].reshards + ">;\ninline constexpr cfp::collective_count sent = " + count_text(bodies_[s].sent) +
             ";\nstatic_assert(cfp::sent_as_planned<communication, sent>);\n\n}  // namespace " + id + "\n\n";
    }
    return out;
  }
  collective_count sent() const {
    collective_count out;
    for (std::size_t s = 0; s < bodies_.size(); ++s)
      for (int n = 0; n < repeats_[s]; ++n) out += bodies_[s].sent;
    return out;
  }
  // "cfp::planned_send<segment_0::x, segment_3::x, 0, 1>", one below the other.
  std::string crossings() const {
    std::string out;
    for (const auto& [which, ends] : crossings_)
      if (!ends.first.empty() && !ends.second.empty())
        out += std::string(out.empty() ? "" : ",") + "\n      cfp::planned_send<" + ends.first + ", " + ends.second +
               ", " + std::to_string(std::get<1>(which)) + ", " + std::to_string(std::get<2>(which)) + ">";
    return out;
  }

 private:
  void add(header_writer::body b, int place) {
    const auto [at, fresh] = known_.try_emplace(b.shape, bodies_.size());
    const std::size_t s = at->second;
    if (fresh) bodies_.push_back(b), repeats_.push_back(0);
    ++repeats_[s];
    for (std::size_t k = 0; k < b.crossings.size(); ++k) {
      const header_writer::body::end& e = b.crossings[k];
      const std::string alias = "segment_" + std::to_string(s) + "::" + bodies_[s].crossings[k].alias;
      if (e.sends) crossings_[{e.value, place, e.with}].first = alias;
      else crossings_[{e.value, e.with, place}].second = alias;
    }
  }

  std::vector<header_writer::body> bodies_;
  std::vector<int> repeats_;
  std::map<std::string, std::size_t> known_;
  std::map<std::tuple<int, int, int>, std::pair<std::string, std::string>> crossings_;  // by value, from and to
};

inline std::string stages_text(const plan& p, const header_segments& all) {
  if (!p.in_stages) return "";
  return "  /// Along the stages, which are the mesh's first axis.\n  static constexpr int places = " +
         std::to_string(p.programs().size()) +
         ";\n  /// What goes from one to another, of a micro-batch and once a "
         "step.\n  using crossings = cfp::planned_sends<" +
         all.crossings() + ">;\n";
}

}  // namespace detail

/// The text of a header that holds the plan in namespace `space`.
inline std::string plan_header(const std::string& space, const std::string& model, const plan& p, const graph& g,
                               const segment_times& times) {
  const graph& of = p.on_ranks().graph_of(g);
  const mesh_shape& mesh = p.code.mesh;
  detail::header_segments all;
  for (const program& one : p.programs()) all.add(one, of, times);
  std::string out = "// A plan for " + model +
                    ", written by cfp. The compiler derives it again: what is changed here by hand and\n"
                    "// does not fit does not compile.\n#pragma once\n\n#include <cfp/core.hpp>\n\nnamespace " +
                    space + " {\n\nstatic_assert(cfp::planned_in_version<" + std::to_string(plan_header_version) +
                    ">);\n\nusing mesh = cfp::mesh<";
  for (int a = 0; a < mesh.rank(); ++a)
    out += std::string(a ? ", " : "") + "cfp::axis<\"" + std::string(mesh.axes[a].label.view()) + "\", " +
           std::to_string(mesh.size(a)) + ">";
  out += ">;\n\n";
  out += all.text();
  out += "struct plan {\n  using mesh = ::" + space + "::mesh;\n  static constexpr std::string_view model = \"" +
         model + "\";\n";
  char ms[64];
  std::snprintf(ms, sizeof ms, "%.3f", p.predicted_ms);
  out += "  static constexpr double predicted_ms = " + std::string(ms) +
         ";\n  static constexpr long predicted_peak_bytes = " + std::to_string(predicted_peak(p)) +
         ";\n  /// Micro-batches of a step.\n  static constexpr int passes = " + std::to_string(p.code.passes) +
         ";\n  /// All segments, each as often as it repeats; of several micro-batches one, and the update.\n  static "
         "constexpr cfp::collective_count sent = " +
         detail::count_text(all.sent()) +
         ";\n  /// How weights and inputs rest.\n  static constexpr cfp::planned_tensor tensors[] = {\n";
  return out + detail::tensors_text(p, of) + "  };\n" + detail::stages_text(p, all) + "};\n\n}  // namespace " + space +
         "\n";
}

}  // namespace cfp
