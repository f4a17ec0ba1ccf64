#!/usr/bin/env python3
"""Exports models of every family with the program, and checks how transformers loads them and how llama.cpp's reader
(the package gguf) reads them.

Usage: export.py HOST WORK [MODEL ...]

HOST is the program, WORK an empty directory. MODEL selects some of CASES; by default all of them, classifiers and a run
are tested. Weights are random, and tokenizers have the forms of the families (forms.py). For each model and dtype:
- from_pretrained finds every tensor and no others, in that dtype, rounded as by torch;
- the GGUF file has all keys and no others, with the config's values, and it has every tensor (after undoing the
  documented permutation for llama, smollm3 and granite, or transposition for gpt2);
- the scores of a SentencePiece vocabulary give the tokenizer's ids;
- in f32 the program's log-probs are the same, to the bit, from the GGUF file and from the directory (Gemma's and
  Qwen3.5's gains, to which the file adds 1, lose bits, and so do Qwen3.5's decays);
- with --dtype q8_0, the matrices of the GGUF file are those of f32, quantised by the package gguf;
- in f32 the program's 50 greedy tokens after 20 prompts are those of transformers, from the exported directory and, if
  transformers can read it, from the GGUF file.
Exit status 0: all of this holds; 1: something does not.
"""
import json
import math
import os
import re
import subprocess
import sys

import forms
import numpy as np
import torch
import transformers as hf
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, constants as gguf, quants
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

HOST, WORK = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
LINES = ["The river was better than the bread.", "A film. It wasn't so, and in 1987 it was.",
         "She said that they'd seen 12345 of them; nobody knew why.", "naïve café — “quoted” text",
         "def f(x):\n    return x + 1\n\n", "What the house had lost the garden kept."] * 8
PROMPTS = [f"{a} {b}" for a in ("The river", "It was", "She said", "A film of 1987,", "Why")
           for b in ("that", "the house", "because they", "and 12")]
ROTARY = dict(vocab_size=0, hidden_size=48, intermediate_size=88, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
              initializer_range=0.2)
SCALARS = dict(embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.08, logits_scaling=1.5)
HYBRID = SCALARS | dict(head_dim=16, tie_word_embeddings=False, layer_types=["attention"] * 2, num_local_experts=0,
                        shared_intermediate_size=72, position_embedding_type="rope", mamba_n_heads=4,
                        mamba_d_head=24)
GEMMA = ROTARY | dict(hidden_size=64, head_dim=256, num_hidden_layers=7, sliding_window=6, bos_token_id=2,
                      eos_token_id=[1, 6], pad_token_id=0)
# Two heads of keys and six of values; every second layer has attention.
QWEN35 = ROTARY | dict(hidden_size=64, head_dim=16, num_hidden_layers=4, full_attention_interval=2, linear_num_key_heads=2,
                       linear_num_value_heads=6, linear_key_head_dim=32, linear_value_head_dim=32, pad_token_id=None)
LFM2 = ROTARY | dict(hidden_size=64, layer_types=["conv", "full_attention", "conv"], num_hidden_layers=3,
                     block_auto_adjust_ff_dim=False)
LOCAL = {"rope_type": "default", "rope_theta": 10000.0}
# GGUF files that transformers reads completely. It lacks scaled rotary positions, GPT-2 with other
# widths, and the head width of Qwen3, and it reads Mistral as Llama.
READ = ("gpt2", "smollm", "qwen2", "gemma3", "gemma3-images", "lfm2")
failed = []


def scaled(kind, **more):
    return {"rope_type": kind, "rope_theta": 50000.0, **more}


