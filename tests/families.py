"""families.py CFP FOLDER: small models of every family, trained a step and saved; what the next step's loss is says a
forward pass in numpy, written from what the families' authors publish, of the weights in the file by their public names."""
import json, math, os, struct, subprocess, sys
import numpy as np

cfp, folder = sys.argv[1], sys.argv[2]
os.makedirs(folder, exist_ok=True)
SEQ, ROWS, SEED = 12, 2, 7
TEXT = bytes((37 * i * i + 11 * i + 5) % 251 for i in range(5 * SEQ))


def philox(counter, key):  # Philox4x32-10, Salmon et al. 2011
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return c


def rows_of(step):  # where a step's rows begin in the text
    return [philox([step * ROWS + r, 0, 0, 0], [SEED, 0])[0] % (len(TEXT) - SEQ) for r in range(ROWS)]


def read_safetensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = np.frombuffer(data[8 + size + a:8 + size + b], "<f4").reshape(t["shape"]).astype(np.float64)
    return out


def layer_norm(x, w, b, eps):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * w + (0 if b is None else b)


def rms_norm(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def silu(x):
    return x / (1 + np.exp(-x))


def heads_of(x, n):  # s (n d) -> n s d
    return x.reshape(x.shape[0], n, -1).transpose(1, 0, 2)


def rotate_half(x, base, turned):  # n s d
    out = x.copy()
    half = turned // 2
    for s in range(x.shape[1]):
        for p in range(half):
            a = s * base ** (-p / half)
            u, v = x[:, s, p], x[:, s, p + half]
            out[:, s, p], out[:, s, p + half] = u * math.cos(a) - v * math.sin(a), v * math.cos(a) + u * math.sin(a)
    return out


def rotate_pairs(x, base, turned):
    out = x.copy()
    for s in range(x.shape[1]):
        for p in range(turned // 2):
            a = s * base ** (-2 * p / turned)
            u, v = x[:, s, 2 * p], x[:, s, 2 * p + 1]
            out[:, s, 2 * p], out[:, s, 2 * p + 1] = u * math.cos(a) - v * math.sin(a), v * math.cos(a) + u * math.sin(a)
    return out


def attend(q, k, v, scale, window=None, cap=None, slopes=None):  # q: n s d, k and v: m s d with n a multiple of m
    times = q.shape[0] // k.shape[0]
    k, v = np.repeat(k, times, 0), np.repeat(v, times, 0)
    score = q @ k.transpose(0, 2, 1) * scale
    if cap: score = cap * np.tanh(score / cap)
    s = q.shape[1]
    behind = np.arange(s)[:, None] - np.arange(s)[None, :]
    if slopes is not None: score = score - slopes[:, None, None] * behind
    score = np.where((behind < 0) | (behind >= (window or s)), -np.inf, score)
    score = np.exp(score - score.max(-1, keepdims=True))
    return ((score / score.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2).reshape(s, -1)


def alibi(n):
    def of(m): return [2.0 ** (-8.0 * (i + 1) / m) for i in range(m)]
    m = 2 ** int(math.log2(n))
    return np.array(of(m) + of(2 * m)[0::2][:n - m])


class Weights:
    def __init__(self, tensors): self.t = tensors
    def __call__(self, name): return self.t[name]
    def has(self, name): return name in self.t
    def norm(self, x, name, eps): return layer_norm(x, self(name + ".weight"), self.t.get(name + ".bias"), eps)
    def dense(self, x, name):  # weight (out, in)
        return x @ self(name + ".weight").T + (self(name + ".bias") if self.has(name + ".bias") else 0)


def gpt2(w, c, ids):
    x = w("wte.weight")[ids] + w("wpe.weight")[:SEQ]
    n = c["n_head"]
    for l in range(c["n_layer"]):
        h = f"h.{l}."
        y = w.norm(x, h + "ln_1", 1e-5) @ w(h + "attn.c_attn.weight") + w(h + "attn.c_attn.bias")
        q, k, v = (heads_of(p, n) for p in np.split(y, 3, -1))
        x = x + attend(q, k, v, q.shape[-1] ** -0.5) @ w(h + "attn.c_proj.weight") + w(h + "attn.c_proj.bias")
        y = gelu_tanh(w.norm(x, h + "ln_2", 1e-5) @ w(h + "mlp.c_fc.weight") + w(h + "mlp.c_fc.bias"))
        x = x + y @ w(h + "mlp.c_proj.weight") + w(h + "mlp.c_proj.bias")
    return w.norm(x, "ln_f", 1e-5) @ w("wte.weight").T


def opt(w, c, ids):
    d = "model.decoder."
    x = w(d + "embed_tokens.weight")[ids] + w(d + "embed_positions.weight")[2:2 + SEQ]
    n = c["num_attention_heads"]
    for l in range(c["num_hidden_layers"]):
        h = f"{d}layers.{l}."
        y = w.norm(x, h + "self_attn_layer_norm", 1e-5)
        q, k, v = (heads_of(w.dense(y, f"{h}self_attn.{p}_proj"), n) for p in "qkv")
        x = x + w.dense(attend(q, k, v, q.shape[-1] ** -0.5), h + "self_attn.out_proj")
        y = np.maximum(w.dense(w.norm(x, h + "final_layer_norm", 1e-5), h + "fc1"), 0)
        x = x + w.dense(y, h + "fc2")
    return w.norm(x, d + "final_layer_norm", 1e-5) @ w(d + "embed_tokens.weight").T


def gpt_neo(w, c, ids):
    x = w("transformer.wte.weight")[ids] + w("transformer.wpe.weight")[:SEQ]
    for l in range(c["num_layers"]):
        h = f"transformer.h.{l}."
        y = w.norm(x, h + "ln_1", 1e-5)
        q, k, v = (heads_of(w.dense(y, f"{h}attn.attention.{p}_proj"), c["num_heads"]) for p in "qkv")
        window = c["window_size"] if l % 2 == 1 else None
        x = x + w.dense(attend(q, k, v, 1.0, window), h + "attn.attention.out_proj")
        x = x + w.dense(gelu_tanh(w.dense(w.norm(x, h + "ln_2", 1e-5), h + "mlp.c_fc")), h + "mlp.c_proj")
    return w.norm(x, "transformer.ln_f", 1e-5) @ w("transformer.wte.weight").T


def gpt_neox(w, c, ids):
    x = w("gpt_neox.embed_in.weight")[ids]
    n = c["num_attention_heads"]
    for l in range(c["num_hidden_layers"]):
        h = f"gpt_neox.layers.{l}."
        y = w.dense(w.norm(x, h + "input_layernorm", 1e-5), h + "attention.query_key_value").reshape(SEQ, n, 3, -1)
        q, k, v = (y[:, :, i].transpose(1, 0, 2) for i in range(3))
        turned = int(c["rotary_pct"] * q.shape[-1])
        q, k = rotate_half(q, c["rotary_emb_base"], turned), rotate_half(k, c["rotary_emb_base"], turned)
        a = w.dense(attend(q, k, v, q.shape[-1] ** -0.5), h + "attention.dense")
        m = gelu(w.dense(w.norm(x, h + "post_attention_layernorm", 1e-5), h + "mlp.dense_h_to_4h"))
        x = x + a + w.dense(m, h + "mlp.dense_4h_to_h")
    return w.dense(w.norm(x, "gpt_neox.final_layer_norm", 1e-5), "embed_out")


def gptj(w, c, ids):
    x = w("transformer.wte.weight")[ids]
    for l in range(c["n_layer"]):
        h = f"transformer.h.{l}."
        y = w.norm(x, h + "ln_1", 1e-5)
        q, k, v = (heads_of(w.dense(y, f"{h}attn.{p}_proj"), c["n_head"]) for p in "qkv")
        q, k = rotate_pairs(q, 10000, c["rotary_dim"]), rotate_pairs(k, 10000, c["rotary_dim"])
        a = w.dense(attend(q, k, v, q.shape[-1] ** -0.5), h + "attn.out_proj")
        x = x + a + w.dense(gelu_tanh(w.dense(y, h + "mlp.fc_in")), h + "mlp.fc_out")
    return w.dense(w.norm(x, "transformer.ln_f", 1e-5), "lm_head")


def bloom(w, c, ids):
    x = w.norm(w("word_embeddings.weight")[ids], "word_embeddings_layernorm", 1e-5)
    n = c["n_head"]
    for l in range(c["n_layer"]):
        h = f"h.{l}."
        y = w.dense(w.norm(x, h + "input_layernorm", 1e-5), h + "self_attention.query_key_value").reshape(SEQ, n, 3, -1)
        q, k, v = (y[:, :, i].transpose(1, 0, 2) for i in range(3))
        x = x + w.dense(attend(q, k, v, q.shape[-1] ** -0.5, slopes=alibi(n)), h + "self_attention.dense")
        y = w.dense(w.norm(x, h + "post_attention_layernorm", 1e-5), h + "mlp.dense_h_to_4h")
        x = x + w.dense(gelu_tanh(y), h + "mlp.dense_4h_to_h")
    return w.norm(x, "ln_f", 1e-5) @ w("word_embeddings.weight").T


def falcon(w, c, ids):
    t = "transformer."
    x = w(t + "word_embeddings.weight")[ids]
    n = c["num_attention_heads"]
    new = c["new_decoder_architecture"]
    m = c["num_kv_heads"] if new else 1
    for l in range(c["num_hidden_layers"]):
        h = f"{t}h.{l}."
        first = w.norm(x, h + ("ln_attn" if new else "input_layernorm"), 1e-5)
        second = w.norm(x, h + "ln_mlp", 1e-5) if new else first
        q, k, v = (heads_of(w.dense(first, f"{h}self_attention.query_key_value.{p}"), i)
                   for p, i in (("q", n), ("k", m), ("v", m)))
        d = q.shape[-1]
        a = w.dense(attend(rotate_half(q, 10000, d), rotate_half(k, 10000, d), v, d ** -0.5), h + "self_attention.dense")
        x = x + a + w.dense(gelu(w.dense(second, h + "mlp.dense_h_to_4h")), h + "mlp.dense_4h_to_h")
    return w.norm(x, t + "ln_f", 1e-5) @ w(t + "word_embeddings.weight").T


def llama_like(w, c, ids):
    kind = c["model_type"]
    eps = c.get("rms_norm_eps", c.get("layer_norm_eps"))
    gemma = kind.startswith("gemma")
    base = c.get("rope_theta", 10000)
    tied = not w.has("lm_head.weight")

    def norm(x, name):
        if kind in ("stablelm", "cohere"): return w.norm(x, name, eps)
        return rms_norm(x, w(name + ".weight") + (1 if gemma else 0), eps)

    def part(y, h, name, joined):
        return w.dense(y, f"{h}{joined}.{name}" if kind == "phi3" else f"{h}{name}_proj")

    x = w("model.embed_tokens.weight")[ids] * (math.sqrt(c["hidden_size"]) if gemma else 1)
    n, m = c["num_attention_heads"], c.get("num_key_value_heads") or c["num_attention_heads"]
    for l in range(c["num_hidden_layers"]):
        h = f"model.layers.{l}."
        y = x if kind == "olmo2" else norm(x, h + "input_layernorm")
        q, k, v = (part(y, h + "self_attn.", p, "qkv_proj") for p in "qkv")
        if kind == "olmo2":
            q = rms_norm(q, w(h + "self_attn.q_norm.weight"), eps)
            k = rms_norm(k, w(h + "self_attn.k_norm.weight"), eps)
        q, k, v = heads_of(q, n), heads_of(k, m), heads_of(v, m)
        if kind == "qwen3":
            q = rms_norm(q, w(h + "self_attn.q_norm.weight"), eps)
            k = rms_norm(k, w(h + "self_attn.k_norm.weight"), eps)
        d = q.shape[-1]
        turned = int(c.get("partial_rotary_factor", 1) * d)
        turn = rotate_pairs if kind == "cohere" else rotate_half
        q, k = turn(q, base, turned), turn(k, base, turned)
        window = c.get("sliding_window") if kind in ("mistral", "phi3") or (kind == "gemma2" and l % 2 == 0) else None
        scale = c.get("query_pre_attn_scalar", d) ** -0.5
        a = w.dense(attend(q, k, v, scale, window, c.get("attn_logit_softcapping")), h + "self_attn.o_proj")
        if kind == "gemma2": a = norm(a, h + "post_attention_layernorm")
        if kind == "olmo2": a = norm(a, h + "post_attention_layernorm")
        if kind == "cohere":
            z, x0 = y, x
        else:
            x = x + a
            z = {"gemma2": lambda: norm(x, h + "pre_feedforward_layernorm"), "olmo2": lambda: x}.get(
                kind, lambda: norm(x, h + "post_attention_layernorm"))()
        gate, up = part(z, h + "mlp.", "gate", "gate_up_proj"), part(z, h + "mlp.", "up", "gate_up_proj")
        b = w.dense((gelu_tanh(gate) if gemma else silu(gate)) * up, h + "mlp.down_proj")
        if kind in ("gemma2", "olmo2"): b = norm(b, h + "post_feedforward_layernorm")
        x = x0 + a + b if kind == "cohere" else x + b
    logits = norm(x, "model.norm") @ w("model.embed_tokens.weight" if tied else "lm_head.weight").T
    logits = logits * c.get("logit_scale", 1)
    cap = c.get("final_logit_softcapping")
    return cap * np.tanh(logits / cap) if cap else logits


def phi(w, c, ids):
    x = w("model.embed_tokens.weight")[ids]
    n = c["num_attention_heads"]
    for l in range(c["num_hidden_layers"]):
        h = f"model.layers.{l}."
        y = w.norm(x, h + "input_layernorm", 1e-5)
        q, k, v = (heads_of(w.dense(y, f"{h}self_attn.{p}_proj"), n) for p in "qkv")
        turned = int(c["partial_rotary_factor"] * q.shape[-1])
        q, k = rotate_half(q, 10000, turned), rotate_half(k, 10000, turned)
        a = w.dense(attend(q, k, v, q.shape[-1] ** -0.5), h + "self_attn.dense")
        x = x + a + w.dense(gelu_tanh(w.dense(y, h + "mlp.fc1")), h + "mlp.fc2")
    return w.dense(w.norm(x, "model.final_layernorm", 1e-5), "lm_head")


# The carried configuration, its sizes made small.
SMALL = {"n_layer": 2, "num_hidden_layers": 2, "num_layers": 2, "n_head": 4, "num_attention_heads": 4, "num_heads": 4,
         "n_embd": 32, "hidden_size": 32, "word_embed_proj_dim": 32, "intermediate_size": 48, "ffn_dim": 48,
         "vocab_size": 256, "n_positions": 32, "max_position_embeddings": 32, "window_size": 5, "sliding_window": 5,
         "rotary_dim": 4, "rotary_pct": 0.5, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
         "query_pre_attn_scalar": 12, "initializer_range": 0.2, "init_std": 0.2, "logit_scale": 0.5}
ALL = {"gpt2": gpt2, "opt-125m": opt, "gpt-neo-125m": gpt_neo, "pythia-160m": gpt_neox, "gpt-j-6b": gptj,
       "bloom-560m": bloom, "falcon-7b": falcon, "falcon-40b": falcon, "llama-3-8b": llama_like,
       "mistral-7b": llama_like, "qwen2-7b": llama_like, "qwen3-8b": llama_like, "gemma-2b": llama_like,
       "gemma-2-9b": llama_like, "phi-2": phi, "phi-3-mini": llama_like, "stablelm-3b": llama_like,
       "olmo-2-7b": llama_like, "command-r": llama_like}


def small_config(model):
    at = os.path.join(os.path.dirname(__file__), "..", "examples", "models", model + ".json")
    c = {k: SMALL.get(k, v) if v is not None else None for k, v in json.load(open(at)).items()}
    for key in ("num_key_value_heads", "num_kv_heads"):
        if c.get(key): c[key] = 1 if c[key] == 1 else 2 if c[key] < 30 else 4
    if c.get("head_dim"): c["head_dim"] = 12
    if c.get("partial_rotary_factor"): c["partial_rotary_factor"] = 0.5
    for key in c:
        if "drop" in key: c[key] = 0.0 if c[key] is not None else None
    if model == "bloom-560m": c["n_head"], c["hidden_size"] = 6, 48  # slopes of no power of two
    if model == "gpt-neo-125m": c["attention_types"] = [[["global", "local"], 1]]
    return c


def loss_of(logits, targets):
    top = logits.max(-1, keepdims=True)
    return float(np.mean(np.log(np.exp(logits - top).sum(-1)) + top[:, 0] - logits[np.arange(SEQ), targets]))


def run(*arguments):
    done = subprocess.run([cfp, *arguments], capture_output=True, text=True)
    if done.returncode != 0: raise SystemExit(f"FAILED: cfp {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    text = os.path.join(folder, "text")
    open(text, "wb").write(TEXT)
    failed = 0
    for model in sys.argv[3:] or ALL:
        config = small_config(model)
        path = {k: os.path.join(folder, f"{model}.{k}") for k in ("json", "safetensors", "next", "summary")}
        json.dump(config, open(path["json"], "w"))
        common = ["--model", path["json"], "--mesh", "data=2", "--batch", str(ROWS), "--seq", str(SEQ), "--text", text,
                  "--seed", str(SEED), "--rate", "0.01"]
        run("train", *common, "--steps", "1", "--save-state", path["safetensors"])
        run("train", *common, "--steps", "1", "--load-state", path["safetensors"], "--summary", path["summary"])
        said = json.load(open(path["summary"]))["training"]["loss"][0]
        weights, ids = Weights(read_safetensors(path["safetensors"])), np.frombuffer(TEXT, np.uint8).astype(int)
        expected = np.mean([loss_of(ALL[model](weights, config, ids[at:at + SEQ]), ids[at + 1:at + 1 + SEQ])
                            for at in rows_of(2)])
        off = abs(said - expected) / expected
        print(f"{model:16} {said:.7f} {expected:.7f} {off:.1e}{'' if off <= 1e-5 else '  FAILED'}", flush=True)
        failed += not off <= 1e-5
    sys.exit(failed)
