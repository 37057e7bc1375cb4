// A plan for PyTorch: a Python file with the placements of every parameter as a DTensor, how modules are parallelized
// along each axis, and the groups in which FSDP shards what rests in pieces.
#pragma once

#include <cfp/export/exported.hpp>
#include <cfp/export/plan_view.hpp>
#include <cfp/export/python_text.hpp>
#include <cfp/export/torch_inputs.hpp>
#include <cfp/export/torch_program.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

class torch_text {
 public:
  explicit torch_text(const plan_view& view) : view_(view), g_(view.g()) {
    for (int o = 0; o < g_.size(); ++o)
      if (view.is_forward(o)) add(o);
    for (const viewed_tensor& t : view.tensors())
      if (view.is_input(t)) add_input(t);
    for (const viewed_tensor& t : view.tensors())
      if (view.is_weight(t)) add_weight(t);
    if (!strided_.empty())
      notes.push_back(
          "a Shard of the checkpoint's shape cannot split inside of a compound dimension, and is of the shape "
          "with these apart: " +
          counted(strided_, "parameter"));
    if (!unlike_.empty())
      notes.push_back(
          "what is split as none of ColwiseParallel, RowwiseParallel and SequenceParallel stands in PARAMETERS "
          "alone: " +
          counted(unlike_, "module"));
    std::vector<std::string> twice;
    for (const auto& [a, modules] : modules_)
      for (const auto& [module, style] : modules)
        for (int b = 0; b < a; ++b)
          if (modules_.count(b) > 0 && modules_.at(b).count(module) > 0) twice.push_back(module);
    if (!twice.empty())
      notes.push_back("parallelize_module splits a module along one axis; along two, distribute alone does: " +
                      counted(twice, "module"));
    if (!summed_.empty())
      notes.push_back(
          "gradients of what is in no group of FSDP are not averaged over axes that split the batch; the "
          "program that trains does it, as DDP: " +
          counted(summed_, "parameter"));
    std::vector<std::string> anew, host;
    for (const viewed_tensor& t : view.tensors()) {
      if (t.recomputed) anew.push_back(t.name);
      if (t.on_host || t.state_on_host) host.push_back(t.name);
    }
    if (!anew.empty())
      notes.push_back("what is computed again for backward is not said, torch.utils.checkpoint does it: " +
                      counted(anew, "tensor"));
    if (!host.empty()) notes.push_back("what rests on the host stays on the device: " + counted(host, "tensor"));
    if (view.stages())
      notes.push_back("the plan is in " + std::to_string(view.stages()->stages()) +
                      " stages; the mesh is that of one of them, and torch.distributed.pipelining cuts the model");
  }

  std::vector<std::string> notes;

  std::string text() const {
    const mesh_shape& mesh = view_.mesh();
    std::string out = "AXES = {";
    for (int a = 0; a < mesh.rank(); ++a)
      out += (a > 0 ? ", \"" : "\"") + axis(a) + "\": " + std::to_string(mesh.size(a));
    out +=
        "}\n\n# Shape in checkpoints, shape with compound dimensions apart, how it rests, how it is computed with.\n"
        "PARAMETERS = {\n" +
        parameters_ + "}\n\n# How inputs are given.\nINPUTS = {\n" + inputs_ +
        "}\n\n# What each axis does with modules.\nPARALLELIZE = {\n" + by_axis(shared_.adapted(modules_)) +
        "}\n\n# What several children of a module read: as it arrives, as they read it; converted once.\nPREPARED = "
        "{\n" +
        by_axis(shared_.prepared());
    out +=
        "}\n\n# What rests in pieces along an axis that does not split it where it is read: gathered module by "
        "module.\n"
        "FSDP = {\n";
    for (const auto& [axes, groups] : groups_) {
      out += "    " + axes + ": [";
      std::string listed;
      for (const std::string& one : groups) listed += (listed.empty() ? "\"" : ", \"") + one + "\"";
      out += listed + "],\n";
    }
    std::string listed;
    for (const std::string& one : again_) listed += (listed.empty() ? "\"" : ", \"") + one + "\"";
    return out + "}\nGATHERED_AGAIN = [" + listed + "]\n" + std::string(torch_end);
  }

 private:
  using styles = styles_by_axis;

  std::string by_axis(const styles& all) const {
    std::string out;
    for (const auto& [a, modules] : all) {
      out += "    \"" + axis(a) + "\": {\n";
      for (const auto& [module, style] : modules) out += "        \"" + module + "\": " + style + ",\n";
      out += "    },\n";
    }
    return out;
  }
  std::string axis(int a) const { return std::string(view_.mesh().axes[a].label.view()); }
  static std::string module_of(const std::string& weight) { return weight.substr(0, weight.rfind('.')); }

  // "Shard(0)", of one axis of a mesh; of an activation the dimension is the written one, as modules have it.
  std::string along(const partition& held, int a, const value* of = nullptr) const {
    const placement p = held.on(a);
    if (p.kind == placement::split) return "Shard(" + std::to_string(of != nullptr ? of->group[p.dim] : p.dim) + ")";
    if (p.kind == placement::replicate) return "Replicate()";
    return p.combine == reduction::max   ? "Partial(\"max\")"
           : p.combine == reduction::min ? "Partial(\"min\")"
                                         : "Partial()";
  }
  std::string placements(const partition& held) const {
    std::string out;
    for (int a = 0; a < view_.mesh().rank(); ++a) out += (a > 0 ? ", " : "") + along(held, a);
    return "[" + out + "]";
  }

