#!/usr/bin/env python3
"""Makes the inputs of fuzz_gguf.c: a tiny GGUF file for each architecture, with quantised tensors, a tokenizer and
rotary positions of several types. Usage: make_gguf.py FOLDER; then corpus.py gguf add FOLDER/*. Needs numpy, gguf."""
import os
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

VOCAB = 6


def add(writer, name, shape, kind=T.F32):
    """A tensor whose bytes are letters, which keeps the corpus small."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    if shape[-1] % elements:
        kind, elements, size = T.F32, 1, 4
    data = (np.arange(int(np.prod(shape)) // elements * size) % 26 + 65).astype(np.uint8)
    if len(shape) > 1:
        data = data.reshape(shape[0], -1)
    if kind == T.F32:
        writer.add_tensor(name, data.view(np.float32))
    else:
        writer.add_tensor(name, data, raw_dtype=kind)


def begin(folder, name, arch, numbers, pre="smollm"):
    """A file with a tokenizer, and without tensors."""
    writer = gguf.GGUFWriter(f"{folder}/{name}", arch)
    for key, value in numbers.items():
        {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32,
         str: writer.add_string}[type(value)](f"{arch}.{key}", value)
    pieces = arch in ("gemma3", "phi3", "granite")  # of SentencePiece
    writer.add_tokenizer_model("llama" if pieces else "gpt2")
    writer.add_tokenizer_pre("default" if pieces else pre)
    writer.add_token_list(["a", "b", "ab", "<0x0A>" if pieces else "c", "<s>", "</s>"])
    writer.add_token_types([1, 1, 1, 6 if pieces else 1, 3, 3])
    if pieces:
        writer.add_token_scores([-2.0, -3.0, 0.0, 0.0, 0.0, 0.0])
        writer.add_add_space_prefix(False)
    else:
        writer.add_token_merges(["a b"])
    writer.add_bos_token_id(4)
    writer.add_eos_token_id(5)
    writer.add_chat_template("{{ messages }}")
    return writer


def end(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def model(folder, name, arch, kinds, width=32, dim=8, hidden=32, **keys):
    heads, kv_heads = 2, 1
    numbers = {"context_length": 16, "embedding_length": width, "block_count": 1, "feed_forward_length": hidden,
               "attention.head_count": heads}
    if arch != "gpt2":
        numbers |= {"attention.head_count_kv": kv_heads, "attention.key_length": dim, "attention.value_length": dim}
    numbers[f"attention.layer_norm{'' if arch == 'gpt2' else '_rms'}_epsilon"] = 1e-5
    writer = begin(folder, name, arch, numbers | {key.replace("__", "."): value for key, value in keys.items()})
    a, b, c = kinds
    q, kv = heads * dim, kv_heads * dim
    add(writer, "token_embd.weight", (VOCAB, width), a)
    add(writer, "output_norm.weight", (width,))
    for norm in ("attn_norm", "ffn_norm"):
        add(writer, f"blk.0.{norm}.weight", (width,))
    if arch in ("gpt2", "phi3"):
        add(writer, "blk.0.attn_qkv.weight", (q + 2 * (q if arch == "gpt2" else kv), width), b)
        add(writer, "blk.0.ffn_up.weight", (hidden if arch == "gpt2" else 2 * hidden, width), c)
    else:
        for part, rows in (("attn_q", q), ("attn_k", kv), ("attn_v", kv)):
            add(writer, f"blk.0.{part}.weight", (rows, width), b)
        for part in ("ffn_gate", "ffn_up"):
            add(writer, f"blk.0.{part}.weight", (hidden, width), c)
    add(writer, "blk.0.attn_output.weight", (width, q), b)
    add(writer, "blk.0.ffn_down.weight", (width, hidden), c)
    if arch == "gpt2":
        add(writer, "position_embd.weight", (16, width))
    if "gemma" in arch:
        for norm in ("post_attention_norm", "post_ffw_norm"):
            add(writer, f"blk.0.{norm}.weight", (width,))
    if arch == "phi3":
        for which in ("long", "short"):
            add(writer, f"rope_factors_{which}.weight", (dim // 4,))
    end(writer)


def model_with_states(folder, name, arch, kind, width=32, dim=8, hidden=32):
    """Two layers: one with a state, one with attention."""
    numbers = {"context_length": 16, "embedding_length": width, "block_count": 2, "feed_forward_length": hidden,
               "attention.head_count": 2, "attention.key_length": dim, "attention.value_length": dim,
               "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e6}
    if arch == "lfm2":
        numbers |= {"shortconv.l_cache": 3}
    else:
        numbers |= {"attention.head_count_kv": 1, "rope.dimension_count": dim // 2, "full_attention_interval": 2,
                    "ssm.conv_kernel": 4, "ssm.state_size": 8, "ssm.group_count": 1, "ssm.time_step_rank": 2,
                    "ssm.inner_size": 16}
    writer = begin(folder, name, arch, numbers, pre=arch)
    if arch == "lfm2":
        writer.add_array("lfm2.attention.head_count_kv", [0, 1])
        state = {"shortconv.in_proj": (3 * width, width), "shortconv.conv": (width, 3), "shortconv.out_proj": (width, width)}
    else:
        state = {"attn_qkv": (32, width), "attn_gate": (16, width), "ssm_beta": (2, width), "ssm_alpha": (2, width),
                 "ssm_conv1d": (32, 4), "ssm_norm": (8,), "ssm_out": (width, 16)}
        writer.add_tensor("blk.0.ssm_a", np.array([-1, -2], np.float32))
        add(writer, "blk.0.ssm_dt.bias", (2,))
    q = 2 * dim * (2 if arch == "qwen35" else 1)  # with gates
    attention = {"attn_q": (q, width), "attn_k": (dim, width), "attn_v": (dim, width), "attn_output": (width, 2 * dim),
                 "attn_q_norm": (dim,), "attn_k_norm": (dim,)}
    norms = ("attn_norm", "post_attention_norm" if arch == "qwen35" else "ffn_norm")
    every = {"ffn_gate": (hidden, width), "ffn_up": (hidden, width), "ffn_down": (width, hidden)}
    add(writer, "token_embd.weight", (VOCAB, width), kind)
    add(writer, "output_norm.weight" if arch == "qwen35" else "token_embd_norm.weight", (width,))
    for layer, own in enumerate((state, attention)):
        for norm in norms:
            add(writer, f"blk.{layer}.{norm}.weight", (width,))
        for part, shape in (own | every).items():
            add(writer, f"blk.{layer}.{part}.weight", shape, T.F32 if len(shape) < 2 or part in ("shortconv.conv", "ssm_conv1d") else kind)
    end(writer)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    model(folder, "llama", "llama", (T.Q8_0, T.Q4_0, T.Q4_1), rope__freq_base=5e5)
    model(folder, "llama-yarn", "llama", (T.F32, T.Q5_0, T.Q5_1),
          rope__scaling__type="yarn", rope__scaling__factor=4.0, rope__scaling__original_context_length=16)
    model(folder, "qwen2", "qwen2", (T.Q6_K, T.Q4_K, T.Q6_K), width=256, dim=2, hidden=2)
    model(folder, "qwen3", "qwen3", (T.Q5_K, T.Q4_K, T.Q5_K), width=256, dim=2, hidden=2)
    model(folder, "gpt2", "gpt2", (T.F32, T.Q8_0, T.Q4_0))
    model(folder, "gemma3", "gemma3", (T.Q8_0, T.Q5_0, T.Q4_0), attention__sliding_window=8)
    model(folder, "granite-without-positions", "granite", (T.Q8_0, T.Q8_0, T.Q4_0), logit_scale=8.0,
          rope__scaling__finetuned=False)
    model(folder, "phi3", "phi3", (T.Q8_0, T.Q8_0, T.Q4_0), rope__dimension_count=4,
          rope__scaling__original_context_length=32)
    model_with_states(folder, "lfm2", "lfm2", T.Q8_0)
    model_with_states(folder, "qwen35", "qwen35", T.Q4_0)
    open(f"{folder}/short", "wb").write(b"GGUF\3\0\0\0")


main()
