"""What tests of exported plans share: a small training, the plans that people write by hand, what our ranks lose and send under one."""
import importlib.util, json, os, re, subprocess, sys

STEPS, SEQ, BATCH, LAYERS, SEED = 5, 32, 8, 2, 7
TEXT = bytes((37 * i * i + 11 * i + 5) % 251 for i in range(20 * SEQ))
# Of one step a loss in float32 on one rank and on several differ by 1e-6 of itself; five steps let that grow.
TOLERANCE = 2e-5


# What people do: what each axis splits, best first, and how tensors between parts are held.
FORCED = {
    "tensor": ({"data": ["batch"], "model": ["heads", "hidden", "kv_heads", "vocabulary", "-"]},
               ["batch:data", "vocabulary:model", "replicated"]),
    "tensor_sequence": ({"data": ["batch"], "model": ["heads>sequence", "hidden>sequence", "vocabulary>sequence", "heads", "hidden",
                                                      "kv_heads", "vocabulary", "sequence", "-"]},
                        ["batch:data sequence:model", "sequence:model batch:data", "batch:data", "vocabulary:model", "replicated"]),
    "pieces": ({"data": ["batch", "-"], "model": ["pieces", "vocabulary", "-"]},
               ["batch:data pieces:model", "pieces:model batch:data", "batch:data", "vocabulary:model", "replicated"]),
    "zero": ({"data": ["batch/scattered", "batch", "-"], "model": ["batch/scattered", "batch", "-"]},
             ["batch:data batch:model", "vocabulary:data vocabulary:model", "replicated"]),
}


class Program:
    """cfp in a folder, which has the text and the models."""

    def __init__(self, cfp, folder, models):
        self.cfp, self.folder = cfp, folder
        with open(os.path.join(folder, "text.bin"), "wb") as f: f.write(TEXT)
        for model in models:
            with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), model)) as f, open(os.path.join(folder, model), "w") as to:
                to.write(f.read())

    def run(self, *command, fails=False):
        said = subprocess.run([self.cfp, *command], capture_output=True, text=True, cwd=self.folder)
        if not fails and said.returncode != 0:
            sys.exit(f"FAILED: cfp {' '.join(command)}: {said.stderr}")
        return said.stderr.strip() if fails else said.stdout

    def plan(self, model, path, *more):
        """The one found, of layers in float32 on 2 x 2 devices of a machine with eight."""
        self.run("plan", "--model", model, "--layers", str(LAYERS), "--machine", "a100-8", "--mesh", "data=2,model=2",
                 "--type", "float32", "--batch", str(BATCH), "--seq", str(SEQ), "--save-plan", path, *more)

    def forced(self, found, wishes, path):
        """The plan in which each decision is the first of the wishes that it can be; what it can, the program says."""
        plan = json.load(open(os.path.join(self.folder, found)))
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
            json.dump(plan, open(os.path.join(self.folder, path), "w"))
            said = self.run("export", path, "--to", "jax", "-o", "forced.py", fails=True)
            no = re.search(r"'(.*?)' has no choice", said)
            if not no: return
            at[kind(no.group(1))] += 1

    def trained(self, model, plan, *more):
        """Losses of our ranks under a plan, and the collectives of a step: of each kind how many, and the bytes a rank sends. The weights
        it begins with lie in a file named after the model."""
        mesh = ",".join(f"{a}={n}" for a, n in json.load(open(os.path.join(self.folder, plan)))["mesh"].items())
        train = ["train", "--model", model, "--layers", str(LAYERS), "--batch", str(BATCH), "--seq", str(SEQ), "--mesh", mesh,
                 "--text", "text.bin", "--seed", str(SEED), "--plan", plan, *more]
        self.run(*train, "--steps", str(STEPS), "--summary", "summary.json", "--save-plan", "ours.json")
        if not os.path.exists(os.path.join(self.folder, model + ".safetensors")):
            self.run(*train, "--steps", "0", "--save-state", model + ".safetensors")
        sent = {}
        for one in json.load(open(os.path.join(self.folder, "ours.json")))["collectives"]:
            count, bytes_ = sent.get(one["collective"], (0, 0))
            sent[one["collective"]] = (count + 1, bytes_ + one["bytes_sent"])
        return json.load(open(os.path.join(self.folder, "summary.json")))["training"]["loss"], sent

    def exported(self, plan, target):
        """The Python that a plan is written as, as a module."""
        path = os.path.join(self.folder, plan + "_" + target + ".py")
        self.run("export", plan, "--to", target, "-o", path)
        spec = importlib.util.spec_from_file_location("exported", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def batch(number):  # as cfp cuts them from a text
    import numpy as np
    from written_apart import philox
    rows = [philox([number * BATCH + r, 0, 0, 0], [SEED, 0])[0] % (len(TEXT) - SEQ) for r in range(BATCH)]
    cut = lambda shift: np.array([list(TEXT[p + shift:p + shift + SEQ]) for p in rows], np.int32)
    return {"tokens": cut(0), "targets": cut(1), "positions": np.arange(SEQ, dtype=np.int32)}
