// The plan as a C++ header: partition types of every tensor, operator by operator, once per unique segment with its
// repeat count, and what is communicated. Whoever includes it has the compiler derive and check all of it.
#pragma once

#include <cfp/core/spell.hpp>
#include <cfp/plan/segment_times.hpp>

#include <set>

namespace cfp::inline v0_1 {

namespace detail {

class header_writer {
 public:
  header_writer(const plan& p, const graph& g, const mesh_shape& mesh) : p_(p), g_(g), mesh_(mesh) {}

  struct body {
    std::string aliases, checks, reshards, shape;  // `shape`: the same without names, to compare segments by
    collective_count sent;
  };

  /// The instructions of some operations, conversions with the operation they are made for.
  body write(const std::vector<const instruction*>& code) {
    body out;
    alias_.clear();
    taken_.clear();
    for (const instruction* i : code) {
      if (i->kind == instruction::reshard) {
        const std::string from = tensor(i->in[0], out), to = tensor(i->out[0], out);
        out.reshards += out.reshards.empty() ? "" : ",\n                                 ";
        out.reshards += "cfp::reshard<" + from + ", " + to + ", \"" + std::string(step_names[i->step.kind]) + "\", \"" +
                        std::string(mesh_.axes[i->step.axis].label.view()) + "\">";
        out.shape += "reshard " + number(i->in[0]) + number(i->out[0]) + '\n';
        if (i->step.communicates()) {
          const buffer& b = p_.code[i->in[0]];
          const auto k = static_cast<std::size_t>(i->step.collective());
          ++out.sent.calls[k];
          out.sent.bytes[k] += bytes_sent(i->step, b.held, elements(g_[b.value].shape) * g_[b.value].width(p_.code.real_bytes), mesh_);
        }
      } else if (i->kind == instruction::compute) {
        compute(*i, out);
      }
    }
    return out;
  }

  std::string dims(const value& v) const {
    std::string out;
    const list<name, max_dims> names = different(v);
    for (int d = 0; d < v.rank(); ++d) {
      const bool compound = (d > 0 && v.group[d - 1] == v.group[d]) || (d + 1 < v.rank() && v.group[d + 1] == v.group[d]);
      const bool first = d == 0 || v.group[d - 1] != v.group[d], last = d + 1 == v.rank() || v.group[d + 1] != v.group[d];
      if (first) out += out.empty() ? "\"" : ", \"";
      else out += ' ';
      if (compound && first) out += '(';
      out.append(names[d].view()).append("=").append(std::to_string(v.shape[d]));
      if (compound && last) out += ')';
      if (last) out += '"';
    }
    return "cfp::dims<" + out + ">";
  }

  std::string placement(const partition& held, const value& v) const {
    return std::string(describe(held, different(v), mesh_).view());
  }

 private:
  // Dimension names as words, all different.
  static list<name, max_dims> different(const value& v) {
    list<name, max_dims> out;
    for (const name& label : v.dims) {
      name word;
      for (char c : label.view()) word.push(is_name_character(c) ? c : '_');
      for (char suffix = '2'; out.contains(word); ++suffix) {
        word = name{};
        for (char c : label.view()) word.push(is_name_character(c) ? c : '_');
        word.push('_');
        word.push(suffix);
      }
      out.push(word);
    }
    return out;
  }

  std::string type(int b) const {
    const value& v = g_[p_.code[b].value];
    const partition& held = p_.code[b].held;
    const list<name, max_dims> names = different(v);
    std::string out = "cfp::sharded<" + dims(v) + ", mesh";
    for (int d = 0; d < v.rank(); ++d) {
      if (held.dims[d].empty()) continue;
      out.append(", cfp::split<\"").append(names[d].view()).append("\"");
      for (signed char a : held.dims[d]) out.append(", \"").append(mesh_.axes[a].label.view()).append("\"");
      out += '>';
    }
    for (int a = 0; a < mesh_.rank(); ++a) {
      if (!held.partial[a].owed) continue;
      out.append(", cfp::partial<\"").append(mesh_.axes[a].label.view()).append("\"");
      if (held.partial[a].combine == reduction::max) out += ", cfp::reduction::max";
      if (held.partial[a].combine == reduction::min) out += ", cfp::reduction::min";
      out += '>';
    }
    return out + ">";
  }

  // What follows the type where elements do not take four bytes.
  std::string bytes(const value& v) const {
    const long width = v.width(p_.code.real_bytes);
    return width == 4 ? "" : ", cfp::element_of<" + std::to_string(width) + ">";
  }

  // Several buffers may hold one tensor in one partition: one alias for all.
  std::string tensor(int b, body& out) {
    const value& v = g_[p_.code[b].value];
    const auto key = std::make_pair(p_.code[b].value, placement(p_.code[b].held, v));
    const auto [at, fresh] = alias_.try_emplace(key, std::string{}, static_cast<int>(alias_.size()));
    if (!fresh) return at->second.first;
    std::string word;
    for (char c : v.label.view()) word += is_name_character(c) ? c : '_';
    if (word.empty() || (word[0] >= '0' && word[0] <= '9')) word.insert(0, "t_");
    std::string alias = word;
    for (int n = 2; !taken_.insert(alias).second; ++n) alias = word + "_" + std::to_string(n);
    at->second.first = alias;
    out.aliases += "using " + alias + " = cfp::held_as<\"" + std::string(v.label.view()) + "\", " + type(b) + bytes(v) + ">;\n";
    out.shape += type(b) + bytes(v) + '\n';
    return alias;
  }
  std::string number(int b) {
    const value& v = g_[p_.code[b].value];
    return std::to_string(alias_.at({p_.code[b].value, placement(p_.code[b].held, v)}).second) + " ";
  }

