"""weights.py CFP FOLDER [MODEL...]: checkpoints of random numbers as the families' authors write them (names, joined and
apart, types of numbers, in one file or several), made by numpy alone. `cfp train --load-weights` must have the loss that
a forward pass in numpy has of them, and write them back as they were, to the bit."""
import json, os, struct, sys
import numpy as np
import families
from written_apart import read_file
from families import (ROWS, SEED, SEQ, TEXT, Weights, attend, bloom, dbrx, deepseek, falcon, folder, gpt2, gpt_neox,
                      heads_of, llama_like, loss_of, rms_norm, rotate_half, run, silu, small_config, vit)

TYPES = {"F32": 4, "F16": 2, "BF16": 2}


def stored(x, kind):
    if kind == "F32": return x.astype("<f4").tobytes()
    if kind == "F16": return x.astype("<f2").tobytes()
    bits = x.astype("<f4").view("<u4")
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


def read(data, kind, shape):
    if kind == "BF16": x = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    else: x = np.frombuffer(data, "<f4" if kind == "F32" else "<f2")
    return x.astype(np.float64).reshape(shape)


def write_safetensors(path, tensors, kind):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, x in tensors.items():
        size = x.size * TYPES[kind]
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(stored(x, kind) for x in tensors.values()))


# What the authors' checkpoints hold: names and shapes.
def gpt2_tensors(c):
    d, v = c["n_embd"], c["vocab_size"]
    yield "wte.weight", v, d
    yield "wpe.weight", c["n_positions"], d
    for l in range(c["n_layer"]):
        for name, i, o in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, 4 * d), ("mlp.c_proj", 4 * d, d)):
            yield f"h.{l}.{name}.weight", i, o
            yield f"h.{l}.{name}.bias", o
        for name in ("ln_1", "ln_2"):
            yield f"h.{l}.{name}.weight", d
            yield f"h.{l}.{name}.bias", d
    yield "ln_f.weight", d
    yield "ln_f.bias", d


def bloom_tensors(c):
    d, v = c["hidden_size"], c["vocab_size"]
    norms = ["word_embeddings_layernorm", "ln_f"]
    yield "word_embeddings.weight", v, d
    for l in range(c["n_layer"]):
        for name, i, o in (("self_attention.query_key_value", d, 3 * d), ("self_attention.dense", d, d),
                           ("mlp.dense_h_to_4h", d, 4 * d), ("mlp.dense_4h_to_h", 4 * d, d)):
            yield f"h.{l}.{name}.weight", o, i
            yield f"h.{l}.{name}.bias", o
        norms += [f"h.{l}.input_layernorm", f"h.{l}.post_attention_layernorm"]
    for name in norms:
        yield name + ".weight", d
        yield name + ".bias", d


def neox_tensors(c):
    d, v, m = c["hidden_size"], c["vocab_size"], c["intermediate_size"]
    yield "gpt_neox.embed_in.weight", v, d
    norms = ["gpt_neox.final_layer_norm"]
    for l in range(c["num_hidden_layers"]):
        for name, i, o in (("attention.query_key_value", d, 3 * d), ("attention.dense", d, d),
                           ("mlp.dense_h_to_4h", d, m), ("mlp.dense_4h_to_h", m, d)):
            yield f"gpt_neox.layers.{l}.{name}.weight", o, i
            yield f"gpt_neox.layers.{l}.{name}.bias", o
        norms += [f"gpt_neox.layers.{l}.input_layernorm", f"gpt_neox.layers.{l}.post_attention_layernorm"]
    for name in norms:
        yield name + ".weight", d
        yield name + ".bias", d
    yield "embed_out.weight", v, d


def falcon_tensors(c):
    d, v, n = c["hidden_size"], c["vocab_size"], c["num_attention_heads"]
    kv = c["num_kv_heads"] if c["new_decoder_architecture"] else 1
    yield "transformer.word_embeddings.weight", v, d
    norms = ["transformer.ln_f"]
    for l in range(c["num_hidden_layers"]):
        h = f"transformer.h.{l}."
        yield h + "self_attention.query_key_value.weight", d // n * (n + 2 * kv), d
        yield h + "self_attention.dense.weight", d, d
        yield h + "mlp.dense_h_to_4h.weight", 4 * d, d
        yield h + "mlp.dense_4h_to_h.weight", d, 4 * d
        norms += [h + "ln_attn", h + "ln_mlp"] if c["new_decoder_architecture"] else [h + "input_layernorm"]
    for name in norms:
        yield name + ".weight", d
        yield name + ".bias", d


