// A plan for JAX: a Python file with the mesh, how every parameter and input rests, and where the model is of our own
// operators its loss and a step of its training, held as the plan holds them. XLA finds the collectives.
#pragma once

#include <cfp/export/jax_forward.hpp>

#include <string>
#include <utility>

namespace cfp::inline v0_1 {

namespace detail {

inline constexpr std::string_view jax_begin = R"py(
import math
from math import inf

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

)py";

inline constexpr std::string_view jax_placing = R"py(

def make_mesh(devices=None):
    devices = np.array(jax.devices() if devices is None else devices)
    return Mesh(devices[:math.prod(AXES.values())].reshape(tuple(AXES.values())), tuple(AXES))


def sharding(mesh, spec):
    return NamedSharding(mesh, spec)


def place_parameters(params, mesh):
    """From arrays by public name, in the shapes of checkpoints."""
    return {name: jax.device_put(np.reshape(params[name], apart), sharding(mesh, spec))
            for name, (_, apart, spec, _) in PARAMETERS.items()}


def collect_parameters(params):
    """Back to the shapes of checkpoints."""
    return {name: np.reshape(np.asarray(params[name]), PARAMETERS[name][0]) for name in PARAMETERS}


def place_inputs(inputs, mesh):
    return {name: jax.device_put(np.asarray(inputs[name], type).reshape(shape), sharding(mesh, spec))
            for name, (shape, type, spec) in INPUTS.items()}


def place_moments(mesh):
    """Of AdamW, both zero; they rest as their parameters."""
    def zeros():
        return {name: jax.device_put(np.zeros(apart, np.float32), sharding(mesh, spec))
                for name, (_, apart, spec, _) in PARAMETERS.items()}
    return zeros(), zeros()

)py";

inline constexpr std::string_view jax_training = R"py(

def rate_at(step):
    """Rises over the warm-up, then falls along half a cosine; steps count from 1."""
    rate, warmup, steps, last = (ADAMW[k] for k in ("rate", "warmup", "steps", "last_rate"))
    if steps <= warmup:
        return jnp.where(step < warmup, rate * step / max(warmup, 1), rate)
    done = jnp.clip((step - warmup) / (steps - warmup), 0, 1)
    return jnp.where(step < warmup, rate * step / max(warmup, 1),
                     last + (rate - last) * 0.5 * (1 + jnp.cos(math.pi * done)))


def train_step(params, moments, batches, step, mesh, seed=1):
    """A step, counted from 1, on MICRO_BATCHES batches: the loss, new parameters and moments."""
    total, grads = 0.0, None
    for i, inputs in enumerate(batches):
        one, g = jax.value_and_grad(loss)(params, inputs, mesh, seed, step * MICRO_BATCHES + i)
        total = total + one / MICRO_BATCHES
        g = {name: g[name] / MICRO_BATCHES for name in g}
        grads = g if grads is None else {name: grads[name] + g[name] for name in g}
    grads = {name: jax.lax.with_sharding_constraint(grads[name].astype(jnp.float32),
                                                    sharding(mesh, PARAMETERS[name][2])) for name in grads}
    factor = 1.0
    if CLIP > 0:
        squares = sum(jnp.sum(g * g) for g in grads.values())
        factor = jnp.where(squares > CLIP * CLIP, CLIP / jnp.sqrt(squares), 1.0)
    rate, b1, b2, epsilon = rate_at(step), ADAMW["beta1"], ADAMW["beta2"], ADAMW["epsilon"]
    first, second, after = {}, {}, {}
    for name, g in grads.items():
        g = g * factor
        first[name] = b1 * moments[0][name] + (1 - b1) * g
        second[name] = b2 * moments[1][name] + (1 - b2) * g * g
        change = first[name] / (1 - b1 ** step) / (jnp.sqrt(second[name] / (1 - b2 ** step)) + epsilon)
        after[name] = params[name] - rate * (change + PARAMETERS[name][3] * params[name])
        after[name] = jax.lax.with_sharding_constraint(after[name], sharding(mesh, PARAMETERS[name][2]))
    return total, after, (first, second)
)py";

