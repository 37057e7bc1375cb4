// A plan as arguments of Megatron-LM, where that has them, or the nearest it has, and what that loses by our price.
#pragma once

#include <cfp/export/exported.hpp>
#include <cfp/export/usual_of.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

namespace cfp::inline v0_1 {

namespace detail {

/// "layers" -> 32 and so on, of the sizes that stand behind a model's name.
inline std::map<std::string, std::string> sizes_of(const std::string& model) {
  std::map<std::string, std::string> out;
  std::istringstream words(model);
  for (std::string word; words >> word;)
    if (const std::size_t equals = word.find('='); equals != std::string::npos)
      out[word.substr(0, equals)] = word.substr(equals + 1);
  return out;
}

class megatron_arguments {
 public:
  megatron_arguments(const plan_view& view, const usual_view& as) : view_(view), as_(as) {
    model();
    layout();
    pipeline();
    memory();
  }
  std::string text;
  std::vector<std::string> notes;

 private:
  void flag(const std::string& name) { text += "  --" + name + "\n"; }
  void flag(const std::string& name, const std::string& value) { text += "  --" + name + " " + value + "\n"; }
  void flag(const std::string& name, long value) { flag(name, std::to_string(value)); }
  long data() const { return as_.along({"data_parallel", "zero2", "expert"}); }

  void model() {
    const auto sizes = sizes_of(view_.model());
    static constexpr std::pair<const char*, const char*> names[] = {
        {"layers", "num-layers"},         {"width", "hidden-size"},         {"hidden", "ffn-hidden-size"},
        {"heads", "num-attention-heads"}, {"kv_heads", "num-query-groups"}, {"experts", "num-experts"},
        {"choices", "moe-router-topk"},   {"sequence", "seq-length"}};
    for (const auto& [ours, theirs] : names)
      if (const auto at = sizes.find(ours); at != sizes.end()) flag(theirs, at->second);
    notes.emplace_back(
        "of the model these are sizes alone; norms, activations, positions, biases, tied heads, dropout and which "
        "layers have experts are its own arguments");
    if (sizes.count("kv_heads") > 0) flag("group-query-attention");
    const auto batch = sizes.find("batch");
    const long rows = batch == sizes.end() ? 0 : std::strtol(batch->second.c_str(), nullptr, 10);
    if (rows > 0 && rows % data() == 0) flag("micro-batch-size", rows / data());
    else if (rows > 0)
      notes.push_back("micro-batches of " + std::to_string(rows) + " rows do not divide over " +
                      std::to_string(data()) + " replicas; the size is left out");
    if (rows > 0) flag("global-batch-size", rows * view_.micro_batches());
    if (view_.real_bytes() < 4) flag("bf16");
  }

  void layout() {
    flag("tensor-model-parallel-size", as_.along({"tensor", "tensor_sequence"}));
    if (as_.has("tensor_sequence")) flag("sequence-parallel");
    if (as_.has("context")) flag("context-parallel-size", as_.along({"context"}));
    if (as_.has("expert")) flag("expert-model-parallel-size", as_.along({"expert"}));
    if (as_.has("zero2")) flag("use-distributed-optimizer"), flag("overlap-param-gather");
    if (data() > 1) flag("overlap-grad-reduce");  // as soon as they are there, as the plan has it
  }

  void pipeline() {
    const auto& stages = view_.stages();
    flag("pipeline-model-parallel-size", stages ? stages->places : 1);
    if (!stages) return;
    const auto sizes = sizes_of(view_.model());
    const auto layers = sizes.find("layers");
    if (stages->chunks > 1 && layers != sizes.end())
      flag("num-layers-per-virtual-pipeline-stage",
           std::max(1l, std::strtol(layers->second.c_str(), nullptr, 10) / stages->stages()));
    if (stages->schedule != "1f1b" && stages->schedule != "interleaved")
      notes.push_back("schedule " + stages->schedule +
                      " is not among Megatron's; it runs 1f1b, interleaved where a rank "
                      "has several stages");
    notes.emplace_back("where the stages are cut: Megatron gives each as many layers, the plan's first operators are " +
                       first_operators());
  }
  std::string first_operators() const {
    std::string out;
    for (const int o : view_.stages()->first)
      out += (out.empty() ? "'" : "', '") + view_.tensor(view_.g().at(o).results[0]).name;
    return out.empty() ? "those of the first stage" : out + "'";
  }

  void memory() {
    std::vector<std::string> anew, host;
    for (const viewed_tensor& t : view_.tensors()) {
      if (t.recomputed) anew.push_back(t.name);
      if (t.on_host || t.state_on_host) host.push_back(t.name);
    }
    if (!anew.empty()) {
      flag("recompute-granularity", "selective");
      notes.push_back("Megatron's selective recomputation takes attention's tensors alone, the plan " +
                      counted(anew, "tensor"));
    }
    if (!host.empty()) notes.push_back("what rests on the host stays on the device: " + counted(host, "tensor"));
    if (view_.g().gradients != compression::none)
      notes.emplace_back("gradients are sent compressed in the plan, and whole by Megatron");
  }

  const plan_view& view_;
  const usual_view& as_;
};

}  // namespace detail

/// Devices are numbered as ours: tensor parallelism innermost. `price`: where plans are priced if Megatron has not this
/// one.
inline exported to_megatron(const plan_view& view, const pricing& price) {
  const usual_view as = usual_of(view, price, [](const usual_view& u) {
    const auto one_of = [](const std::string& kind, std::initializer_list<std::string_view> kinds) {
      return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    };
    return (u.outer == u.inner || one_of(u.outer, {"data_parallel", "zero2"})) &&
           one_of(u.inner, {"data_parallel", "zero2", "tensor", "tensor_sequence", "context", "expert"});
  });
  const detail::megatron_arguments made(view, as);
  exported out{{}, made.notes};
  if (const std::string lost = said_as(as, "Megatron's"); !lost.empty())
    out.approximations.insert(out.approximations.begin(), lost);
  out.text = "# Arguments of Megatron-LM for " + view.model() + ", written by cfp.\n" +
             detail::as_comments(out.approximations, "# ") + "ARGUMENTS=(\n" + made.text + ")\n";
  return out;
}

}  // namespace cfp
