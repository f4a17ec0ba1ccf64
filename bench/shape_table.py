#!/usr/bin/env python3
"""Prints the Markdown table of bench/shape: the shortest and the median times of its rounds.

    shape_table.py LOG
"""
import re
import statistics
import sys

TIMES = [  # row of the table, start of the printed line, unit, row that its ratio refers to
    ("training step, rlhf-host", r"training step, \d+ x \d+ tokens  +", "ms", None),
    ("training step, PyTorch eager", r"training step, .* tokens, eager +", "ms", "training step, rlhf-host"),
    ("training step, torch.compile", r"training step, .* tokens, compiled +", "ms", "training step, rlhf-host"),
    ("decode, rlhf-host", r"decode, .* tokens +", "ms a step", None),
    ("decode, transformers' generate", r"generate, .* tokens +", "ms a step", "decode, rlhf-host"),
]
PEAKS = [("product peak of rlhf-host, bf16", r"product peak, bf16 +"),
         ("product peak of rlhf-host, f32", r"product peak, f32 +"),
         ("product peak of PyTorch, bf16", r"product peak of PyTorch, bf16 +"),
         ("product peak of PyTorch, f32", r"product peak of PyTorch, f32 +")]


def found(lines, begin):
    hits = (re.match(begin + r"([0-9.]+) ", line) for line in lines)
    return [float(m.group(1)) for m in hits if m]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        lines = f.read().splitlines()
    times = {name: found(lines, begin) for name, begin, _, _ in TIMES}
    print("\n| | shortest | median | rounds | over rlhf-host (shortest, median) |\n|---|---|---|---|---|")
    for name, _, unit, base in TIMES:
        t = times[name]
        if not t:
            continue
        low, mid = min(t), statistics.median(t)
        b = times.get(base)
        ratio = f"{low / min(b):.2f}, {mid / statistics.median(b):.2f}" if b else ""
        print(f"| {name} | {low:.1f} {unit} | {mid:.1f} {unit} | {len(t)} | {ratio} |")
    print("\n| | largest | median | measured |\n|---|---|---|---|")
    for name, begin in PEAKS:
        p = found(lines, begin)
        if p:
            print(f"| {name} | {max(p):.0f} GFLOP/s | {statistics.median(p):.0f} GFLOP/s | {len(p)} |")
    share = [float(m.group(1)) for m in (re.search(r"([0-9.]+) % of peak", line) for line in lines
                                         if line.startswith(("training", "decode"))) if m]
    if share:
        print(f"\nOf the peak that each run of rlhf-host measured itself: {', '.join(f'{s:.1f} %' for s in share)}.")


if __name__ == "__main__":
    main()
