"""graphs.py CFP FOLDER: models written by the package onnx and, where it is there, by JAX. What cfp trains them to is what
onnx.reference and JAX compute of the same weights and inputs; what it says an operator may be split by is held to the
operator run in pieces. Exit code 77 without onnx."""
import json, math, os, re, subprocess, sys

try:
    import numpy as np, onnx
    from onnx import TensorProto as T, helper as h, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as e:
    print(f"what graphs compute is not compared: {e} (pip install onnx)")
    sys.exit(77)

from written_apart import philox, read_safetensors

cfp, folder = sys.argv[1], sys.argv[2]
os.makedirs(folder, exist_ok=True)
LAYERS, BATCH, SEQ, WIDTH, HEADS, HIDDEN, WORDS, SEED = 2, 4, 8, 32, 4, 64, 48, 3
failed = 0


def check(holds, what):
    global failed
    if not holds:
        print("does not hold: " + what)
        failed += 1


def indices(step, number, shape, below):  # what input `number` holds in a step
    count = math.prod(shape)
    words = [w for i in range((count + 3) // 4) for w in philox([i, 0, step << 16 | number, 0], [SEED, 0])]
    return np.array([w % below for w in words[:count]], np.int64).reshape(shape)


def run(*words):
    done = subprocess.run([cfp, *words], capture_output=True, text=True)
    check(done.returncode == 0, f"cfp {' '.join(words)} ends with {done.returncode}: {done.stderr}{done.stdout[-500:]}")
    return done.stdout


def trained(model, *more):
    """The loss of the first step, weights after it, and the loss of the second."""
    state, summary = os.path.join(folder, "state.safetensors"), os.path.join(folder, "summary.json")
    common = ["train", "--model", model, "--mesh", "data=2", "--profile-mode", "lazy", "--seed", str(SEED),
              "--schedule", "0,0", "--summary", summary, *more]
    losses = []
    for extra in (["--save-state", state], ["--load-state", state]):
        run(*common, "--steps", "1", *extra)
        losses += json.load(open(summary))["training"]["loss"]
    return losses[0], read_safetensors(state), losses[1]


def near(x, y, what):
    check(abs(x - y) <= 1e-5 * abs(y), f"{what}: cfp says {x}, the reference {y}")


class writer:
    def __init__(self):
        self.nodes, self.tensors, self.random = [], [], np.random.default_rng(0)

    def weight(self, name, *shape, scale=0.3):
        return self.tensor(name, (self.random.standard_normal(shape) * scale).astype(np.float32))

    def tensor(self, name, value):
        self.tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op, ins, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(h.make_node(op, ins, [name], name=name, **attributes))
        return name

    def save(self, path, inputs, output, shape):
        graph = h.make_graph(self.nodes, "graph", inputs, [h.make_tensor_value_info(output, T.FLOAT, shape)], self.tensors)
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)])
        onnx.checker.check_model(model)
        onnx.save(model, path)
        return model