# name: config's class, its special settings, form of the tokenizer, llama.cpp's architecture
CASES = {
    "gpt2": (hf.GPT2Config, dict(n_embd=32, n_layer=2, n_head=2, n_positions=1024,
                                 initializer_range=0.2), "gpt2", "gpt2"),
    "gpt2-untied": (hf.GPT2Config, dict(n_embd=32, n_layer=1, n_head=2, n_positions=128, n_inner=72,
                                        initializer_range=0.2, tie_word_embeddings=False),
                    "gpt2", "gpt2"),
    "llama3": (hf.LlamaConfig, ROTARY | dict(head_dim=16, tie_word_embeddings=False,
               rope_parameters=scaled("llama3", factor=8.0, low_freq_factor=1.0,
                                      high_freq_factor=4.0,
                                      original_max_position_embeddings=32)), "llama3", "llama"),
    "llama2": (hf.LlamaConfig, ROTARY | dict(
               hidden_size=64, num_key_value_heads=4, attention_bias=True,
               tie_word_embeddings=False, rope_parameters=scaled("linear", factor=2.0)),
               "llama2", "llama"),
    "smollm": (hf.LlamaConfig, ROTARY | dict(head_dim=16, tie_word_embeddings=True), "smollm",
               "llama"),
    "mistral": (hf.MistralConfig, ROTARY | dict(head_dim=16, sliding_window=None),
                "llama2-metaspace", "llama"),
    "qwen2": (hf.Qwen2Config, ROTARY | dict(num_attention_heads=3, num_key_value_heads=1,
                                            tie_word_embeddings=True), "qwen2", "qwen2"),
    "qwen2-yarn": (hf.Qwen2Config, ROTARY | dict(tie_word_embeddings=False,
                   num_attention_heads=3, num_key_value_heads=3, rope_parameters=scaled(
                       "yarn", factor=4.0, original_max_position_embeddings=32)), "qwen2",
                   "qwen2"),
    "qwen3": (hf.Qwen3Config, ROTARY | dict(head_dim=16, tie_word_embeddings=True), "qwen2",
              "qwen3"),
    "smollm3": (hf.SmolLM3Config, ROTARY | dict(head_dim=16, num_hidden_layers=5, pad_token_id=None,
                                                rope_parameters=scaled("default")), "llama3", "smollm3"),
    "granite": (hf.GraniteConfig, ROTARY | SCALARS | dict(head_dim=16, tie_word_embeddings=True), "smollm",
                "granite"),
    "granite4": (hf.GraniteMoeHybridConfig, ROTARY | HYBRID, "smollm", "granite"),
    "granite4-nope": (hf.GraniteMoeHybridConfig, ROTARY | HYBRID | dict(position_embedding_type=None), "smollm",
                      "granite"),
    "phi3": (hf.Phi3Config, ROTARY | dict(hidden_size=64, pad_token_id=None, sliding_window=40), "llama2", "phi3"),
    "phi4-mini": (hf.Phi3Config, ROTARY | dict(
        hidden_size=64, pad_token_id=None, partial_rotary_factor=0.5, tie_word_embeddings=True,
        original_max_position_embeddings=100, rope_parameters=scaled(
            "longrope", short_factor=[1.0, 1.25, 3.5, 4.0], long_factor=[2.0, 7.1, 30.0, 31.0])), "smollm", "phi3"),
    "gemma3": (hf.Gemma3TextConfig, GEMMA, "gemma", "gemma3"),
    "gemma3-linear": (hf.Gemma3TextConfig, GEMMA | dict(
        head_dim=16, query_pre_attn_scalar=16, tie_word_embeddings=False, rope_parameters={
            "full_attention": {"rope_type": "linear", "rope_theta": 5e5, "factor": 8.0}, "sliding_attention": LOCAL}),
        "gemma", "gemma3"),
    "gemma3-images": (hf.Gemma3Config, GEMMA, "gemma", "gemma3"),
    "gemma2": (hf.Gemma2Config, GEMMA | dict(num_hidden_layers=3, attn_logit_softcapping=20.0, final_logit_softcapping=5.0),
               "gemma", "gemma2"),
    "olmo2": (hf.Olmo2Config, ROTARY | dict(hidden_size=64, pad_token_id=None, rope_parameters=scaled("default")), "llama3",
              "olmo2"),
    "olmo2-yarn": (hf.Olmo2Config, ROTARY | dict(hidden_size=64, num_key_value_heads=4, pad_token_id=None, rope_parameters=scaled(
        "yarn", factor=4.0, original_max_position_embeddings=32)), "qwen2", "olmo2"),
    "olmo3": (hf.Olmo3Config, ROTARY | dict(hidden_size=64, num_hidden_layers=5, sliding_window=6, pad_token_id=None), "llama3",
              "olmo2"),
    "olmo3-yarn": (hf.Olmo3Config, ROTARY | dict(
        hidden_size=64, num_hidden_layers=5, sliding_window=6, pad_token_id=None, rope_parameters={
            "full_attention": scaled("yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=32.0, beta_slow=1.0,
                                     attention_factor=0.1 * math.log(4) + 1), "sliding_attention": scaled("default")}),
        "qwen2", "olmo2"),
    "olmo3-old": (hf.Olmo3Config, ROTARY | dict(hidden_size=64, num_hidden_layers=4, sliding_window=6, pad_token_id=None), "llama3",
                  "olmo2"),
    "qwen3.5": (hf.Qwen3_5TextConfig, QWEN35, "qwen35", "qwen35"),
    "qwen3.5-tied": (hf.Qwen3_5TextConfig, QWEN35 | dict(
        tie_word_embeddings=True, linear_num_value_heads=2, linear_conv_kernel_dim=3, full_attention_interval=3, rope_parameters=scaled(
            "default", partial_rotary_factor=0.5, mrope_section=[2, 1, 1])), "qwen35", "qwen35"),
    "qwen3.5-images": (hf.Qwen3_5Config, QWEN35, "qwen35", "qwen35"),
    "lfm2": (hf.Lfm2Config, LFM2, "lfm2", "lfm2"),
    "lfm2-untied": (hf.Lfm2Config, LFM2 | dict(
        head_dim=24, tie_word_embeddings=False, conv_L_cache=4, norm_eps=1e-3, block_auto_adjust_ff_dim=True, block_multiple_of=32,
        rope_parameters=scaled("linear", factor=2.0)), "lfm2", "lfm2"),
    "llama3-mixed": (hf.LlamaConfig, ROTARY | dict(head_dim=16, tie_word_embeddings=False), "llama3",
                     "llama"),
    "qwen2-mixed": (hf.Qwen2Config, ROTARY | dict(num_attention_heads=3, num_key_value_heads=3,
                                                  tie_word_embeddings=False), "qwen2", "qwen2"),
}
# Fields of config.json as older versions wrote them, together with today's fields. transformers
# decides which of the two counts.
OLDER = {
    "olmo3-old": dict(rope_theta=5e5, rope_parameters=None, rope_scaling=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=32, beta_slow=1)),
    "llama3-mixed": dict(rope_theta=50000.0, original_max_position_embeddings=32,
                         rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                           high_freq_factor=4.0,
                                           original_max_position_embeddings=64),
                         rope_parameters=dict(rope_type="default", rope_theta=300.0)),
    "qwen2-mixed": dict(rope_theta=20000.0, original_max_position_embeddings=32,
                        rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=64),
                        rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=300.0)),
}


