"""jax_export.py CFP FOLDER: plans exported for JAX, compiled by XLA for 8 devices of a CPU and trained. Their losses are those of
cfp's own ranks from the same weights, and their collectives are ours, kind by kind and in bytes, but for what is said below. What
is written for Shardy and ONNX is read by their own parsers.

It makes itself an environment under FOLDER with JAX from PyPI; without Python's venv, or without the network, it says so and ends
with 77."""
import json, os, re, subprocess, sys

JAX = "jax>=0.6,<0.8"  # from 0.8 on what its compiler for CPUs fuses may crash when it runs


def skip(why):
    print(why)
    sys.exit(77)


def enter_environment(folder):
    """Goes on in an environment that has JAX, made if there is none."""
    python = os.path.join(folder, "venv", "bin", "python")
    if not os.path.exists(os.path.join(folder, "venv", "ready")):
        made = subprocess.run([sys.executable, "-m", "venv", os.path.join(folder, "venv")], capture_output=True)
        if made.returncode != 0: skip("Python makes no virtual environment here (python3-venv): plans for JAX are not compiled")
        got = subprocess.run([python, "-m", "pip", "install", "-q", "--retries", "1", "--disable-pip-version-check", JAX, "onnx>=1.18"], capture_output=True)
        if got.returncode != 0: skip("JAX and onnx cannot be had from PyPI here: plans for it are not compiled")
        open(os.path.join(folder, "venv", "ready"), "w").close()
    env = dict(os.environ, CFP_IN_VENV="1", JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0")
    sys.exit(subprocess.run([python] + sys.argv, env=env).returncode)


KINDS = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter", "all-to-all": "all_to_all",
         "collective-permute": "permute"}
WIDTH = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "f64": 8, "bf16": 2}