  void compute(const instruction& i, body& out) {
    const operation& o = g_.at(i.op);
    static constexpr const char* linearities[] = {"none", "all", "each"};
    const rule_text text = spell(o.r);
    const auto words = spelled_factors(o.r);
    std::string operands, results, split, numbers;
    for (int k = 0; k < o.operands.size(); ++k) operands += (k ? ", " : "") + tensor(i.in[k], out), numbers += number(i.in[k]);
    for (int k = 0; k < o.results.size(); ++k) results += (k ? ", " : "") + tensor(i.out[k], out), numbers += number(i.out[k]);
    for (int a = 0; a < mesh_.rank(); ++a) {
      const int f = i.assigned.factor[a];
      if (f == assignment::none) continue;
      if (!split.empty()) split += ", ";
      const std::string axis(mesh_.axes[a].label.view());
      split += f == assignment::partial ? "cfp::passes<\"" + axis + "\">" : "cfp::splits<\"" + std::string(words[f].view()) + "\", \"" + axis + "\">";
    }
    const std::string label = std::string(g_[o.results[0]].label.view());
    out.checks += "static_assert(cfp::planned<\"" + label + "\", \"" + std::string(text.view()) + "\",\n                           cfp::linearity::" +
                  linearities[static_cast<int>(o.op->linear)] + ", cfp::assigned<" + split + ">,\n                           cfp::tensors<" + operands +
                  ">, cfp::tensors<" + results + ">>);\n";
    out.shape += std::string(text.view()) + split + numbers + '\n';
  }

  const plan& p_;
  const graph& g_;
  const mesh_shape& mesh_;
  std::map<std::pair<int, std::string>, std::pair<std::string, int>> alias_;
  std::set<std::string> taken_;
};

inline std::string count_text(const collective_count& n) {
  std::string calls, bytes;
  for (std::size_t k = 0; k < n.calls.size(); ++k) {
    calls += (k ? ", " : "") + std::to_string(n.calls[k]);
    bytes += (k ? ", " : "") + std::to_string(n.bytes[k]);
  }
  return "cfp::collective_count{{" + calls + "}, {" + bytes + "}}";
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
  for (const instruction& i : p.code.code) of_segment[owner[static_cast<std::size_t>(i.op)]].push_back(&i);

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

  std::string out = "// A plan for " + model + ", written by cfp. The compiler derives it again: what is changed here by hand and\n"
                    "// does not fit does not compile.\n#pragma once\n\n#include <cfp/core.hpp>\n\nnamespace " + space + " {\n\nusing mesh = cfp::mesh<";
  for (int a = 0; a < mesh.rank(); ++a)
    out += std::string(a ? ", " : "") + "cfp::axis<\"" + std::string(mesh.axes[a].label.view()) + "\", " + std::to_string(mesh.size(a)) + ">";
  out += ">;\n\n";
  std::string all, total;
  for (std::size_t s = 0; s < bodies.size(); ++s) {
    const std::string id = "segment_" + std::to_string(s);
    out += "namespace " + id + " {\n\ninline constexpr int repeats = " + std::to_string(repeats[s]) + ";\n\n" + bodies[s].aliases + "\n" + bodies[s].checks +
           "\nusing communication = cfp::reshards<" + bodies[s].reshards + ">;\ninline constexpr cfp::collective_count sent = " +
           detail::count_text(bodies[s].sent) + ";\nstatic_assert(cfp::sent_as_planned<communication, sent>);\n\n}  // namespace " + id + "\n\n";
  }
  collective_count sum;
  for (std::size_t s = 0; s < bodies.size(); ++s)
    for (int n = 0; n < repeats[s]; ++n) sum += bodies[s].sent;
  out += "struct plan {\n  using mesh = ::" + space + "::mesh;\n  static constexpr std::string_view model = \"" + model + "\";\n";
  char ms[64];
  std::snprintf(ms, sizeof ms, "%.3f", p.predicted_ms);
  out += "  static constexpr double predicted_ms = " + std::string(ms) + ";\n  static constexpr long predicted_peak_bytes = " + std::to_string(predicted_peak(p.code)) +
         ";\n  /// Micro-batches of a step.\n  static constexpr int passes = " + std::to_string(p.code.passes) +
         ";\n  /// All segments, each as often as it repeats; of several micro-batches one, and the update.\n  static constexpr cfp::collective_count sent = " + detail::count_text(sum) +
         ";\n  /// How weights and inputs rest.\n  static constexpr cfp::planned_tensor tensors[] = {\n";
  std::set<int> listed;
  for (const buffer& b : p.code.buffers) {
    const value& v = g[b.value];
    if (v.producer >= 0 || (v.role != value_role::weight && v.role != value_role::input) || !b.persistent || !listed.insert(b.value).second) continue;
    std::string dims = w.dims(v);
    dims = dims.substr(10, dims.size() - 11);
    for (std::size_t at; (at = dims.find("\", \"")) != std::string::npos;) dims.replace(at, 4, " ");
    out += "      {\"" + std::string(v.label.view()) + "\", " + (dims.empty() ? "\"\"" : dims) + ", \"" + w.placement(b.held, v) + "\"},\n";
  }
  return out + "  };\n};\n\n}  // namespace " + space + "\n";
}

}  // namespace cfp
