// A plan as Shardy writes one (MLIR, dialect `sdy`): the mesh, how every parameter is held, each operator of forward
// with its sharding rule and how it leaves its results, and a `sdy.reshard` wherever a tensor is read in another form.
#pragma once

#include <cfp/core/spell.hpp>
#include <cfp/export/exported.hpp>
#include <cfp/export/plan_view.hpp>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

class shardy_text {
 public:
  explicit shardy_text(const plan_view& view) : view_(view), g_(view.g()) {
    std::string arguments;
    for (const viewed_tensor& t : view.tensors()) {
      if (!view.is_weight(t) && !view.is_input(t)) continue;
      const viewed_form* const rest = t.resting();
      const partition held = rest != nullptr ? rest->held : partition::replicated(g_[t.value].rank());
      names_[t.value].emplace_back(held, fresh(t.name));
      arguments += std::string(arguments.empty() ? "" : ",\n    ") + names_[t.value][0].second + ": " + type(t.value) +
                   " {sdy.sharding = #sdy.sharding" + sharding(held) + ", cfp.name = \"" + t.name + "\"}";
    }
    for (int o = 0; o < g_.size(); ++o)
      if (view.is_forward(o)) add(o);
    text = "sdy.mesh @mesh = <[";
    for (int a = 0; a < view.mesh().rank(); ++a)
      text.append(a > 0 ? ", \"" : "\"").append(view.mesh().axes[a].label.view()).append("\"=") +=
          std::to_string(view.mesh().size(a));
    text += "]>\n\nfunc.func @forward(\n    " + arguments + ") -> " + type(g_.loss) + " {\n" + body_ + "  return " +
            names_[g_.loss][0].second + " : " + type(g_.loss) + "\n}\n";
    if (!greatest_.empty())
      notes.push_back("parts of a maximum stand as unreduced, which for Shardy is a sum: " +
                      counted(greatest_, "tensor"));
    std::vector<std::string> anew, host;
    for (const viewed_tensor& t : view.tensors()) {
      if (t.recomputed) anew.push_back(t.name);
      if (t.on_host || t.state_on_host) host.push_back(t.name);
    }
    if (!anew.empty()) notes.push_back("what is computed again for backward is not said: " + counted(anew, "tensor"));
    if (!host.empty()) notes.push_back("what rests on the host is not said: " + counted(host, "tensor"));
    if (view.stages())
      notes.emplace_back(
          "stages have no word in Shardy: an operator's is its attribute cfp.stage, and the mesh is that of "
          "one stage");
  }

  std::string text;
  std::vector<std::string> notes;

