"""jax_export.py CFP FOLDER [PLAN...]: plans exported for JAX, compiled by XLA for 8 devices of a CPU and trained: their losses are
those of cfp's own ranks from the same weights, and their collectives are held against ours, kind by kind.

It makes itself an environment under FOLDER with JAX from PyPI; without Python's venv, or without the network, it says so and ends
with 77."""
import importlib.util, json, os, re, struct, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS, SEQ, BATCH, SEED = 5, 32, 8, 7
JAX = "jax>=0.6,<0.8"  # from 0.8 on what its compiler for CPUs fuses may crash when it runs
TEXT = bytes((37 * i * i + 11 * i + 5) % 251 for i in range(20 * SEQ))
# Of one step a loss in float32 on one rank and on several differ by 1e-6 of itself; five steps let that grow.
TOLERANCE = 2e-5


def skip(why):
    print(why)
    sys.exit(77)


def enter_environment(folder):
    """Goes on in an environment that has JAX, made if there is none."""
    python = os.path.join(folder, "venv", "bin", "python")
    if not os.path.exists(os.path.join(folder, "venv", "ready")):
        made = subprocess.run([sys.executable, "-m", "venv", os.path.join(folder, "venv")], capture_output=True)
        if made.returncode != 0: skip("Python makes no virtual environment here (python3-venv): plans for JAX are not compiled")
        got = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", JAX], capture_output=True)
        if got.returncode != 0: skip("JAX cannot be had from PyPI here: plans for it are not compiled")
        open(os.path.join(folder, "venv", "ready"), "w").close()
    env = dict(os.environ, CFP_IN_VENV="1", JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=8")
    sys.exit(subprocess.run([python] + sys.argv, env=env).returncode)


def run(*command, fails=False):
    said = subprocess.run([cfp, *command], capture_output=True, text=True, cwd=folder)
    if not fails and said.returncode != 0:
        sys.exit(f"FAILED: cfp {' '.join(command)}: {said.stderr}")
    return said.stderr.strip() if fails else said.stdout


# What people do: what each axis splits, best first, and how tensors between parts are held.
FORCED = {
    "tensor": ({"data": ["batch"], "model": ["heads", "hidden", "kv_heads", "vocabulary", "-"]},
               ["batch:data", "vocabulary:model", "replicated"]),
    "tensor_sequence": ({"data": ["batch"], "model": ["heads>sequence", "hidden>sequence", "vocabulary>sequence", "heads", "hidden",
                                                      "kv_heads", "vocabulary", "sequence", "-"]},
                        ["batch:data sequence:model", "sequence:model batch:data", "batch:data", "vocabulary:model", "replicated"]),
    "zero": ({"data": ["batch/scattered", "batch", "-"], "model": ["batch/scattered", "batch", "-"]},
             ["batch:data batch:model", "vocabulary:data vocabulary:model", "replicated"]),
}


def forced(found, wishes, path):
    """The plan in which each decision is the first of the wishes that it can be; what it can, the program says."""
    plan = json.load(open(found))
    of_axes, between = wishes
    texts = [""]
    for axis in plan["mesh"]:
        texts = [f"{t} {axis}={w}".strip() for t in texts for w in of_axes[axis]]
    wished = lambda name: texts if name.startswith("strategy of ") else between
    kind = lambda name: re.sub(r"\d+", "*", name)  # layers are alike
    at = {kind(n): 0 for n in plan["decisions"]}
    was = dict(plan["decisions"])
    while True:
        for name in plan["decisions"]:
            n = at[kind(name)]
            plan["decisions"][name] = wished(name)[n] if n < len(wished(name)) else was[name]
        json.dump(plan, open(path, "w"))
        said = run("export", path, "--to", "jax", "-o", path + ".py", fails=True)
        no = re.search(r"'(.*?)' has no choice", said)
        if not no: return
        at[kind(no.group(1))] += 1


def read_safetensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = np.frombuffer(data[8 + size + a:8 + size + b], "<f4").reshape(t["shape"])
    return out


def philox(counter, key):  # Philox4x32-10, Salmon et al. 2011
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return c


def batch(number):  # as cfp cuts them from a text
    rows = [philox([number * BATCH + r, 0, 0, 0], [SEED, 0])[0] % (len(TEXT) - SEQ) for r in range(BATCH)]
    cut = lambda shift: np.array([list(TEXT[p + shift:p + shift + SEQ]) for p in rows], np.int32)
    return {"tokens": cut(0), "targets": cut(1), "positions": np.arange(SEQ, dtype=np.int32)}


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


def our_collectives(path):
    out = {}
    for one in json.load(open(path))["collectives"]:
        count, sent = out.get(one["collective"], (0, 0))
        out[one["collective"]] = (count + 1, sent + one["bytes_sent"])
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


def check(model, name, plan):
    """The plan on our ranks and by XLA: losses and collectives of both."""
    sizes = json.load(open(plan))["mesh"]
    where = ["--model", model, "--layers", "2", "--batch", str(BATCH), "--seq", str(SEQ), "--mesh", ",".join(f"{a}={n}" for a, n in sizes.items())]
    how = ["--text", "text.bin", "--seed", str(SEED), "--plan", plan]
    run("train", *where, *how, "--steps", "0", "--save-state", "state.safetensors")
    run("train", *where, *how, "--steps", str(STEPS), "--summary", "summary.json")
    run("export", *where, "--plan", plan, "--save-plan", "ours.json")
    said = run("export", plan, "--to", "jax", "-o", "exported.py")
    ours = json.load(open("summary.json"))["training"]["loss"]
    spec = importlib.util.spec_from_file_location("exported", os.path.abspath("exported.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    losses, theirs, compiled = trained_by_xla(module, read_safetensors("state.safetensors"))
    if os.environ.get("CFP_KEEP_HLO"): open(f"{name}.hlo", "w").write(compiled.as_text())
    apart = max(abs(a - b) / abs(a) for a, b in zip(ours, losses))
    print(f"{name}: losses {ours[0]:.6f} -> {ours[-1]:.6f}, by XLA {losses[0]:.6f} -> {losses[-1]:.6f}, apart {apart:.1e}")
    mine = our_collectives("ours.json")
    for kind in sorted(set(mine) | set(theirs)):
        a, b = mine.get(kind, (0, 0)), theirs.get(kind, (0, 0))
        print(f"  {kind:15} ours {a[0]:4} {a[1] / 1024:9.1f} KiB   by XLA {b[0]:4} {b[1] / 1024:9.1f} KiB")
    return apart, mine, theirs


if __name__ == "__main__":
    cfp, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    if not os.environ.get("CFP_IN_VENV"): enter_environment(folder)
    import numpy as np
    import jax, jax.numpy as jnp
    os.chdir(folder)
    open("text.bin", "wb").write(TEXT)
    for model in ("tiny_gpt.json", "tiny_llama.json"):
        open(model, "w").write(open(os.path.join(HERE, model)).read())
    failed = False
    for model, names in (("tiny_gpt", ["tensor", "zero"]), ("tiny_llama", ["tensor_sequence"])):
        found = f"{model}_found.json"
        run("plan", "--model", model + ".json", "--layers", "2", "--machine", "a100-8", "--mesh", "data=2,model=2", "--type", "float32", "--batch",
            str(BATCH), "--seq", str(SEQ), "--save-plan", found)
        plans = {"found": found}
        for name in names:
            plans[name] = f"{model}_{name}.json"
            forced(found, FORCED[name], plans[name])
        for name, plan in plans.items():
            apart, mine, theirs = check(model + ".json", f"{model} {name}", plan)
            if not apart < TOLERANCE: failed = True; print(f"FAILED: {model} {name}: losses are {apart:.1e} apart, at most {TOLERANCE:.0e}")
    sys.exit(failed)
