"""torch_export.py CFP FOLDER [--json FILE]: plans of LLaMA exported for PyTorch, run by it on four processes over gloo: losses over five steps from
the same weights, and what each kind of collective sends in a step, beside those of cfp's own ranks. Needs torch and numpy."""
import json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
import numpy as np
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import loss_parallel
from torch.utils._python_dispatch import TorchDispatchMode
from exported_plans import BATCH, FORCED, LAYERS, STEPS, TOLERANCE, Program, batch
from written_apart import read_safetensors

MODEL = "tiny_llama.json"
RATE, LAST, WARMUP, ALL_STEPS = 3e-4, 3e-5, 2, 1000  # cfp's own: AdamW's rate rises, then falls along half a cosine


class Norm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.empty(width)), epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.depth, self.base = c["hidden_size"] // c["num_attention_heads"], c["rope_theta"]
        width, kv = c["hidden_size"], c["num_key_value_heads"] * self.depth
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(a, b, bias=False) for a, b in
                                                              ((width, width), (width, kv), (width, kv), (width, width)))

    def turned(self, x):
        half = self.depth // 2
        angles = torch.outer(torch.arange(x.shape[2]), self.base ** (-torch.arange(half) / half))
        a, b = x.split(half, -1)
        return torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1)

    def forward(self, x):
        q, k, v = (p(x) for p in (self.q_proj, self.k_proj, self.v_proj))
        heads = lambda t: t.unflatten(2, (-1, self.depth)).transpose(1, 2)
        q, k, v = self.turned(heads(q)), self.turned(heads(k)), heads(v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False) for _ in range(2))
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = (Norm(c["hidden_size"], c["rms_norm_eps"]) for _ in range(2))
        self.self_attn, self.mlp = Attention(c), Mlp(c)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Inner(nn.Module):
    def __init__(self, c, layers):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(layers))
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers: x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    """By the names of public checkpoints."""

    def __init__(self, c, layers):
        super().__init__()
        self.model, self.lm_head = Inner(c, layers), nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


class Sent(TorchDispatchMode):
    """Of each kind of collective how many, and the bytes a process sends by the formulas of rings."""

    def __init__(self):
        super().__init__()
        self.kinds = {}

    def add(self, what):
        count, sent = self.kinds.get(what[0], (0, 0))
        self.kinds[what[0]] = (count + 1, sent + what[1])

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(t is DTensor for t in types): return NotImplemented
        name, bytes_of = function.__name__.split(".")[0], lambda t: t.numel() * t.element_size()
        of, rings = {"all_reduce": ("all_reduce", lambda n: 2 * (n - 1) / n), "all_reduce_": ("all_reduce", lambda n: 2 * (n - 1) / n),
                     "all_gather_into_tensor": ("all_gather", lambda n: n - 1),
                     "reduce_scatter_tensor": ("reduce_scatter", lambda n: (n - 1) / n),
                     "all_to_all_single": ("all_to_all", lambda n: (n - 1) / n)}.get(name, (None, None))
        if function.namespace == "_c10d_functional" and of:
            self.add((of, rings(dist.distributed_c10d._resolve_process_group(args[-1]).size()) * bytes_of(args[0])))
        elif function.namespace == "c10d" and name == "_allgather_base_":  # those of FSDP
            self.add(("all_gather", bytes_of(args[0]) - bytes_of(args[1])))
        elif function.namespace == "c10d" and name == "_reduce_scatter_base_":
            self.add(("reduce_scatter", bytes_of(args[1]) - bytes_of(args[0])))
        return function(*args, **(kwargs or {}))


def rate_at(step):
    if step < WARMUP: return RATE * step / WARMUP
    return LAST + (RATE - LAST) * 0.5 * (1 + np.cos(np.pi * (step - WARMUP) / (ALL_STEPS - WARMUP)))


def loss_of(model, module, mesh, rows):
    logits = model(torch.tensor(rows["tokens"]).long())
    targets = torch.tensor(rows["targets"]).long().flatten()
    if "lm_head" not in module.PARALLELIZE.get("model", {}): return F.cross_entropy(logits.flatten(0, 1), targets)
    return F.cross_entropy(DTensor.from_local(logits, mesh["model"], [Shard(2)]).flatten(0, 1), targets)


def average(model, module, mesh, axes):
    """Gradients whole or in pieces as their weights are; of what FSDP has not averaged the mean over the axes that split the batch."""
    groups = [g for groups in module.FSDP.values() for g in groups]
    done = {id(p) for g in groups for p in model.get_submodule(g).parameters()}
    for p in model.parameters():
        if isinstance(p.grad, DTensor): p.grad = p.grad.redistribute(placements=p.placements)
        if id(p) in done: continue
        local = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
        for axis in axes: local.copy_(functional.wait_tensor(functional.all_reduce(local, "avg", mesh[axis].get_group())))