 private:
  std::string fresh(const std::string& label) {
    std::string base = "%";
    for (const char c : label) base += is_name_character(c) || c == '.' ? c : '_';
    if (base[1] >= '0' && base[1] <= '9') base.insert(1, "t");
    std::string out = base;
    for (int n = 2; !taken_.insert(out).second; ++n) out = base + "_" + std::to_string(n);
    return out;
  }
  std::string type(int v) const {
    std::string out = "tensor<";
    for (const long n : g_[v].shape) out += std::to_string(n) + "x";
    const element e = stored(g_[v].type, view_.real_bytes());
    return out + (e == element::index ? "i32" : e == element::wide || view_.real_bytes() == 4 ? "f32" : "bf16") + ">";
  }
  // "<@mesh, [{"data"}, {}], unreduced={"model"}>"
  std::string sharding(const partition& held) const {
    const auto listed = [&](const auto& axes) {
      std::string out;
      for (const auto a : axes)
        out.append(out.empty() ? "\"" : ", \"").append(view_.mesh().axes[a].label.view()).append("\"");
      return out;
    };
    std::string dims, owed;
    for (int d = 0; d < held.rank(); ++d) dims += (d > 0 ? ", {" : "{") + listed(held.dims[d]) + "}";
    std::vector<int> axes;
    for (int a = 0; a < view_.mesh().rank(); ++a)
      if (held.partial[a].owed) axes.push_back(a);
    if (!axes.empty()) owed = ", unreduced={" + listed(axes) + "}";
    return "<@mesh, [" + dims + "]" + owed + ">";
  }
  // "#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>"
  static std::string rule_text(const operation& op) {
    const auto letter = [](int f) {  // Shardy's: i to z
      return std::string(1, static_cast<char>('i' + f));
    };
    const auto tensors = [&](const auto& patterns) {
      std::string out;
      for (const pattern& p : patterns) {
        std::string dims;
        for (const signed char f : p.factors) dims += (dims.empty() ? "" : ", ") + letter(f);
        out += (out.empty() ? "[" : ", [") + dims + "]";
      }
      return "(" + out + ")";
    };
    std::string sizes, reduced, whole, handed_on;
    for (int f = 0; f < op.r.factors.size(); ++f) {
      sizes += (f > 0 ? ", " : "") + letter(f) + "=" + std::to_string(op.sizes[f]);
      if (f == op.r.scanned() && !op.r.factors[f].whole) handed_on += (handed_on.empty() ? "" : ", ") + letter(f);
      else if (op.r.stays_together(f)) whole += (whole.empty() ? "" : ", ") + letter(f);
      else if (op.r.is_reduction(f)) reduced += (reduced.empty() ? "" : ", ") + letter(f);
    }
    return "#sdy.op_sharding_rule<" + tensors(op.r.operands) + "->" + tensors(op.r.results) + " {" + sizes + "}" +
           (reduced.empty() ? "" : " reduction={" + reduced + "}") +
           (whole.empty() ? "" : " need_replication={" + whole + "}") +
           (handed_on.empty() ? "" : " permutation={" + handed_on + "}") + ", custom>";
  }

  std::string read(int v, const partition& held) {
    auto& known = names_[v];
    for (const auto& [form, called] : known)
      if (form == held) return called;
    const std::string from = known.front().second, called = fresh(from.substr(1) + "_read");
    body_ += "  " + called + " = sdy.reshard " + from + " " + sharding(held) + " : " + type(v) + "\n";
    known.emplace_back(held, called);
    return called;
  }

  void add(int o) {
    const operation& op = g_.at(o);
    std::string operands, types, results, result_types, shardings;
    for (int k = 0; k < op.operands.size(); ++k) {
      const int v = op.operands[k];
      operands += (k > 0 ? ", " : "") + read(v, view_.reads(o, k));
      types += (k > 0 ? ", " : "") + type(v);
    }
    for (int k = 0; k < op.results.size(); ++k) {
      const int v = op.results[k];
      const partition made = view_.makes(o, k);
      for (const partition::debt& d : made.partial)
        if (d.owed && d.combine != reduction::sum) greatest_.push_back(view_.tensor(v).name);
      names_[v].emplace_back(made, fresh(view_.tensor(v).name));
      results += (k > 0 ? ", " : "") + names_[v][0].second;
      result_types += (k > 0 ? ", " : "") + type(v);
      shardings += (k > 0 ? ", " : "") + sharding(made);
    }
    body_ += "  " + results + " = \"cfp." + std::string(op.op->label) + "\"(" + operands +
             ") {sdy.sharding = #sdy.sharding_per_value<[" + shardings + "]>, sdy.sharding_rule = " + rule_text(op) +
             (view_.stages() ? ", cfp.stage = " + std::to_string(view_.stage_of(o)) + " : i32" : "") + "} : (" + types +
             ") -> " + (op.results.size() > 1 ? "(" + result_types + ")" : result_types) + "\n";
  }

  const plan_view& view_;
  const graph& g_;
  std::map<int, std::vector<std::pair<partition, std::string>>> names_;
  std::set<std::string> taken_;
  std::vector<std::string> greatest_;
  std::string body_;
};

}  // namespace detail

/// Compound dimensions stand apart, as in the plan. Operators are those of the dialect `cfp`, which Shardy does not
/// know: their rules stand with them.
inline exported to_shardy(const plan_view& view) {
  detail::shardy_text made(view);
  return {"// A plan for " + view.model() + ", written by cfp.\n" + detail::as_comments(made.notes, "// ") + made.text,
          made.notes};
}

}  // namespace cfp
