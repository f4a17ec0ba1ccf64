#!/usr/bin/env python3
"""Compares a published language model with transformers in float32, with float64 as the judge.

Usage: published.py HOST HEADS MODEL PROMPTS [LONG POSITIONS]

HOST is the program, HEADS tests/oracle/heads.c, MODEL a directory. PROMPTS has a text a line; LONG is a text of at
least POSITIONS tokens. None of these files is ever committed.
- Greedy texts of 60 tokens: each token must be the likeliest one of transformers in float32 after the same tokens. Where
  it is not, the two logits must differ by less in float64 than float32 moved them.
- Log-probs of these tokens, and of the tokens of LONG, against float64.
Exit status 0: the texts are the same, and our errors are not above those of transformers; 1: not so.
"""
import json
import os
import subprocess
import sys

import torch
import transformers as hf

import families

NEW, CHUNK, ROWS = 60, 128, 16


def load(directory, dtype):
    return hf.AutoModelForCausalLM.from_pretrained(directory, dtype=dtype, attn_implementation="eager").eval()


def texts(host, directory, prompts, bos):
    said = subprocess.run([host, "generate", "--model", directory, "--prompts", prompts, "--greedy", "--ignore-eos", "--json",
                           "--max-new", str(NEW), "--dtype", "f32", "--threads", "1", *(["--bos"] if bos else [])],
                          check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in said.splitlines()]


class Gap:
    """Root mean squares of differences from float64."""

    def __init__(self):
        self.squares, self.n, self.worst = 0.0, 0, 0.0

    def add(self, x, judge):
        d = (x.double() - judge).abs()
        self.squares, self.n, self.worst = self.squares + d.square().sum().item(), self.n + d.numel(), max(self.worst, d.max().item())

    def __str__(self):
        return f"{self.rms():.3e} (largest {self.worst:.3e})"

    def rms(self):
        return (self.squares / self.n) ** 0.5


def greedy(single, exact, rows):
    """Errors of both sides, and the number of tokens that are not the likeliest of transformers and cannot be explained."""
    ours, theirs, differ, wrong = Gap(), Gap(), 0, 0
    for number, row in enumerate(rows):
        ids, start = torch.tensor([row["ids"]]), row["prompt_length"]
        with torch.no_grad():
            z, judge = (m(input_ids=ids, logits_to_keep=NEW + 1).logits[0, :-1] for m in (single, exact))
        want = ids[0, start:]
        at = torch.arange(len(want))
        truth = torch.log_softmax(judge, -1)[at, want]
        ours.add(torch.tensor(row["logp_sampled"]), truth)
        theirs.add(torch.log_softmax(z, -1)[at, want], truth)
        for i in (z.argmax(-1) != want).nonzero()[:, 0].tolist():
            other = z[i].argmax().item()
            gap = abs(judge[i, want[i]] - judge[i, other]).item()
            moved = (z[i].double() - judge[i])[[want[i].item(), other]].abs().sum().item()
            differ, wrong = differ + 1, wrong + (gap > moved)
            print(f"  text {number}, token {i}: {want[i].item()} here, {other} there; in float64 their logits differ by "
                  f"{gap:.2e}, float32 moved them by {moved:.2e}{'   WRONG' if gap > moved else ''}", flush=True)
    print(f"  {len(rows)} texts of {NEW} tokens, {differ} tokens differ, {wrong} of them are wrong")
    print(f"  log-probs: error here {ours}, of transformers {theirs}", flush=True)
    return ours, theirs, wrong


def long_logp(model, ids):
    """Log-probs of ids[1:], with a cache, so that no attention matrix is of the whole length."""
    out, cache = [], None
    with torch.no_grad():
        for first in range(0, len(ids), CHUNK):
            part = torch.tensor([ids[first:first + CHUNK]])
            done = model.model(input_ids=part, cache=cache, use_cache=True)
            cache = done.cache
            hidden = done.last_hidden_state[0]
            for i in range(0, part.shape[1], ROWS):
                want = torch.tensor(ids[first + i + 1:first + i + 1 + min(ROWS, part.shape[1] - i)])
                z, cap = model.lm_head(hidden[i:i + len(want)]), getattr(model.config, "final_logit_softcapping", None)
                z = torch.log_softmax(cap * torch.tanh(z / cap) if cap else z, -1)
                out.append(z[torch.arange(len(want)), want])
    return torch.cat(out)


def main(host, heads, directory, prompts, long=None, positions=0):
    tok = hf.AutoTokenizer.from_pretrained(directory)
    bos = [tok.bos_token_id] if tok("a").input_ids[:1] == [tok.bos_token_id] else []
    rows, bad = texts(host, directory, prompts, bos), 0
    for row, line in zip(rows, open(prompts)):
        if row["ids"][:row["prompt_length"]] != tok(line.rstrip("\n")).input_ids:
            sys.exit(f"other ids of the prompt {line!r}")
    single, exact = load(directory, torch.float32), load(directory, torch.float64)
    print(f"{os.path.basename(directory)}:")
    ours, theirs, wrong = greedy(single, exact, rows)
    bad += wrong + (ours.rms() > theirs.rms())
    if long:
        ids = tok(open(long).read()).input_ids[:int(positions)]
        got = families.heads(heads, directory, "f32", [ids], [0.0] * len(ids))["logp"][1:]
        judge, other = long_logp(exact, ids), long_logp(single, ids)
        for first in range(0, len(judge), 1000):
            ours, theirs, part = Gap(), Gap(), slice(first, first + 1000)
            ours.add(got[part], judge[part])
            theirs.add(other[part], judge[part])
            bad += ours.rms() > theirs.rms()
            print(f"  positions {first:5} to {min(first + 1000, len(judge)):5}: error here {ours}, of transformers {theirs}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    hf.logging.set_verbosity_error()
    sys.exit(main(*sys.argv[1:]))
