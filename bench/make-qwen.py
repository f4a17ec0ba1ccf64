#!/usr/bin/env python3
"""Writes a directory with Qwen2.5-0.5B's or Qwen3.5-0.8B's shape: config.json, a made-up tokenizer, random weights in
bfloat16.

usage: make-qwen.py [--qwen3.5] DIR [FIELD=NUMBER ...]      changed fields of config.json

The vocabulary has 151,643 byte-level entries (256 bytes, merges of byte pairs, and merges of pairs with bytes),
then the special tokens, then padding up to 151,936 rows. For speed measurements, where the model's output does
not matter. transformers can read the same directory.
"""
import json
import math
import os
import sys

CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "vocab_size": 151936,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "rope_theta": 1000000.0,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "bos_token_id": 151643,
    "eos_token_id": 151643,
}
QWEN35 = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "vocab_size": 248320,
    "hidden_size": 1024,
    "intermediate_size": 3584,
    "num_hidden_layers": 24,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
    "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25},
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": 248044,
}
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ENTRIES = 151643


def byte_symbols():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in shown]
    return [chr(b) for b in shown] + [chr(256 + i) for i in range(len(rest))]


def shapes(c):
    """(name, shape, value of all elements) of every tensor; the value is None for random elements."""
    d, inner = c["hidden_size"], c["intermediate_size"]
    kv = d // c["num_attention_heads"] * c["num_key_value_heads"]
    yield "model.embed_tokens.weight", [c["vocab_size"], d], None
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        for name, rows in (("q", d), ("k", kv), ("v", kv)):
            yield f"{at}self_attn.{name}_proj.weight", [rows, d], None
            yield f"{at}self_attn.{name}_proj.bias", [rows], 0x0000
        yield at + "self_attn.o_proj.weight", [d, d], None
        yield at + "mlp.gate_proj.weight", [inner, d], None
        yield at + "mlp.up_proj.weight", [inner, d], None
        yield at + "mlp.down_proj.weight", [d, inner], None
        yield at + "input_layernorm.weight", [d], 0x3F80
        yield at + "post_attention_layernorm.weight", [d], 0x3F80
    yield "model.norm.weight", [d], 0x3F80


def qwen35_shapes(c):
    """The same for Qwen3.5, whose gains are stored without the 1."""
    d, inner, head = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    heads, values = c["num_attention_heads"] * head, c["linear_num_value_heads"] * c["linear_value_head_dim"]
    mixed = 2 * c["linear_num_key_heads"] * c["linear_key_head_dim"] + values
    yield "model.embed_tokens.weight", [c["vocab_size"], d], None
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        if (i + 1) % c["full_attention_interval"] == 0:
            kv = c["num_key_value_heads"] * head
            for name, rows in (("q", 2 * heads), ("k", kv), ("v", kv)):
                yield f"{at}self_attn.{name}_proj.weight", [rows, d], None
            yield at + "self_attn.o_proj.weight", [d, heads], None
            yield at + "self_attn.q_norm.weight", [head], 0x0000
            yield at + "self_attn.k_norm.weight", [head], 0x0000
        else:
            at += "linear_attn."
            for name, rows in (("qkv", mixed), ("z", values), ("b", c["linear_num_value_heads"]), ("a", c["linear_num_value_heads"])):
                yield f"{at}in_proj_{name}.weight", [rows, d], None
            yield at + "conv1d.weight", [mixed, 1, c["linear_conv_kernel_dim"]], None
            yield at + "A_log", [c["linear_num_value_heads"]], 0x0000
            yield at + "dt_bias", [c["linear_num_value_heads"]], 0x3F80
            yield at + "norm.weight", [c["linear_value_head_dim"]], 0x3F80
            yield at + "out_proj.weight", [d, values], None
            at = f"model.layers.{i}."
        yield at + "mlp.gate_proj.weight", [inner, d], None
        yield at + "mlp.up_proj.weight", [inner, d], None
        yield at + "mlp.down_proj.weight", [d, inner], None
        yield at + "input_layernorm.weight", [d], 0x0000
        yield at + "post_attention_layernorm.weight", [d], 0x0000
    yield "model.norm.weight", [d], 0x0000


def data(shape, value):
    """Little-endian bfloat16. Random elements have a random sign and a magnitude from 2^-7 to 2^-6."""
    n = math.prod(shape)
    out = bytearray(2 * n)
    if value is not None:
        out[0::2], out[1::2] = bytes([value & 255]) * n, bytes([value >> 8]) * n
    else:
        out[0::2] = os.urandom(n).translate(bytes(b & 0x7F for b in range(256)))
        out[1::2] = os.urandom(n).translate(bytes(b & 0x80 | 0x3C for b in range(256)))
    return out


def write_weights(path, config):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    tensors = list((shapes if config["model_type"] == "qwen2" else qwen35_shapes)(config))
    for name, shape, _ in tensors:
        end = at + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for _, shape, value in tensors:
            f.write(data(shape, value))


def main():
    newer = sys.argv[1] == "--qwen3.5"
    out, *changes = sys.argv[1 + newer:]
    config, entries, thirds = (dict(QWEN35), 248044, 3) if newer else (dict(CONFIG), ENTRIES, 2)
    for change in changes:
        key, value = change.split("=")
        config[key] = int(value)
    symbols = byte_symbols()
    merges = [(a, b) for a in symbols for b in symbols]
    for a, b in list(merges):
        merges += [(a + b, c) for c in symbols[:thirds]]
    merges = merges[:entries - len(symbols)]
    tokens = symbols + [a + b for a, b in merges]
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": entries + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i, t in enumerate(SPECIAL)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                  "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(m) for m in merges]},
    }
    os.makedirs(out, exist_ok=True)
    for name, what in (("config", config), ("tokenizer", tokenizer),
                       ("tokenizer_config", {"tokenizer_class": "PreTrainedTokenizerFast",
                                             "eos_token": SPECIAL[0], "pad_token": SPECIAL[0]})):
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(what, f, ensure_ascii=False, indent=1)
    write_weights(os.path.join(out, "model.safetensors"), config)


if __name__ == "__main__":
    main()