def together(line):
    """Devices of a group, in any of the three ways in which XLA writes groups."""
    listed = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
    if listed: return len(listed.group(1).split(","))
    counted = re.search(r"replica_groups=\[\d+,(\d+)\]", line)
    if counted: return int(counted.group(1))
    mesh, used = re.search(r"replica_groups=mesh\[([^\]]*)\].*?\{([^}]*)\}", line).groups()
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", mesh))
    return int(np.prod([int(part or sizes[axis]) for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", used)]))


def collectives_of(hlo):
    """Of each kind how many, and the bytes a device sends by the formulas of rings."""
    out = {}
    for line in hlo.splitlines():
        at = re.search(r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start)?\(", line)
        if not at: continue
        size = sum(WIDTH[t] * int(np.prod([int(n) for n in dims.split(",") if n])) for t, dims in
                   re.findall(r"(f32|s32|u32|pred|f64|bf16)\[([\d,]*)\]", at.group(1)))
        kind = at.group(2)
        n = 2 if kind == "collective-permute" else together(line)
        if n == 1: continue
        whole = {"all-reduce": 2 * (n - 1) / n * size, "all-gather": (n - 1) / n * size, "reduce-scatter": (n - 1) * size,
                 "all-to-all": (n - 1) / n * size, "collective-permute": size}[kind]
        count, sent = out.get(KINDS[kind], (0, 0))
        out[KINDS[kind]] = (count + 1, sent + whole)
    return out


def trained_by_xla(module, weights):
    mesh = module.make_mesh()
    params, moments = module.place_parameters(weights, mesh), module.place_moments(mesh)
    inputs = lambda step: [module.place_inputs({k: v for k, v in batch(step).items() if k in module.INPUTS}, mesh)]
    step = jax.jit(lambda p, m, b, n: module.train_step(p, m, b, n, mesh, SEED))
    compiled = step.lower(params, moments, inputs(1), jnp.int32(1)).compile()
    losses = []
    for n in range(1, STEPS + 1):
        loss, params, moments = compiled(params, moments, inputs(n), jnp.int32(n))
        losses.append(float(loss))
    return losses, collectives_of(compiled.as_text()), compiled


def expected(mine, apart):
    """What XLA makes of our collectives on a CPU. It has no reduce-scatter there, and sums whole: twice the bytes. And it sums each
    of the gradients of projections that read one tensor, which we add up first: `apart` bytes more."""
    sent = {kind: bytes_ for kind, (_, bytes_) in mine.items()}
    sent["all_reduce"] = sent.get("all_reduce", 0) + 2 * sent.pop("reduce_scatter", 0) + apart
    return sent


def check(model, name, plan, apart, *more):
    """The plan on our ranks and by XLA: losses and collectives of both; these alone are shown where `apart` is None."""
    ours, mine = program.trained(model, plan, *more)
    losses, theirs, compiled = trained_by_xla(program.exported(plan, "jax"), read_safetensors(model + ".safetensors"))
    if os.environ.get("CFP_KEEP_HLO"): open(f"{name}.hlo", "w").write(compiled.as_text())
    difference = max(abs(a - b) / abs(a) for a, b in zip(ours, losses))
    print(f"{name}: losses {ours[0]:.6f} -> {ours[-1]:.6f}, by XLA {losses[0]:.6f} -> {losses[-1]:.6f}, apart {difference:.1e}")
    if not difference < TOLERANCE: failures.append(f"{name}: losses are {difference:.1e} apart, at most {TOLERANCE:.0e}")
    wanted = expected(mine, apart or 0)
    for kind in sorted(set(mine) | set(theirs)):
        a, b, w = mine.get(kind, (0, 0)), theirs.get(kind, (0, 0)), wanted.get(kind, 0)
        print(f"  {kind:15} ours {a[0]:4} {a[1] / 1024:9.1f} KiB   expected of XLA {w / 1024:9.1f} KiB, is {b[0]:4} {b[1] / 1024:9.1f} KiB")
        if apart is not None and abs(b[1] - w) > 0.01 * (w or sum(wanted.values())):
            failures.append(f"{name}: of {kind} XLA sends {b[1]:.0f} bytes, not about {w:.0f}")


def parsed(plan, contains):
    """Of what is written for Shardy and ONNX their own parsers read all; Shardy's text has some words."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    import onnx
    program.run("export", plan, "--to", "shardy", "-o", "plan.mlir")
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True  # the operators of ours
    with context:
        module = ir.Module.parse(open("plan.mlir").read(), context)
        if not module.operation.verify(): failures.append(f"{plan}: Shardy refuses it")
        made = [str(o) for o in list(module.body.operations)[1].regions[0].blocks[0].operations]
    if contains not in open("plan.mlir").read(): failures.append(f"{plan}: there is no {contains} in it")
    program.run("export", plan, "--to", "onnx", "-o", "plan.onnx")
    model = onnx.load("plan.onnx")
    onnx.checker.check_model(model)
    if len(model.graph.node) < 40 or not all(n.device_configurations for n in model.graph.node):
        failures.append(f"{plan}: its ONNX model has nodes without devices")
    print(f"{plan}: Shardy reads {len(made)} operations, ONNX {len(model.graph.node)} nodes")


if __name__ == "__main__":
    cfp, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    if not os.environ.get("CFP_IN_VENV"): enter_environment(folder)
    import numpy as np
    import jax, jax.numpy as jnp
    from written_apart import read_safetensors
    from exported_plans import BATCH, FORCED, LAYERS, SEED, SEQ, STEPS, TOLERANCE, Program, batch
    os.chdir(folder)
    program = Program(cfp, folder, ["tiny_gpt.json", "tiny_llama.json"])
    failures = []
    # Of each layer of llama XLA sums gradients of three projections of attention and two of the MLP, of activations whole along one axis.
    whole = LAYERS * ((3 - 1) + (2 - 1)) * 2 * (2 - 1) / 2 * (BATCH // 2 * SEQ * 64 * 4)
    for model, forms in (("tiny_gpt", {"tensor": 0, "zero": 0}), ("tiny_llama", {"tensor_sequence": whole})):
        found = f"{model}_found.json"
        program.plan(model + ".json", found)
        check(model + ".json", f"{model} found", found, 0)
        for name, apart in forms.items():
            program.forced(found, FORCED[name], f"{model}_{name}.json")
            check(model + ".json", f"{model} {name}", f"{model}_{name}.json", apart)
    program.plan(model + ".json", "recomputed.json", "--recompute", "all")
    check(model + ".json", f"{model} recomputed", "recomputed.json", 0)
    # Pairs of neighbours that turn, by frequencies slowed as in Llama 3.1.
    turned = json.load(open("tiny_llama.json")) | {"model_type": "cohere", "layer_norm_eps": 1e-5, "logit_scale": 0.5, "tie_word_embeddings": True,
                                                   "rope_scaling": {"rope_type": "llama3", "factor": 4, "low_freq_factor": 1, "high_freq_factor": 4,
                                                                    "original_max_position_embeddings": 16}}
    turned.pop("rms_norm_eps")
    json.dump(turned, open("turned.json", "w"))
    program.plan("turned.json", "turned_found.json")
    program.forced("turned_found.json", FORCED["tensor"], "turned_tensor.json")
    check("turned.json", "slowed pairs, tensor", "turned_tensor.json", 0)
    # Keys and values that go from piece to piece, which XLA makes of moves along a dimension in its own way.
    program.plan("tiny_llama.json", "pieces_found.json", "--pieces", "4")
    program.forced("pieces_found.json", FORCED["pieces"], "pieces.json")
    if "=pieces" not in open("pieces.json").read(): failures.append("no axis splits the pieces of a sequence")
    check("tiny_llama.json", "llama in pieces", "pieces.json", None, "--pieces", "4")
    parsed("pieces.json", "permutation={")
    parsed("tiny_llama_tensor_sequence.json", "sdy.reshard")
    for why in failures: print("FAILED:", why)
    sys.exit(1 if failures else 0)
