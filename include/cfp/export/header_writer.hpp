// What a plan's header says of its instructions: the types of the tensors they read and write, and the checks of each.
#pragma once

#include <cfp/core/explain.hpp>
#include <cfp/core/spell.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/plan/plan.hpp>
#include <cfp/program/handed.hpp>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class header_writer {
 public:
  header_writer(const program& p, const graph& g) : p_(p), g_(g), mesh_(p.mesh) {}

  struct body {
    std::string aliases, checks, reshards, shape;  // `shape`: the same without names, to compare segments by
    collective_count sent;
    struct end {
      int value = 0, with = 0;  // the other place
      bool sends = false;
      std::string alias;
    };
    std::vector<end> crossings;  // of stages
  };

  /// The instructions of some operations, conversions with the operation they are made for.
  body write(const std::vector<const instruction*>& code) {
    body out;
    alias_.clear();
    taken_.clear();
    for (const instruction* i : code) {
      if (i->kind == instruction::reshard) {
        const std::string from = tensor(i->in[0], out), to = tensor(i->out[0], out);
        list_step(out) += "cfp::reshard<" + from + ", " + to + ", \"" + std::string(step_names[i->step.kind]) +
                          "\", \"" + axis_names(mesh_, i->step, "\", \"") + "\">";
        out.shape += "reshard " + number(i->in[0]) + number(i->out[0]) + '\n';
        if (i->step.communicates()) {
          const buffer& b = p_[i->in[0]];
          const auto k = static_cast<std::size_t>(i->step.collective());
          ++out.sent.calls[k];
          out.sent.bytes[k] +=
              bytes_sent(i->step, b.held, elements(g_[b.value].shape) * g_[b.value].width(p_.real_bytes), mesh_);
        }
      } else if (i->is_operator()) {
        if (i->communicates()) hand_on(*i, out);
        compute(*i, out);
      } else if (i->crosses()) {
        out.crossings.push_back({p_[i->crossed()].value, i->with, i->sends(), tensor(i->crossed(), out)});
        out.shape += (i->sends() ? "send " : "receive ") + out.crossings.back().alias + '\n';  // of one border alone
      }
    }
    return out;
  }

  std::string dims(const value& v) const {
    std::string out;
    const list<name, max_dims> names = different(v);
    for (int d = 0; d < v.rank(); ++d) {
      const bool compound =
          (d > 0 && v.group[d - 1] == v.group[d]) || (d + 1 < v.rank() && v.group[d + 1] == v.group[d]);
      const bool first = d == 0 || v.group[d - 1] != v.group[d],
                 last = d + 1 == v.rank() || v.group[d + 1] != v.group[d];
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
    const value& v = g_[p_[b].value];
    const partition& held = p_[b].held;
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
    const long width = v.width(p_.real_bytes);
    return width == 4 ? "" : ", cfp::element_of<" + std::to_string(width) + ">";
  }

  // Several buffers may hold one tensor in one partition: one alias for all.
  std::string tensor(int b, body& out) {
    const value& v = g_[p_[b].value];
    const auto key = std::make_pair(p_[b].value, placement(p_[b].held, v));
    const auto [at, fresh] = alias_.try_emplace(key, std::string{}, static_cast<int>(alias_.size()));
    if (!fresh) return at->second.first;
    std::string word;
    for (char c : v.label.view()) word += is_name_character(c) ? c : '_';
    if (word.empty() || (word[0] >= '0' && word[0] <= '9')) word.insert(0, "t_");
    std::string alias = word;
    for (int n = 2; !taken_.insert(alias).second; ++n) alias = word + "_" + std::to_string(n);
    at->second.first = alias;
    out.aliases +=
        "using " + alias + " = cfp::held_as<\"" + std::string(v.label.view()) + "\", " + type(b) + bytes(v) + ">;\n";
    out.shape += type(b) + bytes(v) + '\n';
    return alias;
  }
  std::string number(int b) {
    const value& v = g_[p_[b].value];
    return std::to_string(alias_.at({p_[b].value, placement(p_[b].held, v)}).second) + " ";
  }

  // Whether a result has a factor that no operand has: the gradient of a sum.
  static bool repeats(const rule& r) {
    for (const pattern& result : r.results)
      for (const signed char f : result.factors) {
        bool has = r.factors[f].one_hot;
        for (const pattern& operand : r.operands) has = has || operand.dim_of(f) >= 0;
        if (!has) return true;
      }
    return false;
  }

  void hand_on(const instruction& i, body& out) {
    const operation& o = g_.at(i.op);
    const auto k = static_cast<std::size_t>(collective_of(i, g_));
    const name dim = different(g_[p_[i.in[0]].value])[o.r.operands[0].dim_of(o.r.scanned())];
    list_step(out).append("cfp::hands_on<" + tensor(i.in[0], out) + ", \"" + std::string(dim.view()) + "\", \"" +
                          axis_names(mesh_, i.step) + "\", \"" + std::string(collective_names[k]) + "\">");
    ++out.sent.calls[k];
    out.sent.bytes[k] += handed_bytes(p_, g_, i);
  }
  // What is sent, and changes no partition but of what it is sent for, stands in one list.
  static std::string& list_step(body& out) {
    return out.reshards += out.reshards.empty() ? "" : ",\n                                 ";
  }

  void compute(const instruction& i, body& out) {
    const operation& o = g_.at(i.op);
    static constexpr const char* linearities[] = {"none", "all", "each"};
    const rule_text text = spell(o.r);
    const auto words = spelled_factors(o.r);
    std::string operands, results, split, numbers;
    for (int k = 0; k < o.operands.size(); ++k)
      operands += (k ? ", " : "") + tensor(i.in[k], out), numbers += number(i.in[k]);
    for (int k = 0; k < o.results.size(); ++k)
      results += (k ? ", " : "") + tensor(i.out[k], out), numbers += number(i.out[k]);
    for (int a = 0; a < mesh_.rank(); ++a) {
      const int f = i.assigned.factor[a];
      if (f == assignment::none) continue;
      if (!split.empty()) split += ", ";
      const std::string axis(mesh_.axes[a].label.view());
      split += f == assignment::partial ? "cfp::passes<\"" + axis + "\">"
                                        : "cfp::splits<\"" + std::string(words[f].view()) + "\", \"" + axis + "\">";
    }
    const std::string label = std::string(g_[o.results[0]].label.view());
    if (repeats(o.r))  // a rule as users write it has no such factor
      out.checks += "// " + label + " repeats its operand along a dimension: \"" + std::string(text.view()) + "\"\n";
    else
      out.checks += "static_assert(cfp::planned<\"" + label + "\", \"" + std::string(text.view()) +
                    "\",\n                           cfp::linearity::" + linearities[static_cast<int>(o.op->linear)] +
                    ", cfp::assigned<" + split + ">,\n                           cfp::tensors<" + operands +
                    ">, cfp::tensors<" + results + ">>);\n";
    out.shape += std::string(text.view()) + split + numbers + '\n';
  }

  const program& p_;
  const graph& g_;
  const mesh_shape& mesh_;
  std::map<std::pair<int, std::string>, std::pair<std::string, int>> alias_;
  std::set<std::string> taken_;
};

}  // namespace cfp::detail
