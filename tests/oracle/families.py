#!/usr/bin/env python3
"""Writes model directories of every family with transformers, and compares transformers' results with ours.

    families.py make DIR            writes DIR/<name>/ with random weights, one for each of FAMILIES
    families.py check DIR HEADS [NAME ...]
                                    runs HEADS (tests/oracle/heads.c) on each and compares:
                                    log-probs of the whole vocabulary and all gradients in f32,
                                    with float64 as the truth; log-probs in bf16 with autocast
    families.py names               the names, one per line

Needs torch, transformers and tokenizers. The models are small but have all features of real ones:
grouped heads, a separate head width, biases, q/k norms, tied and untied heads, each kind of rotary
scaling with positions on both sides of its original context.
"""
import contextlib
import importlib
import json
import os
import struct
import subprocess
import sys
import tempfile

import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers

VOCAB, POSITIONS = 259, 128  # the tokenizer's size
BASE = {"vocab_size": VOCAB, "max_position_embeddings": POSITIONS, "hidden_size": 48, "intermediate_size": 88,
        "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 16,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32}
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
SCALARS = {"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.08, "logits_scaling": 1.5}
MICRO = {**SCALARS, "attention_multiplier": 0.015625, "logits_scaling": 10.0}  # as published for Granite 4 micro
# A Granite 4 of which all layers have attention. transformers wants Mamba's sizes to agree nevertheless.
HYBRID = {**SCALARS, "layer_types": ["attention"] * 3, "num_local_experts": 0, "shared_intermediate_size": 72,
          "position_embedding_type": "rope", "mamba_n_heads": 4, "mamba_d_head": 24}


def config(kind, **more):
    return kind(**{**BASE, **more})


def gemma(**more):
    """The width's square root has few digits, so that bf16 does not round it."""
    return config(hf.Gemma3TextConfig, **{**dict(hidden_size=64, num_attention_heads=4), **more})


def gemma2(kind=hf.Gemma2Config, **more):
    """Caps that bend scores and logits of random weights."""
    return config(kind, **{**dict(hidden_size=64, num_attention_heads=4, sliding_window=9, query_pre_attn_scalar=1,
                                  attn_logit_softcapping=2.0, final_logit_softcapping=3.0), **more})


def phi(head_dim=8, **more):
    return hf.Phi3Config(**{**BASE, "hidden_size": 6 * head_dim, "head_dim": head_dim, **more})


def qwen35(**more):
    """Heads of keys and values of the delta rule, with widths of their own; every fourth layer has attention."""
    return config(hf.Qwen3_5TextConfig, **{**dict(num_hidden_layers=5, linear_num_key_heads=2, linear_num_value_heads=4,
                                                  linear_key_head_dim=16, linear_value_head_dim=16), **more})


def lfm2(*kinds, **more):
    """Layers by their kind: c for a convolution, a for attention."""
    types = ["conv" if k == "c" else "full_attention" for k in kinds]
    more = {**dict(head_dim=8, block_auto_adjust_ff_dim=False), **more}
    return config(hf.Lfm2Config, layer_types=types or None, num_hidden_layers=len(types) or 3, **more)


def longrope(short, long, **more):
    return {"rope_type": "longrope", "short_factor": short, "long_factor": long, **more}


FAMILIES = {
    "llama2": lambda: config(hf.LlamaConfig, num_key_value_heads=6, head_dim=8, tie_word_embeddings=False),
    "llama3": lambda: config(hf.LlamaConfig, rope_parameters=dict(LLAMA3), tie_word_embeddings=False),
    "smollm2": lambda: config(hf.LlamaConfig, num_key_value_heads=3, tie_word_embeddings=True),
    "llama-linear": lambda: config(hf.LlamaConfig, rope_parameters=dict(LINEAR)),
    "mistral": lambda: config(hf.MistralConfig, sliding_window=None, head_dim=24),
    "mistral-window": lambda: config(hf.MistralConfig, sliding_window=24),
    "qwen2-window": lambda: config(hf.Qwen2Config, use_sliding_window=True, sliding_window=9, max_window_layers=1, head_dim=8),
    "qwen3-window": lambda: config(hf.Qwen3Config, use_sliding_window=True, sliding_window=30,
                                   layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "qwen2": lambda: config(hf.Qwen2Config, tie_word_embeddings=True, head_dim=8),
    "qwen2-yarn": lambda: config(hf.Qwen2Config, rope_parameters=dict(YARN), head_dim=8),
    "qwen3": lambda: config(hf.Qwen3Config, head_dim=32, tie_word_embeddings=True),
    "smollm3": lambda: config(hf.SmolLM3Config, num_hidden_layers=5, head_dim=8),
    "smollm3-every": lambda: config(hf.SmolLM3Config, no_rope_layer_interval=2, tie_word_embeddings=False),
    "smollm3-list": lambda: config(hf.SmolLM3Config, no_rope_layers=[0, 1, 0], num_key_value_heads=6, head_dim=24),
    "smollm3-bias": lambda: config(hf.SmolLM3Config, no_rope_layers=[1, 0, 1], attention_bias=True, mlp_bias=True),
    "smollm3-none": lambda: config(hf.SmolLM3Config, no_rope_layers=[0, 0, 0], num_key_value_heads=1, head_dim=8),
    "smollm3-llama3": lambda: config(hf.SmolLM3Config, no_rope_layers=[1, 1, 0], num_key_value_heads=3,
                                     rope_parameters=dict(LLAMA3), tie_word_embeddings=False),
    "granite": lambda: config(hf.GraniteConfig, tie_word_embeddings=True, **SCALARS),
    "granite-untied": lambda: config(hf.GraniteConfig, tie_word_embeddings=False, num_key_value_heads=6, head_dim=8,
                                     rms_norm_eps=1e-3, **SCALARS),
    "granite-bias": lambda: config(hf.GraniteConfig, attention_bias=True, mlp_bias=True, head_dim=24, **SCALARS),
    "granite-yarn": lambda: config(hf.GraniteConfig, rope_parameters=dict(YARN), num_key_value_heads=1, **SCALARS),
    "granite-hybrid": lambda: config(hf.GraniteMoeHybridConfig, tie_word_embeddings=True, **HYBRID),
    "granite-no-rope": lambda: config(hf.GraniteMoeHybridConfig, **{**HYBRID, "position_embedding_type": None}),
    "gemma3": lambda: gemma(sliding_window=9, layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "gemma3-old": lambda: gemma(sliding_window=1, sliding_window_pattern=2, rope_theta=5e5, rope_local_base_freq=500.0,
                                rope_scaling={"rope_type": "linear", "factor": 8.0}),
    "gemma3-capped": lambda: gemma(sliding_window=17, final_logit_softcapping=3.0, query_pre_attn_scalar=40,
                                   num_key_value_heads=4, tie_word_embeddings=False),
    "gemma3-bias": lambda: gemma(sliding_window=128, attention_bias=True, num_key_value_heads=1,
                                 hidden_activation="silu"),
    "gemma3-heads": lambda: gemma(sliding_window=20, head_dim=256, rms_norm_eps=1e-4),
    "gemma3-linear": lambda: gemma(sliding_window=5, head_dim=24, layer_types=["full_attention"] * 2 + ["sliding_attention"],
                                   rope_parameters={"full_attention": dict(LINEAR), "sliding_attention":
                                                    {"rope_type": "linear", "rope_theta": 100.0, "factor": 2.0}}),
    "gemma2": lambda: gemma2(),
    "gemma2-list": lambda: gemma2(layer_types=["full_attention", "full_attention", "sliding_attention"], head_dim=24,
                                  num_key_value_heads=4, tie_word_embeddings=False),
    "gemma2-published": lambda: gemma2(attn_logit_softcapping=50.0, final_logit_softcapping=30.0, head_dim=256,
                                       sliding_window=64),
    "gemma2-bias": lambda: gemma2(attention_bias=True, num_key_value_heads=1, hidden_activation="silu", sliding_window=1),
    "gemma2-linear": lambda: gemma2(rope_parameters=dict(LINEAR), num_hidden_layers=4, sliding_window=20, rms_norm_eps=1e-4),
    "gemma2-flat": lambda: gemma2(attn_logit_softcapping=0.3, final_logit_softcapping=0.5, sliding_window=128),
    # Not tied: without caps, a tied head would repeat the last token with a probability near 1.
    "vaultgemma": lambda: gemma2(hf.VaultGemmaConfig, layer_types=["full_attention"] * 3, attn_logit_softcapping=None,
                                 final_logit_softcapping=None, num_key_value_heads=4, tie_word_embeddings=False),
    "vaultgemma-capped": lambda: gemma2(hf.VaultGemmaConfig),
    "phi3": lambda: phi(num_key_value_heads=6),
    "phi3-part": lambda: phi(16, partial_rotary_factor=0.75, tie_word_embeddings=True),
    "phi3-window": lambda: phi(24, partial_rotary_factor=0.25, sliding_window=9, num_key_value_heads=1),
    "phi3-short": lambda: phi(original_max_position_embeddings=100, rope_parameters=longrope(
        [1.0, 1.2, 1.5, 4.0], [9.0] * 4)),
    # transformers gives the long factors only to long rows; here it has no others.
    "phi3-long": lambda: phi(16, partial_rotary_factor=0.75, original_max_position_embeddings=32, tie_word_embeddings=True,
                             rope_parameters=longrope([1.0, 1.1, 1.5, 2.0, 3.5, 9.0], [1.0, 1.1, 1.5, 2.0, 3.5, 9.0]),
                             long_factors=True),
    "phi3-scaled": lambda: phi(16, original_max_position_embeddings=32, rope_parameters=longrope(
        [2.0 + i for i in range(8)], [2.0 + i for i in range(8)], factor=3.0, attention_factor=0.8, rope_theta=500.0),
                               long_factors=True, num_key_value_heads=3, sliding_window=20),
    "olmo2": lambda: config(hf.Olmo2Config, num_attention_heads=3, num_key_value_heads=None),
    "olmo2-tied": lambda: config(hf.Olmo2Config, tie_word_embeddings=True, head_dim=24),
    "olmo2-bias": lambda: config(hf.Olmo2Config, attention_bias=True, num_key_value_heads=1, head_dim=8),
    "olmo2-heads": lambda: config(hf.Olmo2Config, num_attention_heads=4, head_dim=256, rms_norm_eps=1e-3),
    "olmo2-yarn": lambda: config(hf.Olmo2Config, rope_parameters=dict(YARN), num_key_value_heads=3),
    "olmo2-llama3": lambda: config(hf.Olmo2Config, rope_parameters=dict(LLAMA3), tie_word_embeddings=True, hidden_act="gelu"),
    # Without a list, all layers but every fourth have the window.
    "olmo3": lambda: config(hf.Olmo3Config, num_hidden_layers=5, sliding_window=9, head_dim=8),
    "olmo3-yarn": lambda: config(hf.Olmo3Config, sliding_window=17, layer_types=[
        "sliding_attention", "full_attention", "sliding_attention"], rope_parameters={"full_attention": dict(YARN), "sliding_attention": {
            "rope_type": "default", "rope_theta": 100.0}}, num_key_value_heads=6),
    "olmo3-old": lambda: config(hf.Olmo3Config, sliding_window=1, layer_types=["full_attention", "sliding_attention", "full_attention"],
                                rope_theta=5e5, rope_scaling={**YARN, "rope_theta": 5e5, "attention_factor": 1.2,
                                                              "beta_fast": 32, "beta_slow": 1}, tie_word_embeddings=True),
    "olmo3-bias": lambda: config(hf.Olmo3Config, sliding_window=128, attention_bias=True, num_key_value_heads=1, head_dim=24),
    "olmo3-linear": lambda: config(hf.Olmo3Config, num_hidden_layers=4, sliding_window=20, rope_parameters={
        "full_attention": dict(LINEAR), "sliding_attention": {"rope_type": "linear", "rope_theta": 100.0, "factor": 2.0}}),
    "olmo3-heads": lambda: config(hf.Olmo3Config, num_attention_heads=4, head_dim=256, sliding_window=5, rms_norm_eps=1e-3,
                                  hidden_act="gelu"),
    "qwen3.5": lambda: qwen35(),
    "qwen3.5-tied": lambda: qwen35(tie_word_embeddings=True, linear_num_key_heads=3, linear_num_value_heads=3,
                                   num_hidden_layers=4, full_attention_interval=2),
    "qwen3.5-list": lambda: qwen35(layer_types=["full_attention", "linear_attention", "linear_attention"], num_hidden_layers=3,
                                   linear_key_head_dim=8, linear_value_head_dim=24, linear_num_value_heads=6, rope_parameters={
                                       "rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.5}),
    "qwen3.5-heads": lambda: qwen35(num_hidden_layers=4, num_attention_heads=4, head_dim=256, rms_norm_eps=1e-3,
                                    linear_conv_kernel_dim=2, linear_num_key_heads=1),
    "qwen3.5-bias": lambda: qwen35(attention_bias=True, num_key_value_heads=1, linear_conv_kernel_dim=3, num_hidden_layers=3,
                                   full_attention_interval=3, linear_key_head_dim=32, linear_value_head_dim=8),
    "qwen3.5-delta": lambda: qwen35(layer_types=["linear_attention"] * 2 + ["full_attention"], num_hidden_layers=3, linear_num_key_heads=1,
                                    linear_num_value_heads=1, linear_key_head_dim=64, linear_value_head_dim=64,
                                    tie_word_embeddings=True),
    "lfm2": lambda: lfm2("c", "a", "c"),
    "lfm2-untied": lambda: lfm2("a", "c", "c", "a", tie_word_embeddings=False, conv_L_cache=2, num_key_value_heads=6,
                                block_auto_adjust_ff_dim=True, block_multiple_of=16, block_ffn_dim_multiplier=1.2),
    "lfm2-bias": lambda: lfm2("c", "c", "a", conv_bias=True, conv_L_cache=4, norm_eps=1e-3),
    "lfm2-indexes": lambda: lfm2(full_attn_idxs=[2], num_key_value_heads=1, head_dim=24),
    "lfm2-deep": lambda: lfm2("c", "c", "a", "c", "c", "a", "c", num_key_value_heads=3, tie_word_embeddings=False),
    "lfm2-heads": lambda: lfm2("c", "a", num_attention_heads=4, head_dim=256, rope_parameters=dict(LINEAR)),
    "gpt2": lambda: hf.GPT2Config(vocab_size=VOCAB, n_positions=POSITIONS, n_embd=48, n_layer=3, n_head=6,
                                  bos_token_id=1, eos_token_id=2),
}
# The width decides how long sums are. Only `check` uses these models, because the other tests would take too long.
WIDTH = {"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 4, "head_dim": 64}
WIDE = {
    "llama3-wide": lambda: config(hf.LlamaConfig, rope_parameters=dict(LLAMA3), tie_word_embeddings=False, **WIDTH),
    "qwen2-wide": lambda: config(hf.Qwen2Config, tie_word_embeddings=True, **WIDTH),
    "qwen3-wide": lambda: config(hf.Qwen3Config, tie_word_embeddings=True, **WIDTH),
    "smollm3-wide": lambda: config(hf.SmolLM3Config, no_rope_layers=[1, 0, 1, 0], **WIDTH),
    "phi3-wide": lambda: phi(**WIDTH, partial_rotary_factor=0.75),
    "granite-wide": lambda: config(hf.GraniteConfig, tie_word_embeddings=True, **WIDTH, **MICRO),
    "gemma2-wide": lambda: gemma2(**WIDTH, num_attention_heads=6, sliding_window=40),
    "gemma3-wide": lambda: gemma(**WIDTH, num_attention_heads=6, sliding_window=40),
    "olmo2-wide": lambda: config(hf.Olmo2Config, rope_parameters={"rope_type": "default", "rope_theta": 5e5}, **WIDTH),
    "olmo3-wide": lambda: config(hf.Olmo3Config, sliding_window=40, **WIDTH),
    "qwen3.5-wide": lambda: qwen35(**WIDTH, linear_key_head_dim=128, linear_value_head_dim=128),
    "lfm2-wide": lambda: lfm2("c", "c", "a", "c", **{k: v for k, v in WIDTH.items() if k != "num_hidden_layers"}),
    "gpt2-wide": lambda: hf.GPT2Config(vocab_size=VOCAB, n_positions=POSITIONS, n_embd=384, n_layer=4, n_head=6,
                                       bos_token_id=1, eos_token_id=2),
}

# Rows of up to 4,096 tokens, for gradients through as many steps.
LONG = {
    "qwen3.5-long": lambda: qwen35(max_position_embeddings=4608, num_attention_heads=2, num_hidden_layers=3,
                                   full_attention_interval=2),
    "lfm2-long": lambda: lfm2("c", "a", "c", max_position_embeddings=4608, num_attention_heads=2),
}
LONG_ROWS = (1, 2, 63, 64, 65, 129, 1000, 4096)


def has_state(name):
    """Whether layers of the model have a state: convolutions, the delta rule."""
    return name.startswith(("qwen3.5", "lfm2"))


LIMITS = {
    "log-prob f32": 1e-4,  # largest difference relative to the largest log-prob
    "f32 error over PyTorch's": 2.0,  # root mean squares, float64 as judge
    "wide f32 error over PyTorch's": 1.0,
    "wide gradient error over PyTorch's": 1.0,
    "1 - cosine of a gradient": 1e-5,  # of the worst tensor
    "1 - cosine of a gradient (state)": 1e-10,  # of models with layers that have a state
    "norm ratio of a gradient - 1": 1e-4,
    "a gradient of 0": 1e-7,  # of the largest tensor's norm; keys that do not rotate have such a bias
    "bf16 error over autocast's": 1.1,  # root mean squares, float64 as judge
}


def tokenizer():
    """Bytes, in GPT-2's order, after two special tokens and one more."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {t: i for i, t in enumerate(["<unk>", "<s>", "</s>"] + alphabet)}
    tok = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    from tokenizers import decoders
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens(["<unk>", "<s>", "</s>"])
    return hf.PreTrainedTokenizerFast(tokenizer_object=tok, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def fill(model, seed):
    """Weights as large as trained ones, gains around 1, and biases large enough to matter."""
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        x = torch.randn(p.shape, generator=g)
        gain = p.dim() == 1 and name.endswith("weight")
        # The gains of these are stored without the 1.
        zero = "gemma" in model.config.model_type or ("qwen3_5" in model.config.model_type and "linear_attn" not in name)
        p.data = 1 - zero + 0.2 * x if gain else 0.1 * x if p.dim() == 1 else x * (0.5 / p.shape[-1] ** 0.5)
        if name.endswith("A_log"):  # states that are forgotten after one to hundreds of tokens
            p.data = torch.log(0.003 * 500 ** torch.rand(p.shape, generator=g))
        if name.endswith("dt_bias"):
            p.data = x
        if "embed_" in name or "wte" in name or "wpe" in name:
            p.data = x * 0.2
    return model.eval()


def make(root):
    tok = tokenizer()
    for i, (name, cfg) in enumerate({**FAMILIES, **WIDE, **LONG}.items()):
        fill(hf.AutoModelForCausalLM.from_config(cfg()), i).save_pretrained(f"{root}/{name}")
        tok.save_pretrained(f"{root}/{name}")


# ---- our side ----


def heads(program, directory, dtype, rows, weight, *teacher):
    """Log-probs of each row's tokens (0 for the first), and gradients of sum(weight * log-prob)."""
    with tempfile.TemporaryDirectory() as tmp:
        with open(f"{tmp}/rows.json", "w") as f:
            json.dump({"rows": rows, "weight": weight}, f)
        subprocess.run([program, directory, dtype, f"{tmp}/rows.json", f"{tmp}/out", *teacher], check=True)
        data, at, out = open(f"{tmp}/out", "rb").read(), 0, {}
    while at < len(data):
        (n,) = struct.unpack_from("<I", data, at)
        name = data[at + 4:at + 4 + n].decode()
        (count,) = struct.unpack_from("<I", data, at + 4 + n)
        at += 8 + n
        out[name] = torch.frombuffer(bytearray(data[at:at + 4 * count]), dtype=torch.float32).double()
        at += 4 * count
    return out


# ---- transformers' side ----


def row_logp(model, row):
    """Log-probs of the whole vocabulary after each token, [len, vocab]."""
    logits = model(input_ids=torch.tensor([row])).logits[0]
    return torch.log_softmax(logits.float() if logits.dtype == torch.bfloat16 else logits, -1).double()


class Doubles:
    """The module torch, in which float32 is float64."""

    def __getattr__(self, name):
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)


@contextlib.contextmanager
def doubles(kind):
    """transformers computes norms, softmax, rotary positions and the delta rule in float32 in every dtype. Here it
    computes them in float64, for models of the class `kind`, which must also be opened here."""
    modules, usual = [importlib.import_module(kind.__module__), hf.modeling_rope_utils], torch.Tensor.float
    torch.Tensor.float = torch.Tensor.double
    for m in modules:
        m.torch = Doubles()
    try:
        yield
    finally:
        torch.Tensor.float = usual
        for m in modules:
            m.torch = torch


def load(directory, dtype):
    return hf.AutoModelForCausalLM.from_pretrained(directory, dtype=dtype, attn_implementation="eager").eval()


class Judge:
    """A model in float64. Of models with a state, whose limits are narrower, also in what transformers computes in float32."""

    def __init__(self, name, directory):
        kind = type(load(directory, torch.float32))
        self.around = (lambda: doubles(kind)) if has_state(name) else contextlib.nullcontext
        with self.around():
            self.model = load(directory, torch.float64)

    def __call__(self, f, *args):
        """f(model, *args), also for what f calls."""
        with self.around():
            return f(self.model, *args)


def vocabulary(model, row, autocast=False):
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        return row_logp(model, row)[-1]


def gradients(model, rows, weight):
    at = 0
    loss = 0.0
    for row in rows:
        logp = row_logp(model, row)
        for t in range(1, len(row)):
            loss = loss + weight[at + t] * logp[t - 1, row[t]]
        at += len(row)
    loss.backward()
    return {n: p.grad.reshape(-1).double() for n, p in model.named_parameters()}


# ---- the comparison ----


def rows_of(seed, n, longest):
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, longest, (n,), generator=g).tolist()
    lengths[0] = longest
    return [torch.randint(3, VOCAB, (k,), generator=g).tolist() for k in lengths]


def rms(x):
    return x.square().mean().sqrt().item()


def whole_vocabulary(program, directory, dtype, rows):
    """Rows that end with every token in turn, so that our side gives the log-probs of all tokens."""
    out = []
    for row in rows:
        ends = [row + [t] for t in range(VOCAB)]
        got = heads(program, directory, dtype, ends, [0.0] * (VOCAB * (len(row) + 1)))["logp"]
        out.append(got.reshape(VOCAB, len(row) + 1)[:, -1])
    return torch.cat(out)


def apart(got, want):
    """1 - cosine, without the rounding of a cosine near 1."""
    a, b = got / got.norm(), want / want.norm()
    return ((a - b).square().sum() / 2).item()


def check_one(program, directory):
    worst = {}
    name = os.path.basename(directory)
    rows = rows_of(1, 6, 60) + [[7]] * has_state(name)
    exact, single = Judge(name, directory), load(directory, torch.float32)
    judge = torch.cat([exact(vocabulary, r) for r in rows])
    ours = whole_vocabulary(program, directory, "f32", rows)
    theirs = torch.cat([vocabulary(single, r) for r in rows])
    cast = torch.cat([vocabulary(single, r, autocast=True) for r in rows])
    half = whole_vocabulary(program, directory, "bf16", rows)
    worst["log-prob f32"] = ((ours - judge).abs().max() / judge.abs().max()).item()
    worst["f32 error over PyTorch's"] = rms(ours - judge) / rms(theirs - judge)
    worst["bf16 error over autocast's"] = rms(half - judge) / rms(cast - judge)
    weight = [(i * 7 % 11 - 3) / 8 for i in range(sum(map(len, rows)))]
    want, got = exact(gradients, rows, weight), heads(program, directory, "f32", rows, weight)
    cosine, ratio, zero = 0.0, 0.0, 0.0
    largest = max(w.norm() for w in want.values())
    for tensor, w in want.items():
        g = got.pop("grad:" + tensor)
        if w.norm() < 1e-8 * largest:  # not 0, because softmax of transformers is in float32
            zero = max(zero, (g.norm() / largest).item())
            continue
        cosine = max(cosine, apart(g, w))
        ratio = max(ratio, abs((g.norm() / w.norm()).item() - 1))
    worst["1 - cosine of a gradient" + " (state)" * has_state(name)], worst["norm ratio of a gradient - 1"] = cosine, ratio
    worst["a gradient of 0"] = zero
    left = [n for n in got if n.startswith("grad:")]
    if left:
        sys.exit(f"{directory}: gradients that transformers does not have: {left}")
    return worst


def row_tokens(model, rows):
    """Log-probs of each row's tokens (0 for the first), as heads() gives them."""
    out = []
    with torch.no_grad():
        for row in rows:
            logp = row_logp(model, row)[:-1].gather(1, torch.tensor(row[1:])[:, None])[:, 0]
            out += [torch.zeros(1, dtype=torch.float64), logp]
    return torch.cat(out)


def long_rows():
    g = torch.Generator().manual_seed(1)
    return [torch.randint(3, VOCAB, (n,), generator=g).tolist() for n in LONG_ROWS]


def check_wide(program, directory):
    name = os.path.basename(directory)
    rows = long_rows() if name in LONG else rows_of(1, 12, 120)
    exact, single = Judge(name, directory), load(directory, torch.float32)
    weight = [(i * 7 % 11 - 3) / 8 for i in range(sum(map(len, rows)))]
    got = heads(program, directory, "f32", rows, weight)
    judge = exact(row_tokens, rows)
    what = "f32 error over PyTorch's" if name in LONG else "wide f32 error over PyTorch's"  # the long models are narrow
    worst = {what: rms(got["logp"] - judge) / rms(row_tokens(single, rows) - judge)}
    want, theirs = exact(gradients, rows, weight), gradients(single, rows, weight)
    if has_state(name):
        worst["1 - cosine of a gradient (state)"] = max(apart(got["grad:" + k], w) for k, w in want.items())
    errors = [sum((g[k] - w).square().sum().item() for k, w in want.items())
              for g in ({k: got["grad:" + k] for k in want}, theirs)]
    worst["wide gradient error over PyTorch's"] = (errors[0] / errors[1]) ** 0.5
    return worst


def check(root, program, *only):
    bad = 0
    for name in only or (*FAMILIES, *WIDE, *LONG):
        for what, x in (check_one if name in FAMILIES else check_wide)(program, f"{root}/{name}").items():
            wrong = not x <= LIMITS[what]
            bad += wrong
            print(f"{name:<14} {what:<34} {x:9.2e}   limit {LIMITS[what]:.0e}{'   WRONG' if wrong else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    hf.logging.set_verbosity_error()
    if sys.argv[1:2] == ["make"]:
        make(sys.argv[2])
    elif sys.argv[1:2] == ["check"]:
        sys.exit(check(*sys.argv[2:]))
    else:
        print("\n".join(FAMILIES))