def llama_tensors(c):
    d, v, m, n = c["hidden_size"], c["vocab_size"], c["intermediate_size"], c["num_attention_heads"]
    kind, kv, h = c["model_type"], c.get("num_key_value_heads") or n, c.get("head_dim") or d // n
    yield "model.embed_tokens.weight", v, d
    for l in range(c["num_hidden_layers"]):
        a, b = f"model.layers.{l}.self_attn.", f"model.layers.{l}.mlp."
        if kind == "phi3":
            yield a + "qkv_proj.weight", h * (n + 2 * kv), d
            yield b + "gate_up_proj.weight", 2 * m, d
        else:
            yield a + "q_proj.weight", h * n, d
            yield a + "k_proj.weight", h * kv, d
            yield a + "v_proj.weight", h * kv, d
        yield a + "o_proj.weight", d, h * n
        if kind == "qwen3":
            yield a + "q_norm.weight", h
            yield a + "k_norm.weight", h
        if kind == "mixtral":
            b = f"model.layers.{l}.block_sparse_moe."
            yield b + "gate.weight", c["num_local_experts"], d
            for e in range(c["num_local_experts"]):
                yield f"{b}experts.{e}.w1.weight", m, d
                yield f"{b}experts.{e}.w2.weight", d, m
                yield f"{b}experts.{e}.w3.weight", m, d
        else:
            if kind != "phi3":
                yield b + "gate_proj.weight", m, d
                yield b + "up_proj.weight", m, d
            yield b + "down_proj.weight", d, m
        for name in ["input_layernorm", "post_attention_layernorm"] + (
                ["pre_feedforward_layernorm", "post_feedforward_layernorm"] if kind == "gemma2" else []):
            yield f"model.layers.{l}.{name}.weight", d
    yield "model.norm.weight", d
    if kind not in ("gemma", "gemma2"): yield "lm_head.weight", v, d


def deepseek_tensors(c):
    d, v, n = c["hidden_size"], c["vocab_size"], c["num_attention_heads"]
    still, turned, of_value, few = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"], c["kv_lora_rank"]
    yield "model.embed_tokens.weight", v, d

    def mlp(h, m):
        yield h + "gate_proj.weight", m, d
        yield h + "up_proj.weight", m, d
        yield h + "down_proj.weight", d, m

    for l in range(c["num_hidden_layers"]):
        a, b = f"model.layers.{l}.self_attn.", f"model.layers.{l}.mlp."
        yield a + "q_proj.weight", n * (still + turned), d
        yield a + "kv_a_proj_with_mqa.weight", few + turned, d
        yield a + "kv_a_layernorm.weight", few
        yield a + "kv_b_proj.weight", n * (still + of_value), few
        yield a + "o_proj.weight", d, n * of_value
        yield f"model.layers.{l}.input_layernorm.weight", d
        yield f"model.layers.{l}.post_attention_layernorm.weight", d
        if l < c["first_k_dense_replace"]:
            yield from mlp(b, c["intermediate_size"])
            continue
        yield b + "gate.weight", c["n_routed_experts"], d
        for e in range(c["n_routed_experts"]): yield from mlp(f"{b}experts.{e}.", c["moe_intermediate_size"])
        yield from mlp(b + "shared_experts.", c["n_shared_experts"] * c["moe_intermediate_size"])
    yield "model.norm.weight", d
    yield "lm_head.weight", v, d


def dbrx_tensors(c):
    d, v, n, kv = c["d_model"], c["vocab_size"], c["n_heads"], c["attn_config"]["kv_n_heads"]
    f, e = c["ffn_config"]["ffn_hidden_size"], c["ffn_config"]["moe_num_experts"]
    yield "transformer.wte.weight", v, d
    for l in range(c["n_layers"]):
        h = f"transformer.blocks.{l}."
        yield h + "norm_attn_norm.norm_1.weight", d
        yield h + "norm_attn_norm.attn.Wqkv.weight", d // n * (n + 2 * kv), d
        yield h + "norm_attn_norm.attn.out_proj.weight", d, d
        yield h + "norm_attn_norm.norm_2.weight", d
        yield h + "ffn.router.layer.weight", e, d
        for w in ("w1", "v1", "w2"): yield f"{h}ffn.experts.mlp.{w}", e * f, d
    yield "transformer.norm_f.weight", d
    yield "lm_head.weight", v, d


