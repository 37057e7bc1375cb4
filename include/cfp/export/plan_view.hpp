// A plan as other programs are told of it: the mesh, and of every tensor, by its public name, how it rests, is made and
// is read. All that is exported is written from this.
#pragma once

#include <cfp/core/propagate.hpp>
#include <cfp/export/opened_plan.hpp>
#include <cfp/model/graph.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// How a tensor is held somewhere. What a tensor only passes through from one form to another is none of these: told as
/// one, it would be made.
struct viewed_form {
  partition held;
  bool rests = false;  ///< across steps, or as it is given
  bool made = false;   ///< by the operator it is a result of
  bool read = false;   ///< by some operator
};

/// A weight, an input, or what forward makes. One tensor is one value of the graph: names may repeat there.
struct viewed_tensor {
  int value = -1;
  std::string name;  ///< public, of what is given; of others made different where several have one
  std::vector<viewed_form> forms;
  int stage = -1;                      ///< of what is given that of its first reader
  bool recomputed = false;             ///< for backward, not kept
  bool on_host = false;                ///< until backward reads it; of a weight: where it rests
  bool regathered = false;             ///< a weight whose other forms backward makes again
  bool state_on_host = false;          ///< of a weight
  std::optional<partition> owed = {};  ///< of a weight: how its gradient is left by backward

  const viewed_form* resting() const {
    const auto at = std::find_if(forms.begin(), forms.end(), [](const viewed_form& f) { return f.rests; });
    return at == forms.end() ? nullptr : &*at;
  }
};

class plan_view {
 public:
  /// The plan must outlive this.
  explicit plan_view(const opened_plan& p) : p_(p), of_value_(p.g.values.size(), -1) {
    for (int o = 0; o < p.g.size(); ++o) stage_of_.push_back(0);
    if (p.stages)
      for (int o = 0, s = 0; o < p.g.size() && is_forward(o); ++o) {
        while (s < static_cast<int>(p.stages->first.size()) && o >= p.stages->first[static_cast<std::size_t>(s)]) ++s;
        stage_of_[static_cast<std::size_t>(o)] = s;
      }
    for (int v = 0; v < p.g.value_count(); ++v)
      if (is_given(v)) add(v);
    for (int o = 0; o < p.g.size(); ++o) {
      if (is_forward(o)) view(o);
      if (p.g.at(o).op->body == op_body::update) view_update(o);
    }
    for (int v = 0; v < p.g.value_count(); ++v)
      if (is_given(v) && p.g[v].role == value_role::input) input_rests(of(v));
    std::erase_if(tensors_, [](const viewed_tensor& t) { return t.forms.empty(); });
    for (int& at : of_value_) at = -1;
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      of_value_[static_cast<std::size_t>(tensors_[t].value)] = static_cast<int>(t);
  }

  const std::string& model() const { return p_.model; }
  const mesh_shape& mesh() const { return p_.mesh; }  ///< of a stage
  const graph& g() const { return p_.g; }
  const std::optional<staged_layout>& stages() const { return p_.stages; }
  long real_bytes() const { return p_.real_bytes; }
  const opened_plan& plan() const { return p_; }
  int micro_batches() const { return p_.g.passes; }

  /// Weights and inputs first, then what forward makes, in the order in which it does.
  const std::vector<viewed_tensor>& tensors() const { return tensors_; }
  /// Of a value that is one of them.
  const viewed_tensor& tensor(int value) const {
    return tensors_[static_cast<std::size_t>(of_value_[static_cast<std::size_t>(value)])];
  }
  const value& value_of(const viewed_tensor& t) const { return p_.g[t.value]; }
  bool is_weight(const viewed_tensor& t) const { return is_given(t.value) && value_of(t).role == value_role::weight; }
  bool is_input(const viewed_tensor& t) const { return is_given(t.value) && value_of(t).role == value_role::input; }

