// The forward pass of a plan as a Python function: each operator by its rule, and each tensor held as the plan holds it
// where it is made and where it is read.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/export/exported.hpp>
#include <cfp/export/jax_operators.hpp>
#include <cfp/export/plan_view.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// "None, ('data', 'model')": the dimensions of a partition spec; parts of sums it cannot say.
inline std::string jax_spec(const partition& held, const mesh_shape& mesh) {
  std::string out;
  for (int d = 0; d < held.rank(); ++d) {
    std::string axes;
    for (const signed char a : held.dims[d])
      axes.append(axes.empty() ? "\"" : "\", \"").append(mesh.axes[a].label.view());
    if (!axes.empty()) axes += '"';
    const bool several = held.dims[d].size() > 1;
    out.append(d > 0 ? ", " : "").append(axes.empty() ? "None" : several ? "(" + axes + ")" : axes);
  }
  return out;
}

inline std::string python_number(double x) {
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char out[32];
  std::snprintf(out, sizeof out, "%.17g", x);
  double shorter = 0;
  for (int digits = 1; digits < 17; ++digits) {
    char few[32];
    std::snprintf(few, sizeof few, "%.*g", digits, x);
    if (std::sscanf(few, "%lf", &shorter) == 1 && !(shorter < x) && !(shorter > x)) return few;
  }
  return out;
}

class jax_forward {
 public:
  explicit jax_forward(const plan_view& view) : view_(view), g_(view.g()) {
    for (const jax_operator& o : jax_operators) taken_.emplace(o.label);
    for (int o = 0; o < g_.size(); ++o)
      if (view.is_forward(o)) add(o);
    if (!owed_.empty())
      notes.push_back(counted(owed_, "tensor") +
                      ", are left as parts of sums by their operators; a PartitionSpec has no word for that, and XLA adds "
                      "them up where they are made or in the form they are read in");
    if (!on_host_.empty())
      notes.push_back(counted(on_host_, "tensor") + ", rest on the host until backward; here they stay on the device");
    if (!weights_on_host_.empty())
      notes.push_back(counted(weights_on_host_, "weight") + ", rest on the host; here they stay on the device");
  }

  std::string body;                ///< lines of the function
  std::set<std::string> used;      ///< functors, by name
  std::vector<std::string> anew;   ///< names of what is computed or gathered again for backward
  std::vector<std::string> notes;  ///< what is said otherwise
  std::string loss() const { return made_.at(g_.loss); }
  bool draws = false;              ///< random numbers

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

  static std::string letters(const pattern& p) {
    std::string out;
    for (const signed char f : p.factors) out += static_cast<char>('a' + f);
    return out;
  }
  static std::string quoted(const std::string& text) { return "\"" + text + "\""; }