inline std::string jax_tables(const plan_view& view) {
  std::string out = "AXES = {";
  const mesh_shape& mesh = view.mesh();
  for (int a = 0; a < mesh.rank(); ++a)
    out.append(a > 0 ? ", \"" : "\"").append(mesh.axes[a].label.view()).append("\": ") += std::to_string(mesh.size(a));
  out += "}\nMICRO_BATCHES = " + std::to_string(view.micro_batches()) +
         "\nREAL, WIDE = " + (view.real_bytes() < 4 ? "jnp.bfloat16" : "jnp.float32") +
         ", jnp.float32\n\n# Shape in checkpoints, shape with compound dimensions apart, how it rests, its decay.\n"
         "PARAMETERS = {\n";
  std::string inputs = "# Shape, type, how it is given.\nINPUTS = {\n";
  for (const viewed_tensor& t : view.tensors()) {
    const value& v = view.value_of(t);
    if (!view.is_weight(t) && !view.is_input(t)) continue;
    const std::vector<long> apart(v.shape.begin(), v.shape.end());
    const viewed_form* const rest = t.resting();
    const std::string spec =
        "P(" + jax_spec(rest != nullptr ? rest->held : partition::replicated(v.rank()), mesh) + ")";
    if (view.is_input(t)) {
      inputs += "    \"" + t.name + "\": (" + python_shape(apart) + ", \"" +
                (v.type == element::index ? "int32" : "float32") + "\", " + spec + "),\n";
      continue;
    }
    const int update = view.update_of(t.value);
    const double decay = update >= 0 && view.g().at(update).scalars.size() > 4 ? view.g().at(update).scalars[4] : 0;
    out += "    \"" + t.name + "\": (" + python_shape(view.written_shape(t)) + ", " + python_shape(apart) + ", " +
           spec + ", " + python_number(decay) + "),\n";
  }
  return out + "}\n" + inputs + "}\n";
}

// How the weights are updated; nothing where that is not by AdamW.
inline std::string jax_optimizer(const plan_view& view, std::vector<std::string>& notes) {
  const graph& g = view.g();
  const operation* update = nullptr;
  double clip = 0;
  for (const operation& o : g.operations) {
    if (o.op->body == op_body::update && update == nullptr) update = &o;
    if (o.op->label == "clip_factor") clip = o.scalars[0];
  }
  if (update == nullptr || update->op->label != "adamw") {
    notes.emplace_back("weights are not updated by AdamW: a step of training is left out, the loss is here");
    return {};
  }
  if (is_lean(g[update->operands[2]].type))
    notes.emplace_back("moments of the optimizer take fewer than 32 bits in the plan; here they take 32");
  if (g.gradients != compression::none)
    notes.emplace_back("gradients are sent compressed in the plan; XLA sends them as they are");
  static constexpr const char* names[] = {"rate", "beta1", "beta2", "epsilon", "", "warmup", "steps", "last_rate"};
  std::string out;
  for (int s = 0; s < 8; ++s)
    if (s != 4) out += std::string(out.empty() ? "" : ", ") + names[s] + "=" + python_number(update->scalars[s]);
  return "ADAMW = dict(" + out + ")\nCLIP = " + python_number(clip) + "\n" + std::string(jax_training);
}

}  // namespace detail

/// Throws bad_input for a plan in stages and for operators whose form in jax.numpy is not known.
inline exported to_jax(const plan_view& view) {
  if (view.stages())
    throw bad_input("--to jax: the plan is in " + std::to_string(view.stages()->stages()) +
                    " stages, and a mesh of JAX holds every tensor on all its devices; take --to dot or --to megatron");
  const detail::jax_forward forward(view);
  exported out{{}, forward.notes};
  const std::string training = detail::jax_optimizer(view, out.approximations);
  out.text = "\"\"\"A plan for " + view.model() + ", written by cfp.\n\n";
  out.text +=
      "place_parameters and place_inputs put arrays on a mesh as the plan has them at rest; loss and train_step\n"
      "are to be compiled by jax.jit there, and hold every tensor as the plan does.\n";
  if (!out.approximations.empty())
    out.text += "Said otherwise than the plan has it:\n" + detail::as_comments(out.approximations, "- ");
  out.text += "\"\"\"" + std::string(detail::jax_begin) + detail::jax_tables(view) + std::string(detail::jax_placing) +
              std::string(detail::jax_helpers);
  if (forward.functors().draws) out.text += "\n" + std::string(detail::jax_dropout);
  if (forward.functors().used.count("handed") > 0) out.text += "\n" + std::string(detail::jax_handed);
  if (forward.functors().used.count("queue_places") > 0) out.text += "\n" + std::string(detail::jax_queue_places);
  for (const std::string& label : forward.functors().used)
    if (const auto* const o = detail::find_jax_operator(label))
      out.text.append("\n\ndef ").append(o->label).append(o->text);
  out.text +=
      "\n\ndef forward(params, inputs, mesh, seed, number):\n    def hold(x, *spec):\n        return "
      "jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))\n\n" +
      forward.body + "    return " + forward.loss() + "\n\n\n";
  if (!forward.anew.empty()) {
    out.text += "# Not kept for backward: computed or gathered again.\nANEW = [\n";
    for (const std::string& label : forward.anew) out.text += "    \"" + label + "\",\n";
    out.text += "]\n\n\n";
  }
  out.text += "def loss(params, inputs, mesh, seed=1, number=0):\n";
  out.text +=
      forward.anew.empty()
          ? "    return forward(params, inputs, mesh, seed, number)\n"
          : "    keeps = jax.checkpoint_policies.save_anything_except_these_names(*ANEW)\n"
            "    return jax.checkpoint(lambda p: forward(p, inputs, mesh, seed, number), policy=keeps)(params)\n";
  if (!training.empty()) out.text += "\n\n" + training;
  return out;
}

}  // namespace cfp
