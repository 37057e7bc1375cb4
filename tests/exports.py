"""exports.py CFP FOLDER: what plans are exported to is what is known of them: plans whose every form people know are written for
each target and held against lines written by hand, read as Python, JSON, protobuf and GraphViz; and bad input ends in a sentence."""
import ast, json, os, re, shutil, subprocess, sys
from exported_plans import FORCED, Program

cfp, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
os.makedirs(folder, exist_ok=True)
os.chdir(folder)
program = Program(cfp, folder, ["tiny_gpt.json", "tiny_llama.json"])
failures = []


def export(plan, to, out, *more):
    said = subprocess.run([cfp, "export", plan, "--to", to, "-o", out, *more], capture_output=True, text=True)
    if said.returncode != 0: sys.exit(f"FAILED: {plan} to {to}: {said.stderr}")
    return open(out, "rb").read().decode("latin-1"), said.stderr


def holds(what, text, *lines):
    for line in lines:
        if line not in text: failures.append(f"{what} lacks {line!r}")


def lacks(what, text, *lines):
    for line in lines:
        if line in text: failures.append(f"{what} has {line!r}")


def refused(words, *command):
    """Exit code 2, one sentence, nothing written."""
    for path in ("out", "kept"): open(path, "w").write("untouched")
    said = subprocess.run([cfp, *command], capture_output=True, text=True)
    if said.returncode != 2 or words not in said.stderr or said.stderr.count("\n") != 1 or said.stdout:
        failures.append(f"cfp {' '.join(command)}: exit code {said.returncode}, wanted 2 and {words!r}: {said.stderr}")
    if open("out").read() + open("kept").read() != "untouched" * 2 or os.path.exists("out.new"):
        failures.append(f"cfp {' '.join(command)}: left something")


def fields(data):
    """The fields of a protobuf message, as (number, value)."""
    at, out = 0, []
    def varint():
        nonlocal at
        n = shift = 0
        while True:
            b = data[at]
            at, n, shift = at + 1, n | (b & 127) << shift, shift + 7
            if b < 128: return n
    while at < len(data):
        key = varint()
        if key & 7 == 0: out.append((key >> 3, varint()))
        elif key & 7 == 2:
            size = varint()
            out.append((key >> 3, data[at:at + size]))
            at += size
        else: sys.exit(f"FAILED: a field of wire type {key & 7}")
    return out


def of(message, number): return [v for n, v in fields(message) if n == number]


def onnx_sharding(path, node, tensor):
    """Devices, groups and dimensions (parts and shards) of a tensor at a node."""
    graph, = of(open(path, "rb").read(), 7)
    for n in of(graph, 1):
        if of(n, 3) != [node.encode()]: continue
        for spec in of(of(n, 10)[0], 2):
            if of(spec, 1) == [tensor.encode()]:
                groups = {of(g, 1)[0]: of(g, 2) for g in of(spec, 3)}
                dims = [[(of(s, 1)[0], of(s, 3)[0]) for s in of(d, 2)] for d in of(spec, 4)]
                return of(spec, 2), groups, dims
    return None


for model in ("tiny_gpt", "tiny_llama"): program.plan(model + ".json", f"{model}.plan")
program.forced("tiny_gpt.plan", FORCED["tensor"], "tensor.plan")
program.forced("tiny_gpt.plan", FORCED["zero"], "zero.plan")
program.forced("tiny_llama.plan", FORCED["tensor_sequence"], "sequence.plan")

# JAX: a compound dimension apart, the interior of attention and MLP held, a lookup split by vocabulary in two steps.
text, said = export("tensor.plan", "jax", "tensor.py")
compile(text, "tensor.py", "exec")
holds("tensor.py", text, 'AXES = {"data": 2, "model": 2}',
      '"h.0.attn.c_attn.weight": ((64, 192), (64, 3, 4, 16), P(None, None, "model", None), 0.1),',
      '"h.0.mlp.c_proj.weight": ((256, 64), (256, 64), P("model", None), 0.1),', '"tokens": ((8, 32), "int32", P("data", None)),',
      'wte_lookup = hold(wte_lookup, "data", None, None)', 'h_0_attn_scores = hold(h_0_attn_scores, "data", "model", None, None)',
      'h_0_mlp_c_fc_linear = hold(h_0_mlp_c_fc_linear, "data", None, "model")',
      'h_0_mlp_c_proj_linear_read = hold(h_0_mlp_c_proj_linear, "data", None, None)')
# What is left as parts of a sum has no form of its own; two tensors of one label are two.
lacks("tensor.py", text, "h_0_mlp_c_proj_linear = hold(", "checkpoint_name(")
holds("tensor.py", text, 'h_0_attn_c_attn_bias = params["h.0.attn.c_attn.bias"]', "h_0_attn_c_attn_bias_2 = h_0_attn_c_attn_linear + ")
holds("what is said of JAX", said, "--to jax: a PartitionSpec has no word for parts of sums")
text, _ = export("sequence.plan", "jax", "sequence.py")
holds("sequence.py", text, 'model_embed_tokens_lookup = hold(model_embed_tokens_lookup, "data", None, None)',
      'model_embed_tokens_lookup_read = hold(model_embed_tokens_lookup, "data", "model", None)')