def train(rank, folder, name, layers):
    os.environ.update(RANK=str(rank), WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.set_num_threads(1)
    sys.path.insert(0, folder)
    module = __import__(name + "_torch")
    mesh = module.make_mesh("cpu")
    model = Llama(json.load(open(os.path.join(folder, MODEL))), layers)
    weights = read_safetensors(os.path.join(folder, MODEL + ".safetensors"))
    with torch.no_grad():
        for of, p in model.named_parameters(): p.copy_(torch.tensor(weights[of]).reshape(p.shape))
    model = module.parallelize(model, mesh)
    optimizer = torch.optim.AdamW([{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
                                   {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}],
                                  betas=(0.9, 0.95), eps=1e-8, foreach=False)
    axes = [axis for axis, given in zip(module.AXES, module.INPUTS["tokens"]) if given.is_shard(0)]
    begin, share = 0, 1
    for axis in axes: begin, share = begin * mesh[axis].size() + mesh[axis].get_local_rank(), share * mesh[axis].size()
    mine = slice(begin * (BATCH // share), (begin + 1) * (BATCH // share))
    losses = []
    for step in range(1, STEPS + 1):
        rows = {k: v[mine] for k, v in batch(step).items() if k != "positions"}
        with Sent() as sent, loss_parallel():
            loss = loss_of(model, module, mesh, rows)
            loss.backward()
            average(model, module, mesh, axes)
        one = loss.full_tensor() if isinstance(loss, DTensor) else loss
        mean = one.detach().clone()
        for axis in axes: mean = functional.wait_tensor(functional.all_reduce(mean, "avg", mesh[axis].get_group()))
        losses.append(mean.item())
        whole = [p.grad.full_tensor() if isinstance(p.grad, DTensor) else p.grad for p in model.parameters()]
        norm = torch.sqrt(sum(g.pow(2).sum() for g in whole)).item()
        for p in model.parameters(): p.grad.mul_(min(1.0, 1.0 / norm))
        for group in optimizer.param_groups: group["lr"] = rate_at(step)
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        with open(os.path.join(folder, name + "_result.json"), "w") as f: json.dump({"losses": losses, "sent": sent.kinds}, f)
    dist.destroy_process_group()


def main():
    cfp, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    program = Program(cfp, folder, [MODEL])
    program.plan(MODEL, "found.json")
    wrong, figures = [], {"torch": torch.__version__, "plans": []}
    for name in ("tensor", "tensor_sequence"): program.forced("found.json", FORCED[name], name + ".json")
    program.plan(MODEL, "in_pieces.json", "--memory", "2300000", "--recompute", "none")
    for name in ("tensor", "tensor_sequence", "in_pieces"):
        plan = name + ".json"
        ours, mine = program.trained(MODEL, plan)
        program.run("export", plan, "--to", "torch", "-o", name + "_torch.py")
        torch.multiprocessing.spawn(train, (folder, name, LAYERS), nprocs=4)
        theirs = json.load(open(os.path.join(folder, name + "_result.json")))
        apart = max(abs(a - b) / abs(a) for a, b in zip(ours, theirs["losses"]))
        if not apart < TOLERANCE: wrong.append(f"{name}: losses are {apart:.1e} apart, at most {TOLERANCE:.0e}")
        figures["plans"].append({"plan": name, "apart": apart, "ours": mine, "torch": theirs["sent"]})
        print(f"{name}: losses {ours[0]:.6f} -> {ours[-1]:.6f}, by PyTorch {theirs['losses'][0]:.6f} -> {theirs['losses'][-1]:.6f}, apart {apart:.1e}")
        for kind in sorted(set(mine) | set(theirs["sent"])):
            a, b = mine.get(kind, (0, 0)), theirs["sent"].get(kind, (0, 0))
            print(f"  {kind:15} ours {a[0]:4} {a[1] / 1024:9.1f} KiB   by PyTorch {b[0]:4} {b[1] / 1024:9.1f} KiB")
            # What this program averages goes over one axis of two and then the other, 1 + 1 times its bytes; over both at once 1.5 times.
            expected = a[1] * (2 / 1.5 if (name, kind) == ("in_pieces", "all_reduce") else 1)
            if abs(b[1] - expected) > 0.01 * expected: wrong.append(f"{name}: of {kind} PyTorch sends {b[1]:.0f} bytes, not about {expected:.0f}")
    if "--json" in sys.argv:
        with open(sys.argv[sys.argv.index("--json") + 1], "w") as f: json.dump(figures, f, indent=1)
    for why in wrong: print("FAILED:", why)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
