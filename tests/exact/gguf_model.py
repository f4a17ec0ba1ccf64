#!/usr/bin/env python3
"""Writes a GGUF file of a model with random quantised weights, which depend only on the arguments.

    gguf_model.py OUT TOKENIZER_JSON CONFIG_JSON [FORMATS]

CONFIG_JSON is a config.json of transformers (model_type llama or qwen3). FORMATS names the format of each kind
of matrix, e.g. "q=Q4_0,k=Q8_0,v=Q6_K,*=Q4_K". The kinds are q, k, v, o, gate, up, down, embed and head. The
weights have a standard deviation of about 0.02. Needs only Python's standard library.
"""
import json
import random
import struct
import sys

# Type number in GGUF, elements and bytes of a block.
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
         "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210)}
ALIGNMENT = 32


def half(x):
    return struct.pack("<e", x)


def block(kind, bits):
    """A block from random bytes; `bits` has the size of a block. Its numbers are near 0 on average."""
    if kind == "Q8_0":
        return half(2.7e-4) + bits[2:]
    if kind == "Q4_0":
        return half(4e-3) + bits[2:]
    if kind == "Q4_1":
        return half(4e-3) + half(-3e-2) + bits[4:]
    if kind == "Q5_0":
        return half(2e-3) + bits[2:]
    if kind == "Q5_1":
        return half(2e-3) + half(-3.1e-2) + bits[4:]
    if kind == "Q4_K":
        return half(1e-4) + half(7.5e-4) + bits[4:]
    if kind == "Q5_K":
        return half(5e-5) + half(7.75e-4) + bits[4:]
    if kind == "Q6_K":
        return bits[:208] + half(1.5e-5)
    raise ValueError(kind)


def matrix(out, r, kind, rows, columns):
    """Writes rows x columns random numbers."""
    _, elements, size = TYPES[kind]
    assert columns % elements == 0, f"{columns} columns are not a multiple of the {elements} elements of a {kind} block"
    # A large matrix repeats the same rows, so that it is made quickly.
    some = []
    for _ in range(min(rows, 256)):
        bits = r.randbytes(columns // elements * size)
        some.append(b"".join(block(kind, bits[i:i + size]) for i in range(0, len(bits), size)))
    for i in range(0, rows, 256):
        out.write(b"".join(some[:min(256, rows - i)]))


def text(s):
    s = s.encode()
    return struct.pack("<Q", len(s)) + s


def value(v):
    if isinstance(v, bool):
        return struct.pack("<I?", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    first = value(v[0])
    return struct.pack("<I", 9) + first[:4] + struct.pack("<Q", len(v)) + b"".join(value(x)[4:] for x in v)


def tokens_of(path):
    with open(path) as f:
        all = json.load(f)
    vocab = dict(all["model"]["vocab"])
    special = {t["content"]: t["id"] for t in all["added_tokens"]}
    vocab.update(special)
    order = sorted(vocab, key=vocab.get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in all["model"]["merges"]]
    return order, [3 if t in special else 1 for t in order], merges


def metadata(config, tokenizer):
    arch = config["model_type"]
    tokens, types, merges = tokens_of(tokenizer)
    tokens += [f"pad{i}" for i in range(len(tokens), config["vocab_size"])]
    types += [1] * (len(tokens) - len(types))
    heads = config["num_attention_heads"]
    width = config.get("head_dim") or config["hidden_size"] // heads
    meta = {
        "general.architecture": arch, "general.name": "random", "general.alignment": ALIGNMENT,
        f"{arch}.context_length": config["max_position_embeddings"], f"{arch}.embedding_length": config["hidden_size"],
        f"{arch}.block_count": config["num_hidden_layers"], f"{arch}.feed_forward_length": config["intermediate_size"],
        f"{arch}.attention.head_count": heads, f"{arch}.attention.head_count_kv": config["num_key_value_heads"],
        f"{arch}.attention.key_length": width, f"{arch}.attention.value_length": width,
        f"{arch}.attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        f"{arch}.rope.freq_base": float(config["rope_theta"]), f"{arch}.vocab_size": len(tokens),
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types, "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": config["bos_token_id"], "tokenizer.ggml.eos_token_id": config["eos_token_id"]}
    if arch == "llama":
        meta["llama.rope.dimension_count"] = width
    return meta


def tensors(config):
    """(name, kind of matrix, rows, columns); rows 0: a norm."""
    d, inner = config["hidden_size"], config["intermediate_size"]
    width = config.get("head_dim") or d // config["num_attention_heads"]
    q, kv = config["num_attention_heads"] * width, config["num_key_value_heads"] * width
    yield "token_embd.weight", "embed", config["vocab_size"], d
    if not config["tie_word_embeddings"]:
        yield "output.weight", "head", config["vocab_size"], d
    yield "output_norm.weight", "", 0, d
    for i in range(config["num_hidden_layers"]):
        for name, kind, rows, columns in (
                ("attn_norm", "", 0, d), ("attn_q", "q", q, d), ("attn_k", "k", kv, d), ("attn_v", "v", kv, d),
                ("attn_output", "o", d, q), ("ffn_norm", "", 0, d), ("ffn_gate", "gate", inner, d),
                ("ffn_up", "up", inner, d), ("ffn_down", "down", d, inner)):
            yield f"blk.{i}.{name}.weight", kind, rows, columns
        if config["model_type"] == "qwen3":
            yield f"blk.{i}.attn_q_norm.weight", "", 0, width
            yield f"blk.{i}.attn_k_norm.weight", "", 0, width


def formats_of(words):
    return dict(word.split("=") for word in words.split(","))


def write(path, tokenizer, config, formats):
    """Writes the file. formats: {kind of matrix: name of a format}, with "*" for all others."""
    meta = metadata(config, tokenizer)
    listed, at = [], 0
    for name, kind, rows, columns in tensors(config):
        form = formats.get(kind, formats["*"]) if rows else "F32"
        number, elements, size = TYPES[form]
        listed.append((name, form, rows, columns, number, at))
        at += (max(rows, 1) * columns // elements * size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(meta))
    head += b"".join(text(k) + value(v) for k, v in meta.items())
    for name, _, rows, columns, number, offset in listed:
        shape = (columns, rows) if rows else (columns,)
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number, offset)
    head += bytes(-len(head) % ALIGNMENT)
    with open(path, "wb") as out:
        out.write(head)
        for name, form, rows, columns, _, offset in listed:
            out.write(bytes(len(head) + offset - out.tell()))
            if rows:
                matrix(out, random.Random(name), form, rows, columns)
            else:
                out.write(struct.pack("<f", 1.0) * columns)


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    with open(sys.argv[3]) as f:
        config = json.load(f)
    write(sys.argv[1], sys.argv[2], config, formats_of(sys.argv[4] if len(sys.argv) == 5 else "*=Q4_K"))


if __name__ == "__main__":
    main()
