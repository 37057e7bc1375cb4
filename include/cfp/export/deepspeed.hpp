// A plan as a configuration of DeepSpeed, where it is a stage of ZeRO, or the nearest, and what that loses by our
// price.
#pragma once

#include <cfp/export/exported.hpp>
#include <cfp/export/usual_of.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// 0 to 3, of the kinds of data parallelism.
inline int zero_stage(const usual_view& as) {
  static constexpr std::string_view kinds[] = {"data_parallel", "zero1", "zero2", "zero3"};
  return static_cast<int>(std::find(std::begin(kinds), std::end(kinds), as.inner) - std::begin(kinds));
}

inline void say_optimizer(const graph& g, nlohmann::ordered_json& out, std::vector<std::string>& notes) {
  const operation* update = nullptr;
  for (const operation& o : g.operations) {
    if (o.op->label == "clip_factor") out["gradient_clipping"] = o.scalars[0];
    if (o.op->body == op_body::update && update == nullptr) update = &o;
  }
  if (update == nullptr || update->op->label != "adamw") {
    notes.emplace_back("weights are not updated by AdamW: the optimizer is left out, give DeepSpeed one of yours");
    return;
  }
  const auto& s = update->scalars;
  double decay = 0;
  for (const operation& o : g.operations)
    if (o.op->label == "adamw") decay = std::max(decay, o.scalars[4]);
  out["optimizer"] = {{"type", "AdamW"},
                      {"params", {{"lr", s[0]}, {"betas", {s[1], s[2]}}, {"eps", s[3]}, {"weight_decay", decay}}}};
  notes.emplace_back(
      "vectors do not decay in the plan; DeepSpeed's one figure is of all parameters, so give it two groups");
  if (is_lean(g[update->operands[2]].type))
    notes.emplace_back("moments of the optimizer take fewer than 32 bits in the plan; here they take 32");
}

}  // namespace detail

/// `price`: where plans are priced if DeepSpeed has not this one. What is said otherwise stands under "cfp", which
/// DeepSpeed passes over.
inline exported to_deepspeed(const plan_view& view, const pricing& price) {
  const usual_view as = usual_of(view, price, [](const usual_view& u) {
    const bool is_data = u.inner == "data_parallel" || u.inner == "zero2" || u.inner == "zero3";
    return u.outer == u.inner && is_data;  // gradients that rest in pieces are summed into them: stage 2, not 1
  });
  nlohmann::ordered_json j;
  exported out;
  long rows = 0;
  for (const viewed_tensor& t : view.tensors())
    if (const value& v = view.value_of(t); view.is_input(t) && v.rank() > 1) rows = std::max(rows, v.shape[0]);
  const int devices = view.mesh().devices();
  j["train_batch_size"] = rows * view.micro_batches();
  if (rows % devices == 0) j["train_micro_batch_size_per_gpu"] = rows / devices;
  else
    out.approximations.push_back("micro-batches of " + std::to_string(rows) + " rows do not divide over " +
                                 std::to_string(devices) + " devices; the size of one is left out");
  j["gradient_accumulation_steps"] = view.micro_batches();
  if (view.real_bytes() < 4) j["bf16"] = {{"enabled", true}};
  j["zero_optimization"] = {{"stage", detail::zero_stage(as)}};
  std::vector<std::string> anew, host, weights;
  for (const viewed_tensor& t : view.tensors()) {
    if (t.recomputed) anew.push_back(t.name);
    if (t.state_on_host) host.push_back(t.name);
    if (t.on_host) weights.push_back(t.name);
  }
  if (!host.empty()) j["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  if (!weights.empty() && detail::zero_stage(as) == 3) j["zero_optimization"]["offload_param"] = {{"device", "cpu"}};
  detail::say_optimizer(view.g(), j, out.approximations);
  if (const std::string lost = said_as(as, "DeepSpeed's"); !lost.empty())
    out.approximations.insert(out.approximations.begin(), lost);
  if (!anew.empty())
    out.approximations.push_back("what is computed again for backward the model's own checkpoints say to DeepSpeed: " +
                                 detail::counted(anew, "tensor"));
  if (view.stages())
    out.approximations.push_back("the plan is in " + std::to_string(view.stages()->stages()) +
                                 " stages; a PipelineModule of DeepSpeed is cut by its own partition_method");
  j["cfp"] = {{"model", view.model()}, {"said_otherwise", out.approximations}};
  out.text = j.dump(2) + "\n";
  return out;
}

}  // namespace cfp
