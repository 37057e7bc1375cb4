"""families.py CFP FOLDER: small models of every family, trained a step and saved; what the next step's loss is says a
forward pass in numpy, written from what the families' authors publish, of the weights in the file by their public names."""
import json, math, os, struct, subprocess, sys, zlib
import numpy as np
from written_apart import philox, read_safetensors

cfp, folder = sys.argv[1], sys.argv[2]
os.makedirs(folder, exist_ok=True)
SEQ, ROWS, SEED = 12, 2, 7
TEXT = bytes((37 * i * i + 11 * i + 5) % 251 for i in range(20 * SEQ))


def rows_of(step, reach=1, length=SEQ):  # where a step's rows begin in the text
    return [philox([step * ROWS + r, 0, 0, 0], [SEED, 0])[0] % (len(TEXT) - length - reach + 1) for r in range(ROWS)]


def set_tensor(path, name, numbers):  # in its place, with its checksum
    data = bytearray(open(path, "rb").read())
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    at, numbers = 8 + size + header[name]["data_offsets"][0], numbers.astype("<f4").tobytes()
    was, now = (f'"crc32 {name}":"{c}"'.encode()
                for c in (header["__metadata__"]["crc32 " + name], format(zlib.crc32(numbers), "08x")))
    assert data[:8 + size].count(was) == 1 and len(was) == len(now)
    data[at:at + len(numbers)] = numbers
    data[:8 + size] = data[:8 + size].replace(was, now)
    open(path, "wb").write(data)


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


