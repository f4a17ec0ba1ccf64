#!/usr/bin/env python3
"""A training step and a generation in PyTorch and transformers on the CPU, at a shape of bench/shape, or of
GPT-2 124M for bench/run.

    shape_peer.py train eager|compiled | generate     [--rows 8 --len 128 --slots 16 --prompt 16 --new 48 --layers 24]
                                                     [--model qwen|smollm2|gemma3|qwen3.5|lfm2|qwen3|gpt2] [--dtype auto|bf16|f32]

Uses random weights, AdamW and clipping by the global norm, and bfloat16 autocast if the processor has
instructions for it (or as --dtype says). Prints the shortest of some runs in milliseconds, as rlhf-bench
does. Needs torch and transformers; exits with status 77 and a message if one is missing.
"""
import argparse
import sys
import time

try:
    import torch
    import transformers as hf
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

SHAPES = {
    "qwen": ("Qwen2Config", {"vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
                             "num_attention_heads": 14, "num_key_value_heads": 2}),
    "smollm2": ("LlamaConfig", {"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
                                "num_attention_heads": 9, "num_key_value_heads": 3}),
    "gemma3": ("Gemma3TextConfig", {"vocab_size": 262144, "hidden_size": 640, "intermediate_size": 2048,
                                    "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
                                    "sliding_window": 512}),
    "qwen3.5": ("Qwen3_5TextConfig", {"vocab_size": 248320, "hidden_size": 1024, "intermediate_size": 3584,
                                      "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
                                      "linear_num_key_heads": 16, "linear_num_value_heads": 16}),
    "lfm2": ("Lfm2Config", {"vocab_size": 65536, "hidden_size": 1024, "intermediate_size": 6656,
                            "num_attention_heads": 16, "num_key_value_heads": 8, "full_attn_idxs": [2, 5, 8, 10, 12, 14]}),
    "qwen3": ("Qwen3Config", {"vocab_size": 65536, "hidden_size": 1024, "intermediate_size": 3072,
                              "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128})}


DTYPE = "auto"


def has_bf16():
    if DTYPE != "auto":
        return DTYPE == "bf16"
    with open("/proc/cpuinfo") as f:
        return "avx512_bf16" in f.read()


def peaks():
    """Matrix products of the sizes that rlhf-bench uses for its own peaks, computed by PyTorch."""
    n = 1024
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        if dtype == torch.bfloat16 and not has_bf16():
            continue
        a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
        best = best_of(lambda: torch.mm(a, b), 20)
        print(f"product peak of PyTorch, {name:<20} {2 * n**3 / best * 1e-9:10.0f} GFLOP/s", flush=True)


def best_of(run, times):
    shortest = float("inf")
    for i in range(times + 1):
        start = time.perf_counter()
        run()
        if i:
            shortest = min(shortest, time.perf_counter() - start)
    return shortest


def train(model, a):
    ids = torch.randint(0, model.config.vocab_size, (a.rows, a.len))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    forward = torch.compile(model) if a.how == "compiled" else model

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bf16()):
            loss = forward(ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    best = best_of(step, 3)
    print(f"training step, {a.rows} x {a.len} tokens, {a.how:<12} {best * 1e3:10.1f} ms, "
          f"{a.rows * a.len / best:.0f} tokens/s")


def generate(model, a):
    if has_bf16():
        model = model.bfloat16()
    ids = torch.randint(0, model.config.vocab_size, (a.slots, a.prompt))

    def run(new):
        with torch.no_grad():
            model.generate(ids, do_sample=True, top_k=0, max_new_tokens=new, min_new_tokens=new, pad_token_id=0)

    some = best_of(lambda: run(a.new), 2) - best_of(lambda: run(1), 2)
    print(f"generate, {a.slots} rows, {a.prompt} + {a.new} tokens      {some * 1e3 / (a.new - 1):10.2f} ms a step, "
          f"{a.slots * (a.new - 1) / some:.0f} tokens/s")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=("train", "generate"))
    p.add_argument("how", nargs="?", choices=("eager", "compiled"), default="eager")
    for name, size in (("rows", 8), ("len", 128), ("slots", 16), ("prompt", 16), ("new", 48), ("layers", 24)):
        p.add_argument(f"--{name}", type=int, default=size)
    p.add_argument("--model", choices=(*SHAPES, "gpt2"), default="qwen")
    p.add_argument("--dtype", choices=("auto", "bf16", "f32"), default="auto")
    a = p.parse_args()
    global DTYPE
    DTYPE = a.dtype
    torch.manual_seed(0)
    peaks()
    if a.model == "gpt2":
        config = hf.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)  # its defaults are 124M
    else:
        kind, sizes = SHAPES[a.model]
        config = getattr(hf, kind)(**sizes, num_hidden_layers=a.layers, max_position_embeddings=32768,
                                   tie_word_embeddings=True)
    model = hf.AutoModelForCausalLM.from_config(config)
    (train if a.what == "train" else generate)(model, a)


if __name__ == "__main__":
    main()
