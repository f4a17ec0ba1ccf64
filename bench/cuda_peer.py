#!/usr/bin/env python3
"""The work of rlhf-bench in PyTorch on the same card: GPT-2 124M, random weights, training and generation.

Prints one Markdown table row per measurement: name, milliseconds, tokens per second. Needs torch with
CUDA and transformers; exits with status 77 and a message if one is missing.
"""

import argparse
import sys
import time


def best_of(run, torch, times):
    """The shortest time of one run in seconds. The device is idle before and after. Two warm-ups do not count."""
    shortest = float("inf")
    for i in range(times + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        if i >= 2:
            shortest = min(shortest, time.perf_counter() - start)
    return shortest


def row(name, seconds, tokens):
    print(f"| {name} | {seconds * 1e3:.2f} | {tokens / seconds:.0f} |", flush=True)


def train(torch, model, rows, length, name, compiled):
    ids = torch.randint(0, model.config.vocab_size, (rows, length), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    forward = torch.compile(model) if compiled else model

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = forward(ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    row(name, best_of(step, torch, 10), rows * length)


def generate(torch, model, rows, prompt, new):
    ids = torch.randint(0, model.config.vocab_size, (rows, prompt), device="cuda")

    def run():
        with torch.autocast("cuda", dtype=torch.bfloat16), torch.no_grad():
            model.generate(ids, do_sample=True, top_k=0, max_new_tokens=new, min_new_tokens=new,
                           pad_token_id=0)

    row(f"generate, {rows} rows, {prompt} + {new} tokens", best_of(run, torch, 1), rows * new)


def product(torch, rows, k, n):
    x = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)

    def run():
        for _ in range(20):
            torch.nn.functional.linear(x, w)

    seconds = best_of(run, torch, 10) / 20
    print(f"| product {rows} x {k} x {n} | {seconds * 1e3:.4f} | {2e-9 * rows * k * n / seconds:.0f} GFLOP/s |",
          flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--len", type=int, default=1024)
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--new", type=int, default=512)
    args = parser.parse_args()
    try:
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError as e:
        print(f"skipped: {e}")
        sys.exit(77)
    if not torch.cuda.is_available():
        print("skipped: this PyTorch sees no GPU")
        sys.exit(77)
    import transformers

    print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, "
          f"{torch.cuda.get_device_name(0)}\n")
    print("| PyTorch | ms | tokens/s |\n|---|---|---|")
    for k, n in ((768, 2304), (768, 3072), (3072, 768)):
        for rows in (256, 4096):
            product(torch, rows, k, n)
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=True)
    model = GPT2LMHeadModel(config).cuda()
    train(torch, model, args.rows, args.len, f"training step, {args.rows} x {args.len}, eager autocast", False)
    train(torch, model, args.rows, args.len, f"training step, {args.rows} x {args.len}, torch.compile", True)
    model.eval()
    generate(torch, model, args.slots, args.prompt, args.new)


if __name__ == "__main__":
    main()