  void add_input(const viewed_tensor& t) {
    const viewed_form* const rest = t.resting();
    if (rest != nullptr && rest->held.rank() > 0 && !rest->held.dims[0].empty()) splits_batch_ = true;
    inputs_ += "    \"" + t.name +
               "\": " + placements(rest != nullptr ? rest->held : partition::replicated(view_.value_of(t).rank())) +
               ",\n";
  }
  void add_weight(const viewed_tensor& t) {
    const value& v = view_.value_of(t);
    const viewed_form* const rest = t.resting();
    const partition at = rest != nullptr ? rest->held : partition::replicated(v.rank());
    partition read = at;
    for (const viewed_form& f : t.forms)
      if (f.read) read = f.held;
    for (int d = 1; d < v.rank(); ++d)
      if (v.group[d] == v.group[d - 1] && (!at.dims[d].empty() || !read.dims[d].empty())) {
        strided_.push_back(t.name);
        break;
      }
    parameters_ += "    \"" + t.name + "\": (" + python_shape(view_.written_shape(t)) + ", " +
                   python_shape(std::vector<long>(v.shape.begin(), v.shape.end())) + ", " + placements(at) + ", " +
                   placements(read) + "),\n";
    std::string axes;
    for (int a = 0; a < view_.mesh().rank(); ++a)
      if (at.on(a).kind == placement::split && !(read.on(a) == at.on(a)))
        axes += (axes.empty() ? "\"" : ", \"") + axis(a) + "\"";
    if (axes.empty()) {
      if (splits_batch_) summed_.push_back(t.name);
      return;
    }
    auto& group = groups_[axes.find(',') == std::string::npos ? axes : "(" + axes + ")"];
    const std::string module = module_of(t.name);
    if (group.empty() || group.back() != module) group.push_back(module);
    if (t.regathered) again_.insert(module);
  }
  // Which of the three styles an operator with a weight follows along an axis.
  void add(int o) {
    const operation& op = g_.at(o);
    int weight = -1, data = -1;
    for (int k = 0; k < op.operands.size(); ++k) {
      const value& v = g_[op.operands[k]];
      if (v.role == value_role::weight && v.producer < 0) weight = weight < 0 ? k : weight;
      else data = data < 0 ? k : data;
    }
    if (weight < 0 || data < 0) return;
    const std::string module = module_of(view_.tensor(op.operands[weight]).name);
    const bool contracts = op.op->body == op_body::product || op.op->index_operand >= 0;
    for (int a = 0; a < view_.mesh().rank(); ++a) {
      const placement w = view_.reads(o, weight).on(a), x = view_.reads(o, data).on(a), y = view_.makes(o, 0).on(a);
      std::string style;
      const std::string read = along(view_.reads(o, data), a, &g_[op.operands[data]]),
                        in = arrives(op.operands[data], a), out = along(after(op.results[0], o), a, &g_[op.results[0]]);
      if (contracts && w.kind == placement::split)
        style = (y.kind == placement::partial ? "RowwiseParallel" : "ColwiseParallel") + ("(input_layouts=" + in) +
                ", output_layouts=" + out + ")";
      else if (!contracts && w.kind == placement::replicate && x.kind == placement::split &&
               is_of_sequence(op, data, x.dim))
        style = "SequenceParallel(sequence_dim=" + std::to_string(x.dim) + ")";
      else if (!contracts && w.kind == placement::split && modules_[a].count(module) == 0) unlike_.push_back(module);
      if (style.find("output_layouts") != std::string::npos) is_left_otherwise_[a].insert(o);
      if (!style.empty() && modules_[a].try_emplace(module, style).second && style.starts_with("Colwise"))
        shared_.add(a, module, op.operands[data], in, read);
    }
  }
  bool leaves_otherwise(int a, int o) const {
    const auto at = is_left_otherwise_.find(a);
    return at != is_left_otherwise_.end() && at->second.count(o) > 0;
  }
  // The form in which modules find a value: as its operator makes it, or as its module leaves it.
  std::string arrives(int v, int a) const {
    const value& of = g_[v];
    const int o = of.producer;
    if (o < 0) {
      const viewed_form* const rest = view_.tensor(v).resting();
      return rest != nullptr ? along(rest->held, a, &of) : "Replicate()";
    }
    int result = 0;
    while (g_.at(o).results[result] != v) ++result;
    return along(leaves_otherwise(a, o) ? after(v, o) : view_.makes(o, result), a, &of);
  }
  bool is_of_sequence(const operation& op, int data, int dim) const {
    return g_[op.operands[data]].dims[dim].view() != "batch";
  }
  // The form in which a result is read next, which is what its module is to leave.
  partition after(int v, int o) const {
    for (int next = o + 1; next < g_.size() && view_.is_forward(next); ++next)
      for (int k = 0; k < g_.at(next).operands.size(); ++k)
        if (g_.at(next).operands[k] == v) return view_.reads(next, k);
    return view_.makes(o, 0);
  }

  const plan_view& view_;
  const graph& g_;
  std::string parameters_, inputs_;
  styles modules_;
  shared_inputs shared_;
  std::map<int, std::set<int>> is_left_otherwise_;  // by axis: operators whose modules have output_layouts
  std::map<std::string, std::vector<std::string>> groups_;
  std::set<std::string> again_;
  std::vector<std::string> strided_, unlike_, summed_;
  bool splits_batch_ = false;
};

}  // namespace detail

inline exported to_torch(const plan_view& view) {
  const detail::torch_text made(view);
  exported out{{}, made.notes};
  out.text = "\"\"\"A plan for " + view.model() + ", written by cfp.\n";
  if (!made.notes.empty())
    out.text += "\nSaid otherwise than the plan has it:\n" + detail::as_comments(made.notes, "- ");
  out.text += "\"\"\"" + std::string(detail::torch_begin) + made.text();
  return out;
}

}  // namespace cfp