def is_spm(form):
    return form.startswith("llama2") or form == "gemma"


def say(name, what, good, detail=""):
    print(f"{name}: {what}: {'ok' if good else 'WRONG'}{' ' if detail else ''}{detail}", flush=True)
    if not good:
        failed.append(f"{name}: {what}")


def host(*args):
    done = subprocess.run([HOST, *args], capture_output=True, text=True, cwd=WORK)
    if done.returncode:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def whole(tok):
    """The tokenizer with the merges of a SentencePiece vocabulary: every two pieces that join to a piece, the best score first."""
    file = json.loads(tok.to_str())
    model, added = file["model"], {t["content"] for t in file["added_tokens"] if t["special"]}
    vocab = [t for t in model["vocab"] if t not in added and not t.startswith("<0x")]
    rank = {}
    for i, m in enumerate(model["merges"]):
        rank.setdefault("".join(m if isinstance(m, list) else m.split(" ")), i)
    rank |= {t: len(rank) + i for i, t in enumerate(t for t in vocab if len(t) > 1 and t not in rank)}
    have = set(vocab)
    model["merges"] = [[t[:k], t[k:]] for t in sorted(rank, key=rank.get)
                       for k in range(1, len(t)) if t[:k] in have and t[k:] in have]
    return Tokenizer.from_str(json.dumps(file))


def language_model(model):
    """The language model of a model that also reads images, as a model without them."""
    kind = hf.Gemma3ForCausalLM if model.config.model_type == "gemma3" else hf.Qwen3_5ForCausalLM
    alone = kind(model.config.text_config)
    alone.model.load_state_dict(model.model.language_model.state_dict())
    alone.tie_weights()
    if not alone.config.tie_word_embeddings:
        alone.lm_head.load_state_dict(model.lm_head.state_dict())
    return alone.eval()


def make(name):
    kind, fields, form, _ = CASES[name]
    tok = forms.make(form, LINES, 700)
    if is_spm(form):
        tok = whole(tok)
    forms.save(tok, form, f"{WORK}/{name}")
    torch.manual_seed(7)
    extra = {"bos_token_id": 1, "eos_token_id": 2} if form.startswith("llama2") else {
        "bos_token_id": None, "eos_token_id": tok.token_to_id(forms.FORMS[form][2]["eos"])}
    fields = extra | fields | {"vocab_size": tok.get_vocab_size() + 5}
    if kind is hf.Gemma3Config:
        fields = dict(text_config=fields, image_token_index=5, boi_token_index=5, eoi_token_index=5, mm_tokens_per_image=4,
                      vision_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
                                         image_size=8, patch_size=4))
    if kind is hf.Qwen3_5Config:
        fields = dict(text_config=fields, image_token_id=4, video_token_id=4, vision_start_token_id=3, vision_end_token_id=3,
                      vision_config=dict(hidden_size=8, intermediate_size=8, depth=1, num_heads=2, out_hidden_size=64, patch_size=4,
                                         num_position_embeddings=4))
        model = hf.Qwen3_5ForConditionalGeneration(kind(**fields))
    else:
        model = hf.AutoModelForCausalLM.from_config(kind(**fields))
    for key, p in model.named_parameters():  # trivial norms and biases would hide a mistake
        if p.ndim == 1 and not key.endswith("A_log"):
            torch.nn.init.normal_(p, 1.0 if "norm" in key or "ln_" in key else 0.0, 0.1)
    model.save_pretrained(f"{WORK}/{name}")
    if kind is hf.Qwen3_5Config:  # as published: with the layers that predict further tokens
        path = f"{WORK}/{name}/model.safetensors"
        save_file(load_file(path) | {"mtp.fc.weight": torch.ones(64, 128), "mtp.layers.0.self_attn.q_proj.weight": torch.ones(8, 64)},
                  path, {"format": "pt"})
    if name in OLDER:
        path = f"{WORK}/{name}/config.json"
        with open(path) as f:
            config = json.load(f)
        with open(path, "w") as f:
            json.dump(config | OLDER[name], f)
        model = hf.AutoModelForCausalLM.from_pretrained(f"{WORK}/{name}")
    return language_model(model) if kind in (hf.Gemma3Config, hf.Qwen3_5Config) else model.eval(), tok


# ---- the directory ----