# Operators of other families: functions are called with as many arguments as they have.
for model in ("gpt-j-6b", "command-r", "llama-3.1-8b", "dbrx", "deepseek-v2-lite", "vit-base"):
    program.run("plan", "--model", model, "--layers", "2", "--machine", "a100-8", "--mesh", "x=2", "--batch", "2",
                *([] if model == "vit-base" else ["--seq", "32"]), "--save-plan", "family.plan")
    tree = ast.parse(export("family.plan", "jax", "family.py")[0])
    takes = {f.name: len(f.args.args) - len(f.args.defaults) for f in tree.body if isinstance(f, ast.FunctionDef)}
    calls = [(c.func.id, len(c.args)) for c in ast.walk(tree) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id in takes]
    for name, given in sorted(set(calls)):
        if given < takes[name]: failures.append(f"{model} for JAX: {name} takes {takes[name]} arguments and is given {given}")
    if len(calls) < 20: failures.append(f"{model} for JAX calls few functions: {len(calls)}")

text, _ = export("sequence.plan", "torch", "sequence_torch.py")
compile(text, "sequence_torch.py", "exec")
holds("sequence_torch.py", text,
      '"model.layers.0.mlp.up_proj.weight": ((96, 64), (96, 64), [Replicate(), Shard(0)], [Replicate(), Shard(0)]),',
      '"model.layers.0.mlp.up_proj": ColwiseParallel(input_layouts=Replicate(), output_layouts=Shard(2)),',
      '"model.layers.0.mlp": (Shard(1), Replicate()),', '"model.layers.0.self_attn": (Shard(1), Replicate()),',
      '"lm_head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(2)),', '"tokens": [Shard(0), Replicate()],',
      '"model.layers.0.mlp.down_proj": RowwiseParallel(input_layouts=Shard(2), output_layouts=Shard(1)),',
      '"model.layers.0.input_layernorm": SequenceParallel(sequence_dim=1),')
text, said = export("zero.plan", "torch", "zero_torch.py")
holds("zero_torch.py", text, '("data", "model"): [', '"h.0.attn.c_attn", "h.0.attn.c_proj"', "GATHERED_AGAIN = []", '._flatten(')
holds("what is said of gradients", said, "gradients of what is in no group of FSDP are not averaged over axes that split the batch")
_, said = export("tensor.plan", "torch", "tensor_torch.py")
holds("what is said of PyTorch", said, "4 parameters, the first 'h.0.attn.c_attn.weight'")

text, said = export("sequence.plan", "megatron", "arguments.sh")
shown = subprocess.run(["bash", "-c", ". ./arguments.sh && echo ${ARGUMENTS[@]}"], capture_output=True, text=True).stdout.split()
wanted = ("--num-layers 2 --hidden-size 64 --ffn-hidden-size 96 --num-attention-heads 4 --num-query-groups 2 --seq-length 32 "
          "--group-query-attention --micro-batch-size 4 --global-batch-size 8 --tensor-model-parallel-size 2 --sequence-parallel "
          "--overlap-grad-reduce --pipeline-model-parallel-size 1").split()
if shown != wanted or said != "--to megatron: of the model these are sizes alone; norms, activations, positions, biases, tied heads, dropout and " \
        "which layers have experts are its own arguments\n": failures.append(f"Megatron's arguments are {shown}, and said is {said!r}")

settings = json.loads(export("zero.plan", "deepspeed", "zero.json")[0])
if settings["zero_optimization"] != {"stage": 2} or settings["train_micro_batch_size_per_gpu"] != 2 or \
   settings["gradient_clipping"] != 1 or "the plan is none" in str(settings["cfp"]):
    failures.append(f"DeepSpeed's settings of ZeRO's second stage are {settings}")
text, said = export("tensor.plan", "deepspeed", "tensor.json", "--machine", "a100-8")
if not re.search(r"the plan is none of DeepSpeed's: 16 of its 16 parts split otherwise than the nearest one, \w+, which takes "
                 r"[0-9.]+% (more|less) time by our price on 8x A100", said):
    failures.append(f"what DeepSpeed has not is not priced: {said!r}")
if json.loads(text)["cfp"]["said_otherwise"][0] not in said: failures.append("what is said is not in the file")

text, _ = export("sequence.plan", "shardy", "sequence.mlir")
holds("sequence.mlir", text, 'sdy.mesh @mesh = <["data"=2, "model"=2]>',
      '%model.layers.0.mlp.down_proj.weight: tensor<64x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>',
      '<@mesh, [{"data"}, {}, {}], unreduced={"model"}>',
      '#sdy.op_sharding_rule<([i, j, k], [l, k])->([i, j, l]) {i=8, j=32, k=96, l=64} reduction={k}, custom>',
      '= sdy.reshard %model.layers.0.mlp.down_proj.dense <@mesh, [{"data"}, {"model"}, {}]> : tensor<8x32x64xf32>')

