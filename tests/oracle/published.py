#!/usr/bin/env python3
"""Compares a published language model with transformers in float32, with float64 as the judge, whose rotary positions are
computed in float64, too.

Usage: published.py HOST HEADS MODEL PROMPTS [LONG POSITIONS]

HOST is the program, HEADS tests/oracle/heads.c, MODEL a directory. PROMPTS has a text a line; LONG is a text of at
least POSITIONS tokens. None of these files is ever committed.
- Greedy texts of 60 tokens: each token must be the likeliest one of transformers in float32 after the same tokens. Where
  it is not, the two logits must differ by less in float64 than float32 moved them.
- Log-probs of these tokens (of every fourth text), and of every eighth token of LONG, against float64.
Exit status 0: the texts are the same, and our errors are not above those of transformers; 1: not so.
"""
import json
import os
import subprocess
import sys

import torch
import transformers as hf

import families

NEW, CHUNK, EVERY_TEXT, EVERY_TOKEN = 60, 128, 4, 8


def load(directory, dtype):
    return hf.AutoModelForCausalLM.from_pretrained(directory, dtype=dtype, attn_implementation="eager").eval()


def exact_positions(model):
    """Lets a model in float64 compute rotary positions in float64. transformers computes frequencies and angles in float32
    whatever the dtype is, so at position 8,000 an angle is off by up to 2e-4, also in its float64 model."""
    for module in model.modules():
        if not type(module).__name__.endswith("RotaryEmbedding"):
            continue

        def forward(x, position_ids, layer_type=None, c=module.config):
            rope = c.rope_parameters[layer_type] if layer_type else c.rope_parameters
            if rope["rope_type"] != "default":
                sys.exit(f"rope_type {rope['rope_type']}: only default positions are computed in float64")
            dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
            angle = position_ids[..., None].double() * rope["rope_theta"] ** (-torch.arange(0, dim, 2).double() / dim)
            angle = torch.cat((angle, angle), dim=-1)
            return angle.cos(), angle.sin()

        module.forward = forward
    return model


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
        ids, want = torch.tensor([row["ids"]]), torch.tensor(row["ids"][row["prompt_length"]:])
        at = torch.arange(len(want))
        logits = lambda model: model(input_ids=ids, logits_to_keep=len(want) + 1).logits[0, :-1]
        z = logits(single)
        others = (z.argmax(-1) != want).nonzero()[:, 0].tolist()
        if number % EVERY_TEXT and not others:
            continue
        judge = logits(exact)
        truth = torch.log_softmax(judge, -1)[at, want]
        ours.add(torch.tensor(row["logp_sampled"]), truth)
        theirs.add(torch.log_softmax(z, -1)[at, want], truth)
        for i in others:
            pair = [want[i].item(), z[i].argmax().item()]
            gap = (judge[i, pair[0]] - judge[i, pair[1]]).abs().item()
            moved = (z[i].double() - judge[i])[pair].abs().sum().item()
            differ, wrong = differ + 1, wrong + (gap > moved)
            print(f"  text {number}, token {i}: {pair[0]} here, {pair[1]} there; in float64 their logits differ by "
                  f"{gap:.2e}, float32 moved them by {moved:.2e}{'   WRONG' if gap > moved else ''}", flush=True)
    print(f"  {len(rows)} texts of {NEW} tokens, {differ} tokens differ, {wrong} of them are wrong")
    print(f"  log-probs: error here {ours}, of transformers {theirs}", flush=True)
    return ours, theirs, wrong


def long_logp(model, ids, every):
    """Log-probs of the tokens every, 2 every, ... With a cache, so that no attention matrix is of the whole length."""
    out, cache, cap = [], None, getattr(model.config, "final_logit_softcapping", None)
    for first in range(0, len(ids), CHUNK):
        done = model.model(input_ids=torch.tensor([ids[first:first + CHUNK]]), cache=cache, use_cache=True)
        cache = done.cache
        at = [t for t in range(first, min(first + CHUNK, len(ids) - 1)) if (t + 1) % every == 0]
        z = model.lm_head(done.last_hidden_state[0, [t - first for t in at]])
        z = torch.log_softmax(cap * torch.tanh(z / cap) if cap else z, -1)
        out.append(z[torch.arange(len(at)), [ids[t + 1] for t in at]])
    return torch.cat(out)


def main(host, heads, directory, prompts, long=None, positions=0):
    tok = hf.AutoTokenizer.from_pretrained(directory)
    bos = [tok.bos_token_id] if tok("a").input_ids[:1] == [tok.bos_token_id] else []
    rows, bad = texts(host, directory, prompts, bos), 0
    for row, line in zip(rows, open(prompts)):
        if row["ids"][:row["prompt_length"]] != tok(line.rstrip("\n")).input_ids:
            sys.exit(f"other ids of the prompt {line!r}")
    single, exact = load(directory, torch.float32), exact_positions(load(directory, torch.float64))
    print(f"{os.path.basename(directory)}:")
    ours, theirs, wrong = greedy(single, exact, rows)
    bad += wrong + (ours.rms() > theirs.rms())
    if long:
        ids = tok(open(long).read()).input_ids[:int(positions)]
        got = families.heads(heads, directory, "f32", [ids], [0.0] * len(ids))["logp"][EVERY_TOKEN::EVERY_TOKEN]
        other, judge = long_logp(single, ids, EVERY_TOKEN), long_logp(exact, ids, EVERY_TOKEN)
        for first in range(0, len(judge), 1000 // EVERY_TOKEN):
            ours, theirs, part = Gap(), Gap(), slice(first, first + 1000 // EVERY_TOKEN)
            ours.add(got[part], judge[part])
            theirs.add(other[part], judge[part])
            bad += ours.rms() > theirs.rms()
            print(f"  from position {EVERY_TOKEN * first}: error here {ours}, of transformers {theirs}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    hf.logging.set_verbosity_error()
    sys.exit(main(*sys.argv[1:]))