def frequencies(base, turned, scaling=None):  # of pairs; slowed as Llama 3.1's and YaRN's authors write it
    f = [base ** (-2 * p / turned) for p in range(turned // 2)]
    kind = scaling and scaling.get("rope_type", scaling.get("type"))
    if kind == "llama3":
        long, short = (scaling["original_max_position_embeddings"] / scaling[k]
                       for k in ("low_freq_factor", "high_freq_factor"))
        for p, w in enumerate(2 * math.pi / x for x in f):
            between = (scaling["original_max_position_embeddings"] / w - scaling["low_freq_factor"]) / (
                scaling["high_freq_factor"] - scaling["low_freq_factor"])
            if w > long: f[p] /= scaling["factor"]
            elif w >= short: f[p] = (1 - between) * f[p] / scaling["factor"] + between * f[p]
    if kind == "yarn":
        def pair(turns):
            return turned * math.log(scaling["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (
                2 * math.log(base))
        first = max(math.floor(pair(scaling["beta_fast"])), 0)
        last = min(math.ceil(pair(scaling["beta_slow"])), turned - 1)
        ramp = np.clip((np.arange(turned // 2) - first) / (last - first or 0.001), 0, 1)
        f = [x / scaling["factor"] * r + x * (1 - r) for x, r in zip(f, ramp)]
    return f


def rotate_half(x, base, turned, scaling=None):  # n s d
    out = x.copy()
    half = turned // 2
    turns = frequencies(base, turned, scaling)
    for s in range(x.shape[1]):
        for p in range(half):
            a = s * turns[p]
            u, v = x[:, s, p], x[:, s, p + half]
            out[:, s, p], out[:, s, p + half] = u * math.cos(a) - v * math.sin(a), v * math.cos(a) + u * math.sin(a)
    return out


def rotate_pairs(x, base, turned, scaling=None):
    out = x.copy()
    turns = frequencies(base, turned, scaling)
    for s in range(x.shape[1]):
        for p in range(turned // 2):
            a = s * turns[p]
            u, v = x[:, s, 2 * p], x[:, s, 2 * p + 1]
            out[:, s, 2 * p], out[:, s, 2 * p + 1] = u * math.cos(a) - v * math.sin(a), v * math.cos(a) + u * math.sin(a)
    return out


def attend(q, k, v, scale, window=None, cap=None, slopes=None, ahead=False, add=0):
    # q: n s d, k and v: m s d with n a multiple of m
    times = q.shape[0] // k.shape[0]
    k, v = np.repeat(k, times, 0), np.repeat(v, times, 0)
    score = q @ k.transpose(0, 2, 1) * scale + add
    if cap: score = cap * np.tanh(score / cap)
    s = q.shape[1]
    behind = np.arange(s)[:, None] - np.arange(s)[None, :]
    if slopes is not None: score = score - slopes[:, None, None] * behind
    score = np.where(((behind < 0) & (not ahead)) | (behind >= (window or s)), -np.inf, score)
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


def mpt(w, c, ids):
    x = w("transformer.wte.weight")[ids]
    n, of = c["n_heads"], 2 ** math.ceil(math.log2(c["n_heads"]))
    slopes = 2.0 ** -(np.arange(1, of + 1) * c["attn_config"]["alibi_bias_max"] / of)
    if n != of: slopes = np.concatenate([slopes[1::2], slopes[::2]])[:n]
    for l in range(c["n_layers"]):
        h = f"transformer.blocks.{l}."
        y = w.dense(w.norm(x, h + "norm_1", 1e-5), h + "attn.Wqkv")
        if c["attn_config"]["clip_qkv"]: y = np.clip(y, -c["attn_config"]["clip_qkv"], c["attn_config"]["clip_qkv"])
        q, k, v = (heads_of(p, n) for p in np.split(y, 3, -1))
        x = x + w.dense(attend(q, k, v, q.shape[-1] ** -0.5, slopes=slopes), h + "attn.out_proj")
        x = x + w.dense(gelu(w.dense(w.norm(x, h + "norm_2", 1e-5), h + "ffn.up_proj")), h + "ffn.down_proj")
    return w.norm(x, "transformer.norm_f", 1e-5) @ w("transformer.wte.weight").T


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


def bert(w, c, ids):  # of a text of one segment
    t = c["model_type"] + "."
    e, eps, n = t + "embeddings.", c["layer_norm_eps"], c["num_attention_heads"]
    first = 0 if t == "bert." else c["pad_token_id"] + 1
    x = w(e + "word_embeddings.weight")[ids] + w(e + "position_embeddings.weight")[first:first + SEQ]
    x = w.norm(x + w(e + "token_type_embeddings.weight")[0], e + "LayerNorm", eps)
    for l in range(c["num_hidden_layers"]):
        h = f"{t}encoder.layer.{l}."
        q, k, v = (heads_of(w.dense(x, f"{h}attention.self.{p}"), n) for p in ("query", "key", "value"))
        a = w.dense(attend(q, k, v, q.shape[-1] ** -0.5, ahead=True), h + "attention.output.dense")
        x = w.norm(x + a, h + "attention.output.LayerNorm", eps)
        y = w.dense(gelu(w.dense(x, h + "intermediate.dense")), h + "output.dense")
        x = w.norm(x + y, h + "output.LayerNorm", eps)
    head, dense, norm = (("cls.predictions.", "transform.dense", "transform.LayerNorm") if t == "bert." else
                         ("lm_head.", "dense", "layer_norm"))
    x = w.norm(gelu(w.dense(x, head + dense)), head + norm, eps)
    return x @ w(e + "word_embeddings.weight").T + w(head + "bias")


def vit(w, c, image):  # rows of pixels of a patch, channel by channel
    eps, n, e = c["layer_norm_eps"], c["num_attention_heads"], "vit.embeddings."
    kernel = w(e + "patch_embeddings.projection.weight")
    x = image @ kernel.reshape(len(kernel), -1).T + w(e + "patch_embeddings.projection.bias")
    x = np.concatenate([w(e + "cls_token")[None], x]) + w(e + "position_embeddings")
    for l in range(c["num_hidden_layers"]):
        h = f"vit.encoder.layer.{l}."
        y = w.norm(x, h + "layernorm_before", eps)
        q, k, v = (heads_of(w.dense(y, f"{h}attention.attention.{p}"), n) for p in ("query", "key", "value"))
        x = x + w.dense(attend(q, k, v, q.shape[-1] ** -0.5, ahead=True), h + "attention.output.dense")
        y = gelu(w.dense(w.norm(x, h + "layernorm_after", eps), h + "intermediate.dense"))
        x = x + w.dense(y, h + "output.dense")
    return w.dense(w.norm(x, "vit.layernorm", eps)[:1], "classifier")


def t5(w, c, ids, behind):  # a text, and what comes behind it
    n, eps = c["num_heads"], c["layer_norm_epsilon"]

    most = c.get("relative_attention_max_distance", 128)

    def bucket(distance, both):  # key - query
        out, past, count = 0, -distance, c["relative_attention_num_buckets"]
        if both:
            count //= 2
            out, past = count * (distance > 0), abs(distance)
        past, exact = max(past, 0), count // 2
        if past < exact: return out + past
        return out + min(exact + int(math.log(past / exact) / math.log(most / exact) * (count - exact)), count - 1)

    def attention(x, memory, h, add, ahead):
        q, k, v = (heads_of(w.dense(y, h + o), n) for y, o in ((x, "q"), (memory, "k"), (memory, "v")))
        return w.dense(attend(q, k, v, 1.0, ahead=ahead, add=add), h + "o")

    def normed(x, name): return rms_norm(x, w(name + ".weight"), eps)

    def stack(of, ids, memory=None):
        x = w("shared.weight")[ids]
        table = w(of + "block.0.layer.0.SelfAttention.relative_attention_bias.weight")
        add = [[table[bucket(k - q, memory is None)] for k in range(SEQ)] for q in range(SEQ)]
        add = np.array(add).transpose(2, 0, 1)
        for l in range(c["num_layers"]):
            h = f"{of}block.{l}.layer."
            y = normed(x, h + "0.layer_norm")
            x = x + attention(y, y, h + "0.SelfAttention.", add, memory is None)
            if memory is not None:
                x = x + attention(normed(x, h + "1.layer_norm"), memory, h + "1.EncDecAttention.", 0, True)
            h += "1." if memory is None else "2."
            y, f = normed(x, h + "layer_norm"), h + "DenseReluDense."
            if w.has(f + "wi_1.weight"): y = gelu_tanh(w.dense(y, f + "wi_0")) * w.dense(y, f + "wi_1")
            else: y = np.maximum(w.dense(y, f + "wi"), 0)
            x = x + w.dense(y, f + "wo")
        return normed(x, of + "final_layer_norm")

    x = stack("decoder.", behind, stack("encoder.", ids))
    if w.has("lm_head.weight"): return w.dense(x, "lm_head")
    return x * c["d_model"] ** -0.5 @ w("shared.weight").T


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def swiglu(x, gate, up, down):  # weights (out, in)
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def mixture(x, weights, chosen, gate, up, down):  # of each token the experts it chose, by these weights
    return np.array([sum(weight * swiglu(t[None], gate[e], up[e], down[e])[0] for weight, e in zip(ws, es))
                     for t, ws, es in zip(x, weights, chosen)])


def largest(x, k): return np.argsort(-x, -1, kind="stable")[:, :k]


def dbrx(w, c, ids):
    x = w("transformer.wte.weight")[ids]
    n, a, f = c["n_heads"], c["attn_config"], c["ffn_config"]
    for l in range(c["n_layers"]):
        h = f"transformer.blocks.{l}.norm_attn_norm."
        y = w.norm(x, h + "norm_1", 1e-5)
        q, k, v = (heads_of(np.clip(w.dense(y, h + "attn.Wqkv." + p), -a["clip_qkv"], a["clip_qkv"]), m)
                   for p, m in (("q", n), ("k", a["kv_n_heads"]), ("v", a["kv_n_heads"])))
        d = q.shape[-1]
        q, k = rotate_half(q, a["rope_theta"], d), rotate_half(k, a["rope_theta"], d)
        x = x + w.dense(attend(q, k, v, d ** -0.5), h + "attn.out_proj")
        y = w.norm(x, h + "norm_2", 1e-5)
        h = f"transformer.blocks.{l}.ffn."
        p = softmax(w.dense(y, h + "router.layer"))
        chosen = largest(p, f["moe_top_k"])
        p = np.take_along_axis(p, chosen, -1)
        m = h + "experts.mlp."
        x = x + mixture(y, p / p.sum(-1, keepdims=True), chosen, *(w(m + o + ".weight") for o in ("w1", "v1", "w2")))
    return w.norm(x, "transformer.norm_f", 1e-5) @ w("lm_head.weight").T


def qwen_moe(w, c, y, h):  # the expert layer of Qwen's models
    p = softmax(w.dense(y, h + "gate"))
    chosen = largest(p, c["num_experts_per_tok"])
    p = np.take_along_axis(p, chosen, -1)
    if c["norm_topk_prob"]: p = p / p.sum(-1, keepdims=True)
    out = mixture(y, p, chosen, *(w(f"{h}experts.{o}_proj.weight") for o in ("gate", "up", "down")))
    if not w.has(h + "shared_expert_gate.weight"): return out
    beside = swiglu(y, *(w(f"{h}shared_expert.{o}_proj.weight") for o in ("gate", "up", "down")))
    return out + beside / (1 + np.exp(-w.dense(y, h + "shared_expert_gate")))


def deepseek(w, c, ids):
    x = w("model.embed_tokens.weight")[ids]
    n, eps, scaling = c["num_attention_heads"], c["rms_norm_eps"], c["rope_scaling"]
    v3 = c["model_type"] == "deepseek_v3"
    by = c["qk_rope_head_dim"]
    sharper = 0.1 * scaling["mscale_all_dim"] * math.log(scaling["factor"]) + 1
    for l in range(c["num_hidden_layers"]):
        h = f"model.layers.{l}.self_attn."
        y = rms_norm(x, w(f"model.layers.{l}.input_layernorm.weight"), eps)
        few = rms_norm(w.dense(y, h + "q_a_proj"), w(h + "q_a_layernorm.weight"), 1e-6) if c["q_lora_rank"] else y
        q = h + ("q_b_proj." if c["q_lora_rank"] else "q_proj.")
        q = np.concatenate([heads_of(w.dense(few, q + "nope"), n),
                            rotate_pairs(heads_of(w.dense(few, q + "rope"), n), c["rope_theta"], by, scaling)], -1)
        few = rms_norm(w.dense(y, h + "kv_a_proj_with_mqa.latent"), w(h + "kv_a_layernorm.weight"), 1e-6)
        key = rotate_pairs(w.dense(y, h + "kv_a_proj_with_mqa.rope")[None], c["rope_theta"], by, scaling)
        k = np.concatenate([heads_of(w.dense(few, h + "kv_b_proj.k"), n), np.repeat(key, n, 0)], -1)
        a = attend(q, k, heads_of(w.dense(few, h + "kv_b_proj.v"), n), q.shape[-1] ** -0.5 * sharper ** 2)
        x = x + w.dense(a, h + "o_proj")
        y = rms_norm(x, w(f"model.layers.{l}.post_attention_layernorm.weight"), eps)
        h = f"model.layers.{l}.mlp."
        if l < c["first_k_dense_replace"]:
            x = x + swiglu(y, *(w(f"{h}{o}_proj.weight") for o in ("gate", "up", "down")))
            continue
        p = w.dense(y, h + "gate")
        p = 1 / (1 + np.exp(-p)) if v3 else softmax(p)
        by_what = p + w(h + "gate.e_score_correction_bias") if v3 else p
        if c["topk_method"] != "greedy":  # experts of other groups than the best cannot be chosen
            groups = by_what.reshape(SEQ, c["n_group"], -1)
            worth = np.sort(groups, -1)[..., -2:].sum(-1) if v3 else groups.max(-1)
            kept = np.zeros_like(worth)
            np.put_along_axis(kept, largest(worth, c["topk_group"]), 1, -1)
            by_what = np.where(np.repeat(kept, groups.shape[-1], -1) > 0, by_what, -np.inf)
        chosen = largest(by_what, c["num_experts_per_tok"])
        p = np.take_along_axis(p, chosen, -1)
        if c["norm_topk_prob"]: p = p / p.sum(-1, keepdims=True)
        out = mixture(y, p * c["routed_scaling_factor"], chosen,
                      *(w(f"{h}experts.{o}_proj.weight") for o in ("gate", "up", "down")))
        x = x + out + swiglu(y, *(w(f"{h}shared_experts.{o}_proj.weight") for o in ("gate", "up", "down")))
    return rms_norm(x, w("model.norm.weight"), eps) @ w("lm_head.weight").T


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
        if kind in ("qwen3", "qwen3_moe"):
            q = rms_norm(q, w(h + "self_attn.q_norm.weight"), eps)
            k = rms_norm(k, w(h + "self_attn.k_norm.weight"), eps)
        d = q.shape[-1]
        turned = int(c.get("partial_rotary_factor", 1) * d)
        turn = rotate_pairs if kind == "cohere" else rotate_half
        q, k = (turn(p, base, turned, c.get("rope_scaling")) for p in (q, k))
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
        if kind.endswith("moe"):
            x = x + qwen_moe(w, c, z, h + "mlp.")
            continue
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
SMALL = {"n_layer": 2, "num_hidden_layers": 2, "num_layers": 2, "num_decoder_layers": 2, "n_head": 4,
         "num_attention_heads": 4, "num_heads": 4,
         "n_embd": 32, "hidden_size": 32, "word_embed_proj_dim": 32, "intermediate_size": 48, "ffn_dim": 48,
         "vocab_size": 256, "n_positions": 32, "max_position_embeddings": 32, "window_size": 5, "sliding_window": 5,
         "rotary_dim": 4, "rotary_pct": 0.5, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
         "n_heads": 4, "n_layers": 2, "image_size": 8, "patch_size": 2, "num_labels": 256, "d_model": 32, "d_kv": 10,
         "d_ff": 40,
         "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10, "max_seq_len": 32,
         "ffn_hidden_size": 16, "kv_n_heads": 2,
         "clip_qkv": 0.8, "moe_num_experts": 4, "moe_top_k": 2, "num_experts": 6, "num_experts_per_tok": 3,
         "n_routed_experts": 8, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 24, "kv_lora_rank": 12,
         "q_lora_rank": 20, "qk_nope_head_dim": 6, "qk_rope_head_dim": 8, "v_head_dim": 10, "first_k_dense_replace": 1,
         "original_max_position_embeddings": 400, "router_aux_loss_coef": 0.0, "moe_loss_weight": 0.0,
         "aux_loss_alpha": 0.0, "query_pre_attn_scalar": 12, "initializer_range": 0.2, "init_std": 0.2,
         "logit_scale": 0.5}
ALL = {"gpt2": gpt2, "opt-125m": opt, "gpt-neo-125m": gpt_neo, "pythia-160m": gpt_neox, "gpt-j-6b": gptj,
       "bloom-560m": bloom, "falcon-7b": falcon, "falcon-40b": falcon, "llama-3-8b": llama_like,
       "mistral-7b": llama_like, "qwen2-7b": llama_like, "qwen3-8b": llama_like, "gemma-2b": llama_like,
       "gemma-2-9b": llama_like, "phi-2": phi, "phi-3-mini": llama_like, "stablelm-3b": llama_like,
       "olmo-2-7b": llama_like, "command-r": llama_like, "mpt-7b": mpt, "llama-3.1-8b": llama_like, "dbrx": dbrx,
       "qwen1.5-moe-a2.7b": llama_like, "qwen3-30b-a3b": llama_like, "deepseek-v2-lite": deepseek,
       "deepseek-v3": deepseek, "bert-base": bert, "roberta-base": bert,
       "t5-small": t5, "t5-v1.1-small": t5,
       "vit-base": vit}
MASKED = {"bert-base", "roberta-base"}


def small(c):
    return {k: small(v) if isinstance(v, dict) else SMALL.get(k, v) if v is not None else None for k, v in c.items()}


def small_config(model):
    at = os.path.join(os.path.dirname(__file__), "..", "examples", "models", model + ".json")
    c = small(json.load(open(at)))
    for key in ("num_key_value_heads", "num_kv_heads"):
        if c.get(key): c[key] = 1 if c[key] == 1 else 2 if c[key] < 30 else 4
    if model.startswith("deepseek") or model.startswith("qwen1.5"): c["num_key_value_heads"] = 4
    if c.get("head_dim"): c["head_dim"] = 12
    if c.get("partial_rotary_factor"): c["partial_rotary_factor"] = 0.5
    for key in c:
        if "drop" in key: c[key] = 0.0 if c[key] is not None else None
    if model == "roberta-base": c["max_position_embeddings"] += 2
    if model == "bloom-560m": c["n_head"], c["hidden_size"] = 6, 48  # slopes of no power of two
    if model == "mpt-7b": c["n_heads"], c["d_model"] = 6, 48
    if model == "gpt-neo-125m": c["attention_types"] = [[["global", "local"], 1]]
    if model == "deepseek-v3": c["n_group"], c["topk_group"] = 4, 2
    if any("experts" in k for k in (*c, *c.get("ffn_config", {}))): c["capacity_factor"] = 8.0  # none is dropped
    return c


def losses(logits, targets):
    top = logits.max(-1, keepdims=True)
    return np.log(np.exp(logits - top).sum(-1)) + top[:, 0] - logits[np.arange(len(targets)), targets]


def loss_of(model, weights, config, text, step):
    if model not in MASKED and ALL[model] not in (t5, vit):
        return np.mean([losses(ALL[model](weights, config, text[at:at + SEQ]), text[at + 1:at + 1 + SEQ])
                        for at in rows_of(step)])
    if ALL[model] == vit:
        size = config["num_channels"] * config["image_size"] ** 2
        return np.mean([losses(vit(weights, config, (text[at:at + size] / 128 - 1).reshape(-1, size // 16)),
                               text[at + size:at + size + 1]) for at in rows_of(step, 1, size)])
    if ALL[model] == t5:
        return np.mean([losses(t5(weights, config, text[at:at + SEQ], text[at + SEQ:at + 2 * SEQ]),
                               text[at + SEQ + 1:at + 2 * SEQ + 1]) for at in rows_of(step, SEQ + 1)])
    out = []  # of what was hidden
    for r, at in enumerate(rows_of(step, 0)):
        hidden = np.array([philox([(step * ROWS + r) * SEQ + i, 0, 1, 0], [SEED, 0])[0] % 100 < 15 for i in range(SEQ)])
        row = text[at:at + SEQ]
        out.extend(losses(ALL[model](weights, config, np.where(hidden, 0, row)), row)[hidden])
    return np.mean(out)


def run(*arguments):
    done = subprocess.run([cfp, *arguments], capture_output=True, text=True)
    if done.returncode != 0: raise SystemExit(f"FAILED: cfp {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")


def length_of(config):  # an image says it itself
    return [] if "image_size" in config else ["--seq", str(SEQ)]


if __name__ == "__main__":
    text = os.path.join(folder, "text")
    open(text, "wb").write(TEXT)
    failed = 0
    for model in sys.argv[3:] or ALL:
        config = small_config(model)
        path = {k: os.path.join(folder, f"{model}.{k}") for k in ("json", "safetensors", "next", "summary")}
        json.dump(config, open(path["json"], "w"))
        common = ["--model", path["json"], "--mesh", "data=2", "--batch", str(ROWS), *length_of(config), "--text", text,
                  "--seed", str(SEED), "--rate", "0.01"]
        run("train", *common, "--steps", "1", "--save-state", path["safetensors"])
        for name, t in read_safetensors(path["safetensors"], np.float64).items():  # what training leaves at 0
            if name.endswith("e_score_correction_bias"):
                set_tensor(path["safetensors"], name, 0.3 * np.cos(7.0 * np.arange(t.size) + len(name)))
        run("train", *common, "--steps", "1", "--load-state", path["safetensors"], "--summary", path["summary"])
        said = json.load(open(path["summary"]))["training"]["loss"][0]
        weights, ids = Weights(read_safetensors(path["safetensors"], np.float64)), np.frombuffer(TEXT, np.uint8).astype(int)
        expected = loss_of(model, weights, config, ids, 2)
        off = abs(said - expected) / expected
        print(f"{model:16} {said:.7f} {expected:.7f} {off:.1e}{'' if off <= 1e-5 else '  FAILED'}", flush=True)
        failed += not off <= 1e-5
    sys.exit(failed)