def transformer(path, whole):
    """Norms, GELU and masks as one operator each, or taken apart as old exporters do."""
    w = writer()
    number = lambda x: w.tensor(f"number_{len(w.tensors)}", np.array(x, np.float32))
    integers = lambda *x: w.tensor(f"integers_{len(w.tensors)}", np.array(x, np.int64))

    def norm(x, name):
        scale, shift = w.weight(name + ".weight", WIDTH), w.weight(name + ".bias", WIDTH)
        if whole:
            return w.node("LayerNormalization", [x, scale, shift], axis=-1, epsilon=1e-5)
        less = w.node("Sub", [x, w.node("ReduceMean", [x, integers(-1)])])
        square = w.node("ReduceMean", [w.node("Pow", [less, number(2)]), integers(-1)])
        normal = w.node("Div", [less, w.node("Sqrt", [w.node("Add", [square, number(1e-5)])])])
        return w.node("Add", [w.node("Mul", [normal, scale]), shift])

    def linear(x, name, n, m):
        return w.node("Add", [w.node("MatMul", [x, w.weight(name + ".weight", n, m)]), w.weight(name + ".bias", m)])

    def gelu(x):
        if whole:
            return w.node("Gelu", [x], approximate="tanh")
        half = w.node("Mul", [x, w.node("Add", [w.node("Erf", [w.node("Div", [x, number(math.sqrt(2))])]), number(1)])])
        return w.node("Mul", [half, number(0.5)])

    x = w.node("Add", [w.node("Gather", [w.weight("words", WORDS, WIDTH), "tokens"]),
                       w.node("Gather", [w.weight("positions", SEQ, WIDTH), integers(*range(SEQ))])])
    for l in range(LAYERS):
        y = norm(x, f"h.{l}.ln_1")
        shape = w.node("Shape", [y])
        size = lambda d: w.node("Unsqueeze", [w.node("Gather", [shape, w.tensor(f"d{l}_{d}_{len(w.tensors)}", np.int64(d))]), integers(0)])
        heads = w.node("Concat", [size(0), size(1), integers(HEADS, WIDTH // HEADS)], axis=0)
        part = lambda name, order: w.node("Transpose", [w.node("Reshape", [linear(y, f"h.{l}.{name}", WIDTH, WIDTH), heads])], perm=order)
        scores = w.node("MatMul", [part("q", [0, 2, 1, 3]), part("k", [0, 2, 3, 1])])
        scores = w.node("Div", [scores, number(math.sqrt(WIDTH / HEADS))])
        if not whole:
            scores = w.node("Where", [w.tensor(f"seen_{l}", np.tril(np.ones((SEQ, SEQ), bool))), scores, number(-1e30)])
        both = w.node("MatMul", [w.node("Softmax", [scores]), part("v", [0, 2, 1, 3])])
        merged = w.node("Reshape", [w.node("Transpose", [both], perm=[0, 2, 1, 3]), integers(0, 0, WIDTH)])
        x = w.node("Add", [x, linear(merged, f"h.{l}.proj", WIDTH, WIDTH)])
        x = w.node("Add", [x, linear(gelu(linear(norm(x, f"h.{l}.ln_2"), f"h.{l}.up", WIDTH, HIDDEN)), f"h.{l}.down", HIDDEN, WIDTH)])
    logits = w.node("MatMul", [norm(x, "ln_f"), w.weight("head", WIDTH, WORDS)])
    loss = w.node("SoftmaxCrossEntropyLoss", [w.node("Transpose", [logits], perm=[0, 2, 1]), "targets"], reduction="mean")
    inputs = [h.make_tensor_value_info(name, T.INT64, ["batch", "seq"]) for name in ("tokens", "targets")]
    return w.save(path, inputs, loss, [])


def against_onnx():
    for whole in (True, False):
        path = os.path.join(folder, "block.onnx" if whole else "taken_apart.onnx")
        model = transformer(path, whole)

        def loss(step):
            feed = {name: indices(step, n, (BATCH, SEQ), WORDS) for n, name in enumerate(("tokens", "targets"))}
            return float(ReferenceEvaluator(model).run(None, feed)[0])

        first, weights, second = trained(path, "--batch", str(BATCH), "--seq", str(SEQ))
        near(first, loss(1), path + ", the file's own weights")
        for t in model.graph.initializer:
            if t.name in weights:
                t.CopyFrom(numpy_helper.from_array(weights[t.name], t.name))
        near(second, loss(2), path + ", after a step")
        check(abs(first - second) > 1e-4, "a step changes the loss")


def against_jax():
    try:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax, jax.numpy as jnp
    except ImportError:
        print("what HLO modules compute is not compared: there is no JAX (pip install jax)")
        return
    jax.config.update("jax_default_matmul_precision", "highest")

    def norm(x, p):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * p["w"] + p["b"]

    def loss(p, tokens, targets):
        x = p["words"][tokens] + p["positions"][None]
        for l in range(LAYERS):
            q = p[f"h{l}"]
            parts = jnp.split(norm(x, q["ln_1"]) @ q["qkv"], 3, -1)
            a, b, c = (t.reshape(BATCH, SEQ, HEADS, WIDTH // HEADS) for t in parts)
            scores = jnp.einsum("bqhd,bkhd->bhqk", a, b) / math.sqrt(WIDTH / HEADS)
            scores = jnp.where(jnp.tril(jnp.ones((SEQ, SEQ), bool)), scores, -1e30)
            both = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), c).reshape(BATCH, SEQ, WIDTH)
            x = x + both @ q["proj"]
            x = x + jax.nn.gelu(norm(x, q["ln_2"]) @ q["up"] + q["bias"]) @ q["down"]
        logs = jax.nn.log_softmax(norm(x, p["ln_f"]) @ p["head"], -1)
        return -jnp.mean(jnp.take_along_axis(logs, targets[..., None], -1))

    n, v = (lambda: {"w": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}), (lambda *s: jnp.zeros(s))
    p = {"words": v(WORDS, WIDTH), "positions": v(SEQ, WIDTH), "ln_f": n(), "head": v(WIDTH, WORDS)}
    for l in range(LAYERS):
        p[f"h{l}"] = {"ln_1": n(), "qkv": v(WIDTH, 3 * WIDTH), "proj": v(WIDTH, WIDTH), "ln_2": n(),
                      "up": v(WIDTH, HIDDEN), "bias": v(HIDDEN), "down": v(HIDDEN, WIDTH)}
    t = jnp.zeros((BATCH, SEQ), jnp.int32)
    path = os.path.join(folder, "gpt.hlo")
    open(path, "wb").write(jax.jit(loss).lower(p, t, t).compiler_ir("hlo").as_serialized_hlo_module_proto())
    _, weights, second = trained(path)
    named = {"p" + jax.tree_util.keystr(key): key for key, _ in jax.tree_util.tree_leaves_with_path(p)}
    check(set(weights) >= set(named), f"parameters are called {sorted(named)}, the state has {sorted(weights)}")
    filled = jax.tree_util.tree_map_with_path(lambda key, leaf: jnp.array(weights["p" + jax.tree_util.keystr(key)]), p)
    feed = [indices(2, number, (BATCH, SEQ), WORDS).astype(np.int32) for number in (0, 1)]
    near(second, float(jax.jit(loss)(filled, *feed)), path + ", after a step")
    says = run("analyse", "--model", path, "--mesh", "data=2", "--rules")
    for op in ("masked_softmax", "layer_norm", "gelu", "lookup"):
        check(f": {op} \"" in says, f"{path}: no {op} is found in it")


def pieces(rule, sizes, ins, run_node, says_sizes):
    """Holds what a rule lets be split to the operator run in halves; `says_sizes`: constants of the node may not fit them."""
    left, _, marks = rule.partition(";")
    factors = []
    of = lambda text: [[d.strip("()").split() for d in re.findall(r"\([^)]*\)|\S+", t)] for t in text.split(",")]
    operands, results = (of(side) for side in left.split("->"))
    for t in operands + results:
        for d in t:
            factors += [f for f in d if f not in factors]
    size = dict(zip(factors, sizes))
    stays = set(w for m in marks.split(";") for w in m.split()[1:])
    whole = run_node(ins)
    split = 0
    for f in factors:
        if f in stays or size[f] % 2 != 0:
            continue
        # Only what is a dimension of its own, or the major part of one, lies in halves.
        place = lambda t: next((k for k, d in enumerate(t) if f in d), None)
        majors = all(f not in d or d[0] == f for t in operands + results for d in t)
        if not majors:
            continue
        halves = []
        for part in (0, 1):
            cut = []
            for x, t in zip(ins, operands):
                at = place(t)
                cut.append(x if at is None else np.split(x, 2, at)[part])
            try:
                halves.append(run_node(cut))
            except ValueError:
                if not says_sizes:
                    raise
        if len(halves) < 2:
            continue
        at = place(results[0])
        together = sum(halves) if at is None else np.concatenate(halves, at)
        if says_sizes and together.shape != whole.shape:
            continue
        check(together.shape == whole.shape and np.allclose(together, whole, atol=1e-5), f"'{rule}' may be split by {f}")
        split += 1
    return split


def against_pieces():
    f = lambda *shape: ("float", shape)
    cases = [
        ("MatMul", [f(2, 6, 4), f(4, 8)], {}, [], 4), ("MatMul", [f(2, 4, 6, 8), f(4, 8, 2)], {}, [], 5),
        ("Gemm", [f(4, 6), f(8, 4)], {"transA": 1, "transB": 1}, [], 3), ("Einsum", [f(4, 6), f(2, 6)], {"equation": "ab,cb->ca"}, [], 3),
        ("Add", [f(4, 6, 8), f(6, 1)], {}, [], 3), ("Mul", [f(4, 6), f(4, 6)], {}, [], 2), ("Div", [f(4, 6), f(6)], {}, [], 2),
        ("Sub", [f(4, 6), f(4, 1)], {}, [], 2), ("Max", [f(4, 6), f(6)], {}, [], 2), ("Abs", [f(4, 6)], {}, [], 2),
        ("Floor", [f(4, 6)], {}, [], 2), ("Elu", [f(4, 6)], {"alpha": 0.5}, [], 2), ("Softplus", [f(4, 6)], {}, [], 2),
        ("Transpose", [f(4, 6, 8)], {"perm": [2, 0, 1]}, [], 3), ("ReduceSum", [f(4, 6, 8)], {"keepdims": 0}, [[1]], 3),
        ("ReduceMax", [f(4, 6, 8)], {"keepdims": 0}, [[2]], 2), ("Concat", [f(4, 6), f(4, 2)], {"axis": 1}, [], 1),
        ("Concat", [f(4, 6), f(2, 6)], {"axis": 0}, [], 1), ("Slice", [f(4, 9)], {}, [[1], [3], [1]], 1),
        ("Conv", [f(4, 6, 8), f(2, 6, 3)], {}, [], 3), ("Conv", [f(2, 4, 8, 8), f(6, 4, 3, 3)], {"strides": [2, 2]}, [], 3),
        ("Conv", [f(2, 4, 8), f(6, 2, 3)], {"group": 2}, [], 1), ("Reshape", [f(4, 8, 6)], {}, [[0, -1, 4, 6]], 2),
        ("Reshape", [f(4, 6)], {}, [[6, 4]], 0), ("Slice", [f(4, 12)], {}, [[0], [12], [1], [3]], 1)]
    for op, ins, attributes, more, least in cases:
        w = writer()
        names = [f"x{i}" for i in range(len(ins))]
        arrays = [w.random.standard_normal(shape).astype(np.float32) for _, shape in ins]
        scale = w.weight("scale", 1)
        scaled = w.node("Mul", [names[0], scale])
        constants = [w.tensor(f"c{i}", np.array(c, np.int64)) for i, c in enumerate(more)]
        out = w.node(op, [scaled] + names[1:] + constants, **attributes)
        node = h.make_node(op, names + constants, ["y"], **attributes)
        single = h.make_model(h.make_graph([node], "one", [h.make_tensor_value_info(x, T.FLOAT, None) for x in names],
                                           [h.make_tensor_value_info("y", T.FLOAT, None)], w.tensors[1:]),
                              opset_imports=[h.make_opsetid("", 20)])
        result = ReferenceEvaluator(single).run(None, dict(zip(names, arrays)))[0]
        path = os.path.join(folder, "one.onnx")
        w.save(path, [h.make_tensor_value_info(x, T.FLOAT, s) for x, (_, s) in zip(names, ins)], out, result.shape)
        lines = [re.match(r'rule (\S+): \S+ "(.*)"(.*)', l) for l in run("analyse", "--model", path, "--mesh", "data=2", "--rules").splitlines()]
        rules = [m for m in lines if m and m[1] in (out, out + ".rearrange", "loss.rearrange")]
        check(len(rules) == 1, f"{op}: one rule is said, not {len(rules)}")
        if len(rules) != 1:
            continue
        sizes = [int(n) for n in rules[0][3].split()]

        def run_node(parts):
            return ReferenceEvaluator(single).run(None, dict(zip(names, parts)))[0]

        check(pieces(rules[0][2], sizes, arrays, run_node, op == "Reshape") >= least, f"{op}: '{rules[0][2]}' lets {least} factors be split")


against_pieces()
against_onnx()
against_jax()
print("graphs: all that is compared agrees" if not failed else f"graphs: {failed} do not hold")
sys.exit(1 if failed else 0)
