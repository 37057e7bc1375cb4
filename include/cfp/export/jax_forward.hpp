// The forward pass of a plan as a Python function: each operator by its rule, and each tensor held as the plan holds it
// where it is made and where it is read.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/export/exported.hpp>
#include <cfp/export/jax_compute.hpp>
#include <cfp/export/plan_view.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class jax_forward {
 public:
  explicit jax_forward(const plan_view& view) : view_(view), g_(view.g()), compute_(view.g(), view.real_bytes()) {
    for (const jax_operator& o : jax_operators) taken_.emplace(o.label);
    for (int o = 0; o < g_.size(); ++o)
      if (view.is_forward(o)) add(o);
    if (!owed_.empty())
      notes.push_back(
          "a PartitionSpec has no word for parts of sums: XLA adds them up where they are made or as they are "
          "read, " +
          counted(owed_, "tensor"));
    if (!on_host_.empty())
      notes.push_back("what rests on the host until backward stays on the device: " + counted(on_host_, "tensor"));
    if (!weights_on_host_.empty())
      notes.push_back("weights that rest on the host stay on the device: " + counted(weights_on_host_, "weight"));
  }

  std::string body;                ///< lines of the function
  std::vector<std::string> anew;   ///< names of what is computed or gathered again for backward
  std::vector<std::string> notes;  ///< what is said otherwise
  const jax_compute& functors() const { return compute_; }
  std::string loss() const { return made_.at(g_.loss); }

 private:
  struct variant {
    std::string name;
    partition held;
    element type;
  };

  static std::string word_of(const std::string& label) {
    std::string out;
    for (const char c : label) out += is_name_character(c) ? c : '_';
    return out.empty() || (out[0] >= '0' && out[0] <= '9') ? "t_" + out : out;
  }
  std::string fresh(const std::string& base) {
    std::string out = base;
    for (int n = 2; !taken_.insert(out).second; ++n) out = base + "_" + std::to_string(n);
    return out;
  }
  void line(const std::string& text) { body.append("    ").append(text).append(1, '\n'); }

  // A weight or an input, the first time that it is read.
  void begin(int v) {
    if (made_.count(v) > 0) return;
    const viewed_tensor& t = view_.tensor(v);
    const std::string name = fresh(word_of(t.name));
    made_[v] = name;
    line(name + " = " + (view_.is_weight(t) ? "params" : "inputs") + "[" + python_text(t.name) + "]");
    const viewed_form* const rest = t.resting();
    variants_[v].push_back({name, rest != nullptr ? rest->held : partition::replicated(g_[v].rank()),
                            view_.is_weight(t) ? stored(element::wide, view_.real_bytes()) : g_[v].type});
    if (view_.is_weight(t) && t.on_host) weights_on_host_.push_back(t.name);
  }

  // The tensor in a form, made of another one if it is not there.
  std::string held(int v, partition as, element type) {
    for (const partition::debt& d : as.partial)
      if (d.owed) return typed(v, variants_[v].front(), type);  // parts of a sum go on as they are
    for (const variant& known : variants_[v])
      if (known.held == as && known.type == type) return known.name;
    const variant from = variants_[v].front();
    const viewed_tensor& t = view_.tensor(v);
    std::string text = from.type == type ? from.name : from.name + ".astype(" + type_name(type) + ")";
    const std::string name = fresh(made_[v] + "_read");
    if (!(from.held == as)) text = "hold(" + text + ", " + jax_spec(as, view_.mesh()) + ")";
    if (t.regathered || t.recomputed) text = named(text, t.name + ":" + name);
    line(name + " = " + text);
    variants_[v].push_back({name, as, type});
    return name;
  }
  std::string typed(int v, const variant& from, element type) {
    return from.type == type || g_[v].type == element::index ? from.name
                                                             : from.name + ".astype(" + type_name(type) + ")";
  }
  std::string type_name(element type) const {
    return type == element::index ? "jnp.int32" : stored(type, view_.real_bytes()) == element::wide ? "WIDE" : "REAL";
  }
  std::string named(const std::string& text, const std::string& name) {
    anew.push_back(name);
    return "checkpoint_name(" + text + ", " + python_text(name) + ")";
  }
  element read_type(const operation& o, int k) const { return stored(read_as(g_, o, k), view_.real_bytes()); }

  void add(int o) {
    const operation& op = g_.at(o);
    std::vector<std::string> operands;
    for (int k = 0; k < op.operands.size(); ++k) {
      const int v = op.operands[k];
      begin(v);
      const auto& all = view_.materialised(v);
      for (const partition& m : all) held(v, m, read_type(op, k));
      operands.push_back(held(v, view_.reads(o, k), read_type(op, k)));
    }
    std::vector<std::string> names;
    for (int k = 0; k < op.results.size(); ++k) {
      names.push_back(fresh(word_of(view_.tensor(op.results[k]).name)));
      made_[op.results[k]] = names.back();
    }
    for (const std::string& text : compute_(o, operands, names)) line(text);
    for (int k = 0; k < op.results.size(); ++k) finish(o, k, names[static_cast<std::size_t>(k)]);
  }

  // Holds a result as it is made. Of a sum that is owed nothing can be said, but for a lookup: told the form it is read
  // in at once, XLA would gather the table, so its sum is held whole first.
  void finish(int o, int k, const std::string& name) {
    const operation& op = g_.at(o);
    const int v = op.results[k];
    const viewed_tensor& t = view_.tensor(v);
    partition made = view_.makes(o, k);
    const element type = stored(stored_as(g_, op, k), view_.real_bytes());
    const bool owed = made.is_partial();
    if (owed) owed_.push_back(t.name);
    std::string text = name;
    if (view_.real_bytes() < 4) text += ".astype(" + type_name(type) + ")";
    const bool looks_up = op.op->index_operand >= 0 && op.op->unit;
    if (owed && looks_up)
      for (partition::debt& d : made.partial) d = {};
    if ((!owed || looks_up) && g_[v].rank() > 0) text = "hold(" + text + ", " + jax_spec(made, view_.mesh()) + ")";
    if (t.recomputed) text = named(text, t.name);
    if (text != name) line(name + " = " + text);
    if (t.on_host) on_host_.push_back(t.name);
    variants_[v].push_back({name, made, type});
  }

  const plan_view& view_;
  const graph& g_;
  jax_compute compute_;
  std::map<int, std::string> made_;
  std::map<int, std::vector<variant>> variants_;
  std::set<std::string> taken_{"params", "inputs", "mesh",  "seed", "number",  "hold",         "jax", "jnp",
                               "at",     "give",   "place", "pick", "dropout", "queue_places", "inf"};
  std::vector<std::string> owed_, on_host_, weights_on_host_;
};

}  // namespace cfp::detail