if "built without protozero" in subprocess.run([cfp, "export", "tensor.plan", "--to", "onnx", "-o", "tensor.onnx"], capture_output=True,
                                               text=True).stderr:
    sys.exit("libprotozero-dev is missing: install it, and build again")
weight = onnx_sharding("tensor.onnx", "h.0.attn.c_attn.linear", "h.0.attn.c_attn.weight")
if weight != ([4, 5], {4: [0, 2], 5: [1, 3]}, [[(64, 1)], [(3, 1), (4, 2), (16, 1)]]):
    failures.append(f"ONNX has c_attn's weight as {weight}")
made = onnx_sharding("tensor.onnx", "h.0.mlp.c_fc.linear", "h.0.mlp.c_fc.linear")
if made != ([0, 1, 2, 3], {}, [[(8, 2)], [(32, 1)], [(256, 2)]]): failures.append(f"ONNX has c_fc's result as {made}")

text, _ = export("tensor.plan", "dot", "tensor.dot")
nodes = re.findall(r'^(\d+)\[label="([^"]*)", shape=\w+, group="0"\];$', text, re.M)
edges = re.findall(r'^(\d+)->(\d+) \[label="([^"]*)"(, color=red, penwidth=2)?\];$', text, re.M)
at = {label.split("\\n")[0]: n for n, label in nodes}
if len(nodes) + len(edges) + 5 != len(text.strip().splitlines()): failures.append("tensor.dot has lines that are neither node nor edge")
if not any(a == at["h.0.mlp.c_proj.linear"] and label == "batch:data" and red for a, _, label, red in edges):
    failures.append("tensor.dot does not show that c_proj's sum is made whole")
if any(a == at["h.0.mlp.c_fc.linear"] and red for a, _, _, red in edges): failures.append("tensor.dot has c_fc's result change its form")
if shutil.which("dot"): subprocess.run(["dot", "-Tsvg", "tensor.dot", "-o", "tensor.svg"], check=True)

# In stages, and what is computed again.
subprocess.run([cfp, "plan", "--model", "tiny_gpt.json", "--layers", "4", "--machine", "a100-pcie-4", "--stages", "2", "--micro-batches", "4",
                "--type", "float32", "--batch", "8", "--seq", "32", "--save-plan", "stages.plan"], check=True, stdout=subprocess.DEVNULL)
text, said = export("stages.plan", "megatron", "stages.sh")
holds("stages.sh", text, "--pipeline-model-parallel-size 2", "--global-batch-size 8")
holds("what is said of stages", said, "where the stages are cut: Megatron gives each as many layers, the plan's first operators are 'h.2")
holds("stages.dot", export("stages.plan", "dot", "stages.dot")[0], 'group="1"')
refused("--to jax: the plan is in 2 stages", "export", "stages.plan", "--to", "jax", "-o", "out")
subprocess.run([cfp, "plan", "--model", "tiny_llama.json", "--layers", "2", "--machine", "a100-8", "--mesh", "data=2,model=2", "--type",
                "float32", "--batch", "8", "--seq", "32", "--recompute", "all", "--save-plan", "anew.plan"], check=True, stdout=subprocess.DEVNULL)
holds("anew.py", export("anew.plan", "jax", "anew.py")[0], "save_anything_except_these_names(*ANEW)", '    "model.layers.0.mlp.gate_proj.dense",')

refused("--to: carrier-pigeon not in", "export", "tensor.plan", "--to", "carrier-pigeon", "-o", "out")
refused("--to jax: where to is missing, give -o FILE", "export", "tensor.plan", "--to", "jax")
refused("-o out: what for is missing, give --to", "export", "tensor.plan", "-o", "out")
refused("export needs a saved plan: cfp export FILE", "export", "--to", "jax", "-o", "out")
refused("export: what for is missing, give --to TARGET", "export", "tensor.plan")
refused("none/out: cannot be written", "export", "tensor.plan", "--to", "jax", "-o", "none/out")
refused("plan none: cannot be read", "export", "none", "--to", "jax", "-o", "out")
open("empty.plan", "w").close()
refused("plan empty.plan: is empty; save a plan again", "export", "empty.plan", "--to", "jax", "-o", "out")
refused("plan kept: line 1, column 1: this is not JSON", "export", "kept", "--to", "jax", "-o", "out")
refused("one file for this and for --plan", "export", "kept", "--to", "jax", "-o", "kept")
refused("is of model 'tiny_gpt.json layers=2", "export", "tensor.plan", "--to", "jax", "-o", "out", "--layers", "3")
refused("is for mesh data=2,model=2, this one is data=4", "export", "tensor.plan", "--to", "jax", "-o", "out", "--mesh", "data=4")
plan = json.load(open("tensor.plan"))
json.dump({**plan, "model": plan["model"].replace("tiny_gpt", "nowhere")}, open("other.plan", "w"))
refused("nowhere.json", "export", "other.plan", "--to", "jax", "-o", "out")
json.dump({**plan, "mesh": {"data": 2, "model": "2x"}}, open("other.plan", "w"))
refused("must be a number from 1 to 999", "export", "other.plan", "--to", "jax", "-o", "out")
for why in failures: print("FAILED:", why)
sys.exit(1 if failures else 0)