def vit_tensors(c):
    d, m, size = c["hidden_size"], c["intermediate_size"], c["patch_size"]
    e = "vit.embeddings."
    yield e + "cls_token", 1, 1, d
    yield e + "position_embeddings", 1, (c["image_size"] // size) ** 2 + 1, d
    yield e + "patch_embeddings.projection.weight", d, c["num_channels"], size, size
    yield e + "patch_embeddings.projection.bias", d
    for l in range(c["num_hidden_layers"]):
        h = f"vit.encoder.layer.{l}."
        for name, i, o in (("attention.attention.query", d, d), ("attention.attention.key", d, d),
                           ("attention.attention.value", d, d), ("attention.output.dense", d, d),
                           ("intermediate.dense", d, m), ("output.dense", m, d)):
            yield f"{h}{name}.weight", o, i
            yield f"{h}{name}.bias", o
        for name in ("layernorm_before", "layernorm_after"):
            yield f"{h}{name}.weight", d
            yield f"{h}{name}.bias", d
    yield "vit.layernorm.weight", d
    yield "vit.layernorm.bias", d
    yield "classifier.weight", c["num_labels"], d
    yield "classifier.bias", c["num_labels"]


def mixtral(w, c, ids):
    x, n, m = w("model.embed_tokens.weight")[ids], c["num_attention_heads"], c["num_key_value_heads"]
    for l in range(c["num_hidden_layers"]):
        h = f"model.layers.{l}."
        y = rms_norm(x, w(h + "input_layernorm.weight"), c["rms_norm_eps"])
        q, k, v = (heads_of(w.dense(y, f"{h}self_attn.{p}_proj"), i) for p, i in (("q", n), ("k", m), ("v", m)))
        d = q.shape[-1]
        q, k = rotate_half(q, c["rope_theta"], d), rotate_half(k, c["rope_theta"], d)
        x = x + w.dense(attend(q, k, v, d ** -0.5), h + "self_attn.o_proj")
        y = rms_norm(x, w(h + "post_attention_layernorm.weight"), c["rms_norm_eps"])
        moe = h + "block_sparse_moe."
        score = w.dense(y, moe + "gate")
        for s in range(SEQ):
            best = np.argsort(-score[s])[:c["num_experts_per_tok"]]
            share = np.exp(score[s][best] - score[s][best].max())
            for e, g in zip(best, share / share.sum()):
                one = f"{moe}experts.{e}."
                x[s] = x[s] + g * w.dense(silu(w.dense(y[s], one + "w1")) * w.dense(y[s], one + "w3"), one + "w2")
    return w.dense(rms_norm(x, w("model.norm.weight"), c["rms_norm_eps"]), "lm_head")


def parts_of(tensors, c):  # of joined weights what the forward passes call their parts
    out = dict(tensors)
    for name, x in tensors.items():
        stem, end = name.rsplit(".", 1)
        if c["model_type"] == "falcon" and stem.endswith("query_key_value"):
            n = c["num_attention_heads"]
            kv = c["num_kv_heads"] if c["new_decoder_architecture"] else 1
            groups = x.reshape(kv, n // kv + 2, c["hidden_size"] // n, -1)
            for part, rows in (("q", groups[:, :-2]), ("k", groups[:, -2]), ("v", groups[:, -1])):
                out[f"{stem}.{part}.{end}"] = rows.reshape(-1, x.shape[1])
        if stem.endswith("qkv_proj"):
            n, kv = c["num_attention_heads"], c["num_key_value_heads"]
            h = c["hidden_size"] // n
            for part, rows in zip("qkv", np.split(x, [n * h, (n + kv) * h])): out[f"{stem}.{part}.{end}"] = rows
        if stem.endswith("Wqkv"):
            n, kv = c["n_heads"], c["attn_config"]["kv_n_heads"]
            h = c["d_model"] // n
            for part, rows in zip("qkv", np.split(x, [n * h, (n + kv) * h])): out[f"{stem}.{part}.{end}"] = rows
        if name.rsplit(".", 2)[-2:-1] == ["mlp"] and end in ("w1", "v1", "w2"):  # of dbrx: the rows of all experts
            rows = x.reshape(c["ffn_config"]["moe_num_experts"], -1, x.shape[1])
            out[name + ".weight"] = rows.transpose(0, 2, 1) if end == "w2" else rows
        if c["model_type"] == "vit" and x.shape[0] == 1: out[name] = x.reshape([n for n in x.shape if n > 1])
        if c["model_type"] == "deepseek_v2":
            if stem.endswith(("q_proj", "kv_b_proj")):
                heads = x.reshape(c["num_attention_heads"], -1, x.shape[1])
                parts = ("nope", "rope") if stem.endswith("q_proj") else ("k", "v")
                for part, rows in zip(parts, np.split(heads, [c["qk_nope_head_dim"]], 1)):
                    out[f"{stem}.{part}.{end}"] = rows.reshape(-1, x.shape[1])
            if stem.endswith("kv_a_proj_with_mqa"):
                for part, rows in zip(("latent", "rope"), np.split(x, [c["kv_lora_rank"]])):
                    out[f"{stem}.{part}.{end}"] = rows
        if ".experts.0." in name:  # one by one: stacked
            count = c.get("n_routed_experts") or c.get("num_local_experts")
            out[name.replace(".experts.0.", ".experts.")] = np.stack(
                [tensors[name.replace(".experts.0.", f".experts.{e}.")] for e in range(count)])
        if stem.endswith("gate_up_proj"):
            for part, rows in zip(("gate", "up"), np.split(x, 2)): out[f"{stem}.{part}.{end}"] = rows
    return out


# Of each: what computes, what its checkpoint holds, as which numbers, in how many files, what stands before its names.
ALL = {"gpt2": (gpt2, gpt2_tensors, "F32", 1, "transformer."), "bloom-560m": (bloom, bloom_tensors, "F16", 1, ""),
       "pythia-160m": (gpt_neox, neox_tensors, "F16", 2, ""), "falcon-7b": (falcon, falcon_tensors, "BF16", 2, ""),
       "falcon-40b": (falcon, falcon_tensors, "F32", 1, ""), "llama-3-8b": (llama_like, llama_tensors, "BF16", 3, ""),
       "qwen3-8b": (llama_like, llama_tensors, "BF16", 1, ""), "gemma-2-9b": (llama_like, llama_tensors, "F32", 2, ""),
       "phi-3-mini": (llama_like, llama_tensors, "BF16", 2, ""), "mixtral-8x7b": (mixtral, llama_tensors, "F32", 2, ""),
       "deepseek-v2-lite": (deepseek, deepseek_tensors, "BF16", 2, ""), "dbrx": (dbrx, dbrx_tensors, "BF16", 1, ""),
       "vit-base": (vit, vit_tensors, "F32", 1, "")}


def write_checkpoint(at, tensors, kind, files):
    os.makedirs(at, exist_ok=True)
    if files == 1: return write_safetensors(os.path.join(at, "model.safetensors"), tensors, kind)
    names, where = list(tensors), {}
    for f in range(files):
        file = f"model-{f + 1:05}-of-{files:05}.safetensors"
        some = names[f::files]
        write_safetensors(os.path.join(at, file), {n: tensors[n] for n in some}, kind)
        where.update((n, file) for n in some)
    json.dump({"metadata": {}, "weight_map": where}, open(os.path.join(at, "model.safetensors.index.json"), "w"))


def config_of(model):
    c = small_config(model)
    if c["model_type"] == "mixtral":
        c.update(num_local_experts=4, capacity_factor=4.0, router_aux_loss_coef=0.0)  # nothing is dropped
    return c


def check(model):
    forward, tensors_of, kind, files, prefix = ALL[model]
    config, random = config_of(model), np.random.default_rng(SEED)
    at = os.path.join(folder, model)
    tensors = {}
    for name, *shape in tensors_of(config):
        x = random.normal(0, 0.2, shape) + (len(shape) == 1 and name.endswith("weight") and "gemma" not in model)
        tensors[name] = read(stored(x, kind), kind, shape)
    extra = {}  # what checkpoints hold beside: masks, copies of tied weights
    if model == "gpt2": extra = {"h.0.attn.bias": np.tril(np.ones((1, 1, 32, 32)))}
    if model.startswith("gemma"): extra = {"lm_head.weight": tensors["model.embed_tokens.weight"]}
    write_checkpoint(at, {prefix + n: x for n, x in {**tensors, **extra}.items()}, kind, files)
    json.dump(config, open(os.path.join(at, "config.json"), "w"))
    back, summary = os.path.join(at, "back.safetensors"), os.path.join(at, "summary")
    run("train", "--model", at, "--load-weights", at, "--mesh", "data=2", "--batch", str(ROWS), *families.length_of(config),
        "--text", text, "--seed", str(SEED), "--rate", "0", "--steps", "1", "--summary", summary, "--save-weights", back)
    said = json.load(open(summary))["training"]["loss"][0]
    ids, weights = np.frombuffer(TEXT, np.uint8).astype(int), Weights(parts_of(tensors, config))
    families.ALL.setdefault(model, forward)
    expected = loss_of(model, weights, config, ids, 1)
    off = abs(said - expected) / expected
    same = read_file(back) == {prefix + n: (kind, list(x.shape), stored(x, kind)) for n, x in tensors.items()}
    good = off <= 1e-5 and same
    print(f"{model:16} {kind:5} {files} file{'s' if files > 1 else ' '} loss {said:.7f} {expected:.7f} {off:.1e}, "
          f"{'written back the same' if same else 'written back otherwise'}{'' if good else '  FAILED'}", flush=True)
    return not good


os.makedirs(folder, exist_ok=True)
text = os.path.join(folder, "text")
open(text, "wb").write(TEXT)
sys.exit(sum([check(model) for model in sys.argv[3:] or ALL]))