  // A weight or an input, the first time that it is read.
  void begin(int v) {
    if (made_.count(v) > 0) return;
    const viewed_tensor& t = view_.tensor(v);
    const std::string name = fresh(word_of(t.name));
    made_[v] = name;
    line(name + " = " + (view_.is_weight(t) ? "params" : "inputs") + "[" + quoted(t.name) + "]");
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
    return "checkpoint_name(" + text + ", " + quoted(name) + ")";
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
    compute(o, operands, names);
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

  void compute(int o, const std::vector<std::string>& operands, const std::vector<std::string>& results) {
    const operation& op = g_.at(o);
    switch (op.op->body) {
      case op_body::product:
        return line(results[0] + " = jnp.einsum(\"" + letters(op.r.operands[0]) + "," + letters(op.r.operands[1]) +
                    "->" + letters(op.r.results[0]) + "\", " + operands[0] + ", " + operands[1] + precision() + ")");
      case op_body::unstack: return unstack(op, operands[0], results);
      case op_body::routine: return routine(o, operands[0], results[0]);
      case op_body::map: return map(op, operands, results[0]);
      default: throw unknown(op);
    }
  }
  // Products add up in 32 bits, as ours do.
  std::string precision() const {
    return view_.real_bytes() < 4 ? ", preferred_element_type=WIDE" : ", precision=\"highest\"";
  }
  bad_input unknown(const operation& op) const {
    return bad_input("--to jax: of operator '" + std::string(op.op->label) + "' (" +
                     std::string(g_[op.results[0]].label.view()) +
                     ") no form in jax.numpy is known; the header (--save-header) has every operator");
  }

  void unstack(const operation& op, const std::string& x, const std::vector<std::string>& results) {
    const pattern& from = op.r.operands[0];
    int slice = -1;
    for (const signed char f : from.factors)
      if (op.r.results[0].dim_of(f) < 0) slice = slice < 0 ? f : throw unknown(op);
    const std::string have = letters(from);
    std::string left = have;
    std::erase(left, static_cast<char>('a' + slice));
    for (std::size_t k = 0; k < results.size(); ++k)
      line(results[k] + " = give(jnp.take(" + x + ", " + std::to_string(k) + ", axis=" +
           std::to_string(from.dim_of(slice)) + "), " + quoted(left) + ", " +
           quoted(letters(op.r.results[static_cast<int>(k)])) + ")");
  }

  void routine(int o, const std::string& x, const std::string& result) {
    const operation& op = g_.at(o);
    if (op.op->label == "dropout") {
      draws = true;
      const int which = op.slice_of >= 0 ? op.slice_of : o;
      return line(result + " = dropout(" + x + ", " + python_number(op.scalars[0]) + ", " + std::to_string(which) +
                  ", seed, number)");
    }
    if (op.op->label != "queue_places") throw unknown(op);
    used.insert("queue_places");
    const pattern& p = op.r.operands[0];
    long sizes[3] = {1, 1, 1};
    for (int d = 0; d < p.factors.size(); ++d) sizes[p.group[d]] *= op.sizes[p.factors[d]];
    line(result + " = queue_places(" + x + ", " + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
         std::to_string(sizes[2]) + ", " + std::to_string(static_cast<long>(op.scalars[0])) + ")");
  }

  // A functor on elements that belong together, then added up over what the result lacks.
  void map(const operation& op, std::vector<std::string> operands, const std::string& result) {
    const rule& r = op.r;
    std::vector<std::string> have;
    for (const pattern& p : r.operands) have.push_back(letters(p));
    const std::string want = letters(r.results[0]), index = select(op, operands, have, result);
    if (index == "done") return;
    std::string all = want;
    for (const std::string& h : have)
      for (const char c : h)
        if (all.find(c) == std::string::npos) all += c;
    const auto aligned = [&](const std::string& x, const std::string& of) {
      return of == all ? x : "at(" + x + ", " + quoted(of) + ", " + quoted(all) + ")";
    };
    std::string arguments;
    for (std::size_t k = 0; k < operands.size(); ++k)
      arguments += (k > 0 ? ", " : "") + aligned(operands[k], have[k]);
    const bool moves = op.op->unit && operands.size() == 1, adds = op.op->unit && operands.size() == 2;
    std::string text = arguments;
    if (adds) text = aligned(operands[0], have[0]) + " + " + aligned(operands[1], have[1]);
    if (!moves && !adds) {
      if (find_jax_operator(op.op->label) == nullptr) throw unknown(op);
      used.insert(std::string(op.op->label));
      for (const double s : op.scalars) arguments += ", " + python_number(s);
      for (const signed char f : r.coordinates)
        arguments += ", place(\"" + std::string(1, static_cast<char>('a' + f)) + "\", " + quoted(all) + ", " +
                     std::to_string(op.sizes[f]) +
                     (op.first_of(f) != 0 ? ", " + std::to_string(op.first_of(f)) : "") + ")";
      text = std::string(op.op->label) + "(" + arguments + ")";
    }
    if (!index.empty()) text = "jnp.where(" + index + " >= 0, " + text + ", 0)";
    if (all != want)
      text = "give(" + text + ", " + quoted(all) + ", " + quoted(want) +
             (r.combine == reduction::max ? ", jnp.max" : r.combine == reduction::min ? ", jnp.min" : "") + ")";
    // What is only divided out again has no gradient.
    if (op.op->statistic && r.combine != reduction::sum) text = "jax.lax.stop_gradient(" + text + ")";
    line(result + " = " + text);
  }

  // Where an operand is an index into a dimension of the first one: that is looked up, and both are one operand less.
  // Returns what the index is then called by the letters of all, "done" where nothing is left to do.
  std::string select(const operation& op, std::vector<std::string>& operands, std::vector<std::string>& have,
                     const std::string& result) {
    int hot = -1;
    for (int f = 0; f < op.r.factors.size(); ++f)
      if (op.r.factors[f].one_hot) hot = hot < 0 ? f : throw unknown(op);
    if (hot < 0) return {};
    const char c = static_cast<char>('a' + hot);
    const std::string index = operands[1], of_index = have[1];
    const std::size_t axis = have[0].find(c);
    if (axis == std::string::npos) throw unknown(op);
    std::string left = have[0];
    left.erase(axis, 1);
    const bool apart = std::none_of(of_index.begin(), of_index.end(),
                                    [&](char l) { return left.find(l) != std::string::npos; });
    if (apart && op.op->unit) {
      const std::string found = have[0].substr(0, axis) + of_index + have[0].substr(axis + 1);
      line(result + " = give(jnp.take(" + operands[0] + ", " + index + ", axis=" + std::to_string(axis) +
           ", mode=\"clip\"), " + quoted(found) + ", " + quoted(letters(op.r.results[0])) + ")");
      return "done";
    }
    std::string aligned = index;
    if (of_index != left) aligned = "at(" + index + ", " + quoted(of_index) + ", " + quoted(left) + ")";
    operands[0] = "pick(" + operands[0] + ", " + aligned + ", " + std::to_string(axis) + ")";
    have[0] = left;
    operands.erase(operands.begin() + 1);
    have.erase(have.begin() + 1);
    return aligned;
  }

  const plan_view& view_;
  const graph& g_;
  std::map<int, std::string> made_;
  std::map<int, std::vector<variant>> variants_;
  std::set<std::string> taken_{"params", "inputs", "mesh",    "seed",        "number", "hold", "jax", "jnp", "at", "give",
                               "place",  "pick",   "dropout", "queue_places", "inf"};
  std::vector<std::string> owed_, on_host_, weights_on_host_;
};

}  // namespace cfp::detail
