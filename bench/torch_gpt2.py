# torch_gpt2.py FILE: tokens per second of GPT-2 124M training steps in PyTorch (batch 16 x 1024, bfloat16 products, float32 weights, fused
# AdamW, gradients clipped), eager and compiled, as JSON.
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

BATCH, LENGTH, WIDTH, HEADS, LAYERS, VOCABULARY = 16, 1024, 768, 12, 12, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (t.view(b, s, HEADS, WIDTH // HEADS).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, WIDTH))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(LENGTH, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def tokens_per_second(compiled):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    run = torch.compile(model) if compiled else model
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), device="cuda")
    times = []
    for step in range(40):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        if step >= 10:
            times.append(time.perf_counter() - begin)
    return BATCH * LENGTH / sorted(times)[len(times) // 2]


figures = {"torch": torch.__version__, "torch_eager": tokens_per_second(False), "torch_compile": None}
try:
    figures["torch_compile"] = tokens_per_second(True)
except Exception as e:  # it needs a compiler
    print("torch.compile failed:", str(e).splitlines()[0], file=sys.stderr)
json.dump(figures, open(sys.argv[1], "w"))