  bool is_forward(int operation) const { return p_.g.at(operation).when == phase::forward; }
  int stage_of(int operation) const { return stage_of_[static_cast<std::size_t>(operation)]; }
  /// How a forward operation needs an operand, and how it leaves a result.
  partition reads(int operation, int operand) const {
    return operand_partition(p_.g.at(operation).r, operand, assigned(operation));
  }
  partition makes(int operation, int result) const {
    return result_partition(p_.g.at(operation).r, result, assigned(operation));
  }
  /// Forms in which a tensor of several readers is made once for all.
  const list<partition, 2>& materialised(int value) const {
    return p_.shards.materialised[static_cast<std::size_t>(value)];
  }
  /// The operation that updates a weight, or -1.
  int update_of(int weight) const {
    const auto at = updates_.find(weight);
    return at == updates_.end() ? -1 : at->second;
  }

  /// The dimensions as they are written: of a compound one the product of its parts.
  std::vector<long> written_shape(const viewed_tensor& t) const {
    const value& v = value_of(t);
    std::vector<long> out;
    for (int d = 0; d < v.rank(); ++d)
      if (d > 0 && v.group[d] == v.group[d - 1]) out.back() *= v.shape[d];
      else out.push_back(v.shape[d]);
    return out;
  }

 private:
  bool is_given(int v) const {
    const value& x = p_.g[v];
    return x.producer < 0 && (x.role == value_role::weight || x.role == value_role::input);
  }
  const assignment& assigned(int o) const { return p_.shards.assigned[static_cast<std::size_t>(o)]; }

  viewed_tensor& add(int v) {
    int& at = of_value_[static_cast<std::size_t>(v)];
    if (at >= 0) return tensors_[static_cast<std::size_t>(at)];
    at = static_cast<int>(tensors_.size());
    viewed_tensor& t = tensors_.emplace_back();
    t.value = v;
    const std::string label(p_.g[v].label.view());
    t.name = label;
    for (int n = 2; !taken_.insert(t.name).second; ++n) t.name = label + "." + std::to_string(n);
    return t;
  }
  viewed_tensor& of(int v) { return add(v); }

  static viewed_form& form(viewed_tensor& t, const partition& held) {
    const auto at = std::find_if(t.forms.begin(), t.forms.end(), [&](const viewed_form& f) { return f.held == held; });
    return at != t.forms.end() ? *at : t.forms.emplace_back(viewed_form{held});
  }

  void view(int o) {
    const operation& op = p_.g.at(o);
    for (int k = 0; k < op.operands.size(); ++k) {
      if (p_.g[op.operands[k]].role == value_role::constant) continue;
      viewed_tensor& t = of(op.operands[k]);
      form(t, reads(o, k)).read = true;
      if (t.stage < 0) t.stage = stage_of(o);
    }
    for (int k = 0; k < op.results.size(); ++k) {
      viewed_tensor& t = of(op.results[k]);
      form(t, makes(o, k)).made = true;
      t.stage = stage_of(o);
      t.recomputed = assigned(o).recompute;
      t.on_host = assigned(o).on_host;
    }
  }

  void view_update(int o) {
    const operation& op = p_.g.at(o);
    const int weight = op.operands[0];
    updates_[weight] = o;
    viewed_tensor& t = of(weight);
    form(t, operand_partition(op.r, 0, assigned(o))).rests = true;
    t.regathered = assigned(o).regather;
    t.on_host = assigned(o).weight_on_host;
    t.state_on_host = assigned(o).on_host;
    int made = p_.g[op.operands[1]].producer;
    if (made >= 0 && p_.g.at(made).op->body == op_body::accumulate) made = p_.g[p_.g.at(made).operands[1]].producer;
    if (made >= 0) t.owed = result_partition(p_.g.at(made).r, 0, assigned(made));
  }

  // What a step is given is given as it is first read, or as it is made for all readers.
  void input_rests(viewed_tensor& t) {
    const auto& all = materialised(t.value);
    if (t.forms.empty()) return;
    partition at = all.empty() ? t.forms.front().held : all[0];
    for (partition::debt& d : at.partial) d = {};
    form(t, at).rests = true;
  }

  const opened_plan& p_;
  std::vector<viewed_tensor> tensors_;
  std::vector<int> of_value_, stage_of_;
  std::map<int, int> updates_;
  std::set<std::string> taken_;
};

}  // namespace cfp