def check_directory(name, directory, dtype, start):
    model, info = hf.AutoModelForCausalLM.from_pretrained(directory, output_loading_info=True)
    empty = not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    want = {k: v.to(DTYPES[dtype]) for k, v in start.state_dict().items()}
    got = model.state_dict()
    wrong = [k for k in want if got[k].dtype != DTYPES[dtype] or not torch.equal(got[k], want[k])]
    say(name, f"{dtype}: {len(want)} tensors", empty and not wrong and want.keys() == got.keys(),
        f"{info} {wrong[:3]}" if wrong or not empty else "")
    return model.eval()


def greedy(model, ids, tokens):
    """Samples only existing tokens: rlhf-host never samples the embedding's padding rows."""
    config = hf.GenerationConfig(max_new_tokens=50, do_sample=False, pad_token_id=0,
                                 suppress_tokens=list(range(tokens, model.config.vocab_size)) or None)
    model.generation_config.eos_token_id = None  # otherwise it would be used as the default
    with torch.no_grad():
        return model.generate(torch.tensor([ids]), generation_config=config,
                              attention_mask=torch.ones(1, len(ids), dtype=torch.long)
                              )[0, len(ids):].tolist()


def check_greedy(name, directory, models):
    with open(f"{WORK}/prompts.txt", "w") as f:
        f.write("\n".join(PROMPTS) + "\n")
    rows = [json.loads(line) for line in host(
        "generate", "--model", directory, "--prompts", "prompts.txt", "--greedy", "--max-new", "50",
        "--ignore-eos", "--json", "--dtype", "f32").splitlines()]
    tok = hf.AutoTokenizer.from_pretrained(directory)
    for what, model in models.items():
        same = 0
        for row in rows:
            ids = tok(row["prompt"]).input_ids  # with BOS, if the tokenizer adds it
            same += row["ids"] == ids + greedy(model, ids, len(tok)) and len(row["ids"]) == len(ids) + 50
        say(name, f"50 greedy tokens of {what}", same == len(PROMPTS) == len(rows),
            f"{same} of {len(rows)} prompts")


# ---- the GGUF file ----


def with_states(key, t, config):
    """The same for models with layers that have a state."""
    stem, end = key.removeprefix("model.").rsplit(".", 1)
    names = {
        "embed_tokens": "token_embd", "norm": "output_norm", "embedding_norm": "token_embd_norm", "lm_head": "output",
        "input_layernorm": "attn_norm", "operator_norm": "attn_norm", "ffn_norm": "ffn_norm",
        "post_attention_layernorm": "post_attention_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.out_proj": "attn_output",
        "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.q_layernorm": "attn_q_norm",
        "self_attn.k_layernorm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
        "feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down",
        "conv.in_proj": "shortconv.in_proj", "conv.conv": "shortconv.conv", "conv.out_proj": "shortconv.out_proj",
        "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_b": "ssm_beta",
        "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.conv1d": "ssm_conv1d", "linear_attn.norm": "ssm_norm",
        "linear_attn.out_proj": "ssm_out"}
    block = ""
    if stem.startswith("layers."):
        _, layer, *rest = stem.split(".")
        block, stem = f"blk.{layer}.", ".".join(rest)
    name = block + {"A_log": "ssm_a", "dt_bias": "ssm_dt.bias"}.get(end, f"{names.get(stem)}.{end}")
    t = t.squeeze(1) if t.ndim == 3 else t
    if end == "A_log":
        t = -torch.exp(t.double()).float()
    if config.model_type == "lfm2":
        return name, t
    if stem.endswith("norm") and stem != "linear_attn.norm":
        t = t + 1

    def tiled(x, width):  # the first head of values of each head of keys, then the second of each
        keys = config.linear_num_key_heads
        return x.reshape(keys, -1, width, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)

    width, front = config.linear_value_head_dim, 2 * config.linear_num_key_heads * config.linear_key_head_dim
    if stem in ("linear_attn.in_proj_qkv", "linear_attn.conv1d"):
        t = torch.cat([t[:front], tiled(t[front:], width)])
    elif stem == "linear_attn.in_proj_z":
        t = tiled(t, width)
    elif stem in ("linear_attn.in_proj_a", "linear_attn.in_proj_b", "linear_attn"):  # and A_log, dt_bias
        t = tiled(t, 1)
    elif stem == "linear_attn.out_proj":
        t = tiled(t.T, width).T
    return name, t


def as_stored(key, t, config, arch):
    """The name and the numbers of a weight after llama.cpp's conversion."""
    stem, end = key.rsplit(".", 1)
    if arch in ("qwen35", "lfm2"):
        return with_states(key, t, config)
    stem = stem.removeprefix("model.").removeprefix("transformer.")
    names = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output",
             "wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm"}
    block = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q",
             "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
             "self_attn.k_norm": "attn_k_norm", "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
             "post_attention_layernorm": "ffn_norm", "pre_feedforward_layernorm": "ffn_norm",
             "post_feedforward_layernorm": "post_ffw_norm",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
             "shared_mlp.output_linear": "ffn_down", "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv",
             "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    if arch.startswith(("gemma", "olmo")):
        block["post_attention_layernorm"] = "post_attention_norm"
    if arch.startswith("gemma"):
        t = t + 1 if "norm" in stem else t
    if stem.startswith(("layers.", "h.")):
        _, layer, stem = stem.split(".", 2)
        name = f"blk.{layer}.{block[stem]}.{end}"
    else:
        name = f"{names[stem]}.{end}"
    if arch == "gpt2" and stem in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
        t = t.T if t.ndim == 2 else t
    if arch in ("llama", "smollm3", "granite") and stem in ("self_attn.q_proj", "self_attn.k_proj"):
        heads = config.num_attention_heads if "q_proj" in stem else config.num_key_value_heads
        t = t.reshape(heads, 2, t.shape[0] // heads // 2, *t.shape[1:]).swapaxes(1, 2).reshape(
            t.shape)
    return name, t


def numbers(tensor):
    data = np.asarray(tensor.data)
    if tensor.tensor_type.name == "BF16":
        data = (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return torch.from_numpy(np.array(data.reshape([int(n) for n in tensor.shape[::-1]]),
                                     dtype=np.float32))


def rope_freqs(config):
    """The factors by which Llama 3.1 divides each frequency, from transformers' own function."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    plain = 1 / config.rope_parameters["rope_theta"] ** (
        torch.arange(0, config.head_dim, 2).float() / config.head_dim)
    return plain / ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0]


def check_tensors(name, reader, dtype, start, arch):
    config, wrong = start.config, []
    state = {}
    for k, v in start.state_dict().items():  # Granite 4 has one matrix for gate and up projection
        parts = zip(("mlp.gate_proj", "mlp.up_proj"), v.chunk(2)) if "input_linear" in k else (("", v),)
        state |= {k.replace("shared_mlp.input_linear", p): x for p, x in parts}
    want = dict(as_stored(k, v, config, arch) for k, v in state.items()
                if not (k == "lm_head.weight" and config.tie_word_embeddings))
    if (getattr(config, "rope_parameters", None) or {}).get("rope_type") == "llama3":
        freqs = {t.name: t for t in reader.tensors}.get("rope_freqs.weight")
        if freqs is None or not torch.allclose(numbers(freqs), rope_freqs(config), rtol=2e-6):
            wrong.append("rope_freqs.weight")
        want["rope_freqs.weight"] = None
    for kind in ("long", "short") if (getattr(config, "rope_parameters", None) or {}).get("rope_type") == "longrope" else ():
        want[f"rope_factors_{kind}.weight"] = torch.tensor(config.rope_parameters[f"{kind}_factor"])
    for t in reader.tensors:
        x = want.get(t.name)
        whole = t.name == "position_embd.weight" or t.name.endswith(("conv1d.weight", "shortconv.conv.weight"))
        narrow = x is not None and x.ndim > 1 and not whole
        kind = dtype.upper() if narrow else "F32"
        if t.tensor_type.name != kind or t.data_offset % 32:
            wrong.append(f"{t.name} {t.tensor_type.name}")
        if x is not None and not torch.equal(numbers(t), x.to(DTYPES[kind.lower()]).float()):
            wrong.append(t.name)
    names = [t.name for t in reader.tensors]
    say(name, f"{dtype}: {len(names)} tensors of the GGUF file",
        not wrong and sorted(names) == sorted(want), " ".join(wrong[:4]))
    known = {gguf.TENSOR_NAMES[k].format(bid=i) for i in range(config.num_hidden_layers)
             for k in gguf.MODEL_TENSORS[next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch)]}
    unknown = [n for n in names if n.removesuffix(".weight").removesuffix(".bias") not in known]
    say(name, f"{dtype}: tensors that {arch} has", not unknown, " ".join(unknown))


def expected_keys(name, start, arch, dtype, tok):
    c = start.config
    gpt2 = arch == "gpt2"
    keys = {
        "general.architecture": arch, "general.type": "model", "general.name": f"{name}-{dtype}",
        "general.file_type": {"f32": 0, "f16": 1, "bf16": 32}[dtype],
        "general.quantization_version": 2,
        f"{arch}.vocab_size": c.vocab_size, f"{arch}.context_length": c.max_position_embeddings,
        f"{arch}.embedding_length": c.hidden_size, f"{arch}.block_count": c.num_hidden_layers,
        f"{arch}.feed_forward_length": (c.n_inner or 4 * c.n_embd) if gpt2 else
        start.model.layers[0].feed_forward.w1.out_features if arch == "lfm2" else
        getattr(c, "shared_intermediate_size", c.intermediate_size),
        f"{arch}.attention.head_count": c.num_attention_heads}
    if gpt2:
        keys[f"{arch}.attention.layer_norm_epsilon"] = c.layer_norm_epsilon
        return keys
    width = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    rope = c.rope_parameters
    if "full_attention" in rope:
        rope = rope["full_attention"]
    if arch == "gemma3":
        keys[f"{arch}.rope.freq_base_swa"] = 10000.0
    if c.model_type == "olmo3":
        keys |= {f"{arch}.attention.sliding_window": c.sliding_window,
                 f"{arch}.attention.sliding_window_pattern": [t == "sliding_attention" for t in c.layer_types]}
    if arch == "qwen35":
        every = c.layer_types.index("full_attention") + 1
        keys |= {f"{arch}.ssm.conv_kernel": c.linear_conv_kernel_dim, f"{arch}.ssm.state_size": c.linear_key_head_dim,
                 f"{arch}.ssm.group_count": c.linear_num_key_heads, f"{arch}.ssm.time_step_rank": c.linear_num_value_heads,
                 f"{arch}.ssm.inner_size": c.linear_num_value_heads * c.linear_value_head_dim,
                 f"{arch}.full_attention_interval": every,
                 f"{arch}.rope.dimension_sections": [*rope.get("mrope_section", [11, 11, 10]), 0]}
    if arch == "lfm2":
        keys[f"{arch}.shortconv.l_cache"] = c.conv_L_cache
    keys |= {f"{arch}.attention.layer_norm_rms_epsilon": c.norm_eps if arch == "lfm2" else c.rms_norm_eps,
             f"{arch}.attention.head_count_kv": [c.num_key_value_heads * (t != "conv") for t in c.layer_types]
             if arch == "lfm2" else c.num_key_value_heads,
             f"{arch}.attention.key_length": width, f"{arch}.attention.value_length": width,
             f"{arch}.rope.dimension_count": int(width * rope.get("partial_rotary_factor", 1.0)),
             f"{arch}.rope.freq_base": rope["rope_theta"]}
    if arch == "phi3":
        keys |= {f"{arch}.attention.sliding_window": c.sliding_window or 0,
                 f"{arch}.rope.scaling.original_context_length": c.original_max_position_embeddings}
    if rope["rope_type"] == "longrope":
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
        keys[f"{arch}.rope.scaling.attn_factor"] = ROPE_INIT_FUNCTIONS["longrope"](c, "cpu")[1]
    if arch.startswith("gemma"):
        keys[f"{arch}.attention.sliding_window"] = c.sliding_window
        del keys[f"{arch}.rope.dimension_count"], keys[f"{arch}.vocab_size"]
    if arch == "gemma2":
        keys |= {f"{arch}.{k}": getattr(c, k) for k in ("attn_logit_softcapping", "final_logit_softcapping")}
    if arch == "granite":
        keys |= {f"{arch}.attention.scale": c.attention_multiplier, f"{arch}.embedding_scale": c.embedding_multiplier,
                 f"{arch}.residual_scale": c.residual_multiplier, f"{arch}.logit_scale": c.logits_scaling}
    if getattr(c, "position_embedding_type", "rope") is None:
        keys[f"{arch}.rope.scaling.finetuned"] = False
    if rope["rope_type"] in ("linear", "yarn"):
        keys |= {f"{arch}.rope.scaling.type": rope["rope_type"],
                 f"{arch}.rope.scaling.factor": rope["factor"]}
    if rope["rope_type"] == "yarn":
        keys |= {f"{arch}.rope.scaling.original_context_length":
                 rope["original_max_position_embeddings"],
                 f"{arch}.rope.scaling.yarn_beta_fast": 32.0,
                 f"{arch}.rope.scaling.yarn_beta_slow": 1.0}
    return keys


def tokenizer_keys(c, form, tok):
    spm = is_spm(form)
    file = json.loads(tok.to_str())
    roles = {r: tok.token_to_id(t) for r, t in forms.FORMS[form][2].items()}
    if c.bos_token_id is not None and not isinstance(c.bos_token_id, list):
        roles.setdefault("bos", c.bos_token_id)
    added = {t["id"]: t for t in file["added_tokens"]}
    tokens, types = [], []
    back = {i: t for t, i in tok.get_vocab(with_added_tokens=True).items()}
    for i in range(c.vocab_size):
        own = spm and i in added and not added[i]["special"]
        tokens.append(back[i].replace("▁", " ") if own else back.get(i, f"[PAD{i}]"))
        kind = 1 if i in back else 5
        if spm and i in back and back[i].startswith("<0x"):
            kind = 6
        if i in added:
            kind = 3 if added[i]["special"] else 4
        if spm and i == roles["unk"]:
            kind = 2
        types.append(kind)
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    keys = {f"tokenizer.ggml.{names[r]}_token_id": i for r, i in roles.items()}
    if isinstance(c.eos_token_id, list):
        keys["tokenizer.ggml.eot_token_id"] = c.eos_token_id[1]
    keys |= {"tokenizer.ggml.model": "llama" if spm else "gpt2",
             "tokenizer.ggml.pre": {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "qwen35": "qwen35", "lfm2": "dbrx",
                                    "smollm": "smollm"}.get(form, "default"),
             "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
             "tokenizer.ggml.add_bos_token": form in ("llama3", "llama2", "llama2-metaspace", "gemma", "lfm2"),
             "tokenizer.ggml.add_eos_token": False}
    if spm:
        keys["tokenizer.ggml.add_space_prefix"] = form != "gemma"
    else:
        keys["tokenizer.ggml.merges"] = [" ".join(m) if isinstance(m, list) else m
                                         for m in file["model"]["merges"]]
    return keys


def same_value(a, b):
    return math.isclose(a, b, rel_tol=1e-6) if isinstance(b, float) else a == b


def check_keys(name, reader, dtype, start, form, arch, tok):
    want = expected_keys(name, start, arch, dtype, tok) | tokenizer_keys(start.config, form,
                                                                                tok)
    got = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    scores = got.pop("tokenizer.ggml.scores", None)
    wrong = [k for k in want.keys() | got.keys()
             if k not in got or k not in want or not same_value(got[k], want[k])]
    say(name, f"{dtype}: {len(got)} keys", not wrong, " ".join(wrong))
    if is_spm(form):
        check_scores(name, got, scores, tok)


def check_scores(name, keys, scores, tok):
    """Tokenizes as llama.cpp does with a SentencePiece vocabulary. Finds added tokens first, the longest at each place. Of all
    neighbors that join to a piece, joins those with the best score, the leftmost of equals. Text that is not a piece in the
    end becomes bytes."""
    ids = {t: i for i, t in enumerate(keys["tokenizer.ggml.tokens"])}
    own = [t for t, kind in zip(ids, keys["tokenizer.ggml.token_type"]) if kind == 4]
    cut = re.compile("(" + "|".join(re.escape(t) for t in sorted(own, key=len, reverse=True)) + ")") if own else None

    def join(text):
        parts = list(text.replace(" ", "▁"))
        while True:
            best = max(((scores[ids[a + b]], -k) for k, (a, b) in enumerate(zip(parts, parts[1:]))
                        if a + b in ids), default=None)
            if best is None:
                break
            k = -best[1]
            parts[k:k + 2] = ["".join(parts[k:k + 2])]
        return [i for p in parts for i in ([ids[p]] if p in ids else [ids[f"<0x{b:02X}>"] for b in p.encode()])]

    same = 0
    for text in LINES[:6] + PROMPTS:
        text = "▁" * keys["tokenizer.ggml.add_space_prefix"] + text
        got = [i for part in (cut.split(text) if cut else [text]) for i in ([ids[part]] if part in own else join(part))]
        same += got == tok.encode(text.removeprefix("▁"), add_special_tokens=False).ids
    say(name, "ids by scores", same == 6 + len(PROMPTS), f"{same} of {6 + len(PROMPTS)} texts")


def check_gguf_model(name, directory, file, start):
    model = hf.AutoModelForCausalLM.from_pretrained(directory, gguf_file=file, dtype=torch.float32)
    ids = torch.tensor([[5, 9, 300, 4, 77, 12]])
    with torch.no_grad():
        a, b = model.eval()(ids).logits, start(ids).logits
    worst = (a - b).abs().max().item()
    say(name, "logits of the GGUF file", worst <= 1e-5 * b.abs().max().item(), f"{worst:.1e}")
    return model


def check_back(name, out):
    """The program reads its own file as the model that was exported."""
    with open(f"{WORK}/rows.json", "w") as f:
        json.dump({"rows": [[5, 9, 300, 4, 77, 12, 31], [8, 6, 7]], "weight": [0.0] * 10}, f)
    heads, found = os.environ["RLHF_BUILD_DIR"] + "/tests/oracle_heads", []
    for source in (f"{out}/model.gguf", out):
        run = subprocess.run([heads, f"{WORK}/{source}", "f32", f"{WORK}/rows.json", f"{WORK}/logp"], capture_output=True,
                             text=True)
        found.append(np.frombuffer(open(f"{WORK}/logp", "rb").read()[12:52], np.float32) if run.returncode == 0 else None)
        if run.returncode:
            say(name, f"log-probs of {source}", False, run.stderr.strip())
            return
    far = float(np.abs(found[0] - found[1]).max())
    say(name, "log-probs of the GGUF file", far <= (1e-4 if "gemma" in name or "qwen3.5" in name else 0), f"{far:.1e}")


def check_more_layers(name, out):
    """Qwen3.5 as llama.cpp's converter writes it with the layers that predict further tokens, which are left out: a block more,
    and a list of the layers with a state in place of an interval."""
    reader = GGUFReader(f"{WORK}/{out}/model.gguf")
    keys = {k: f for k, f in reader.fields.items() if not k.startswith("GGUF.") and k != "general.architecture"}
    n = keys["qwen35.block_count"].contents()
    every = keys.pop("qwen35.full_attention_interval").contents()
    writer = GGUFWriter(f"{WORK}/{out}/more.gguf", "qwen35")
    for key, field in keys.items():
        sub = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(key, n + 1 if key == "qwen35.block_count" else field.contents(), field.types[0], sub)
    writer.add_uint32("qwen35.nextn_predict_layers", 1)
    writer.add_key_value("qwen35.attention.recurrent_layers", [i < n and (i + 1) % every > 0 for i in range(n + 1)],
                         GGUFValueType.ARRAY, GGUFValueType.BOOL)
    for t in reader.tensors:
        writer.add_tensor(t.name, np.array(t.data))
    for t in ("attn_norm", "nextn.eh_proj"):
        writer.add_tensor(f"blk.{n}.{t}.weight", np.ones((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = [log_probs(f"{out}/{file}") for file in ("model.gguf", "more.gguf")]
    say(name, "layers that predict further tokens", np.array_equal(*found))


def log_probs(source):
    """Of rows.json, which check_back() wrote."""
    subprocess.run([os.environ["RLHF_BUILD_DIR"] + "/tests/oracle_heads", f"{WORK}/{source}", "f32", f"{WORK}/rows.json",
                    f"{WORK}/logp"], check=True)
    return np.frombuffer(open(f"{WORK}/logp", "rb").read()[12:52], np.float32)


def check_q8_0(name, plain):
    """`plain` is the reader of the file in f32."""
    host("export", name, "--gguf", f"{name}.q8_0.gguf", "--dtype", "q8_0")
    kept, wrong, n = {t.name: t for t in plain.tensors}, [], 0
    for t in GGUFReader(f"{WORK}/{name}.q8_0.gguf").tensors:
        x = kept[t.name].data
        whole = x.ndim == 2 and t.name != "position_embd.weight" and x.shape[-1] % 32 == 0 and "conv1d" not in t.name
        n += whole
        if whole != (t.tensor_type == GGMLQuantizationType.Q8_0):
            wrong.append(f"{t.name} {t.tensor_type.name}")
        elif whole and not np.array_equal(quants.quantize(x, t.tensor_type), t.data.reshape(len(x), -1)):
            wrong.append(t.name)
    say(name, f"q8_0: {n} matrices", not wrong, " ".join(wrong[:4]))


def check(name):
    _, _, form, arch = CASES[name]
    start, tok = make(name)
    for dtype in DTYPES:
        out = f"{name}-{dtype}"
        host("export", name, "--to", out, "--gguf", f"{out}/model.gguf", "--dtype", dtype)
        model = check_directory(name, f"{WORK}/{out}", dtype, start)
        reader = GGUFReader(f"{WORK}/{out}/model.gguf")
        check_tensors(name, reader, dtype, start, arch)
        check_keys(name, reader, dtype, start, form, arch, tok)
        if dtype != "f32":
            continue
        check_back(name, out)
        if name == "qwen3.5":
            check_more_layers(name, out)
        check_q8_0(name, reader)
        models = {"the directory": model}
        if name in READ:
            models["the GGUF file"] = check_gguf_model(name, f"{WORK}/{out}", "model.gguf", start)
        check_greedy(name, f"{WORK}/{out}", models)


# ---- heads, and the card ----


def check_classifier(source):
    """Exports keep the heads of classifiers and reward models: transformers' logits equal those before the export."""
    name = os.path.basename(source)
    host("export", source, "--to", f"{name}-out", "--dtype", "f32")
    load = hf.AutoModelForSequenceClassification.from_pretrained
    start = load(source, dtype=torch.float32).eval()
    model, info = load(f"{WORK}/{name}-out", output_loading_info=True)
    ids = torch.tensor([[5, 9, 30, 4, 77, 12]])
    for p in (*start.parameters(), *model.parameters()):  # torch rounds differently with another alignment in the mapped file
        p.data = p.data.clone()
    with torch.no_grad():
        same = torch.equal(model.eval()(ids).logits, start(ids).logits)
    empty = not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    tok = hf.AutoTokenizer.from_pretrained(f"{WORK}/{name}-out")
    say(name, "a classifier", same and empty and model.dtype == torch.float32
        and model.config.id2label == start.config.id2label
        and tok(PROMPTS[0]).input_ids == hf.AutoTokenizer.from_pretrained(source)(
            PROMPTS[0]).input_ids)


def check_run(source):
    """A run's card and generation config as transformers and the hub's own package read them."""
    with open(f"{WORK}/run.txt", "w") as f:
        f.write("\n".join(PROMPTS) + "\n")
    host("--algo", "ppo.so", "--policy", source, "--reward", "period_count.so", "--prompts",
         "run.txt", "--out", "run", "--threads", "1", "--set", "run.phases=1", "--set",
         "batch.size=4", "--set", "sampling.max_new_tokens=6", "--set", "sampling.temperature=0.7",
         "--set", "checkpoint.dtype=bf16")
    host("export", "run", "--to", "given", "--base-model", "Some/Model")
    model, info = hf.AutoModelForCausalLM.from_pretrained(f"{WORK}/given", output_loading_info=True)
    empty = not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    config = model.generation_config
    say("a run", "generation config", empty and model.dtype == torch.bfloat16
        and (config.do_sample, config.temperature, config.top_k, config.top_p,
             config.max_new_tokens) == (True, 0.7, 0, 1.0, 6))
    from huggingface_hub import ModelCard
    card = ModelCard.load(f"{WORK}/given/README.md")
    data = card.data.to_dict()
    say("a run", "card", data == {
        "library_name": "transformers", "pipeline_tag": "text-generation",
        "base_model": "Some/Model", "tags": ["rlhf-host", "ppo"]} and WORK not in card.content
        and "`objective/kl`" in card.content, str(data))


def main():
    hf.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name in sys.argv[3:] or CASES:
        check(name)
    if not sys.argv[3:]:
        for name in ("distilbert", "gpt2-classifier", "gpt2-reward"):
            check_classifier(os.environ["RLHF_BUILD_DIR"] + f"/tests/hf/dirs/{name}")
        check_run(f"{HERE}/../../models/policy")
    if failed:
        sys.exit("wrong: " + "; ".join(failed))


main()
