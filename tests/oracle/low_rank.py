#!/usr/bin/env python3
"""Compares low-rank adapters with PEFT, for the families of families.py with adapters as PEFT writes them.

    low_rank.py make DIR            DIR/<name> the bases, DIR/<name>-some and -all with adapters:
                                    q_proj and v_proj (GPT-2: c_attn), all-linear
    low_rank.py names               the names of the directories with adapters, one per line
    low_rank.py check DIR HEADS     log-probs and gradients by HEADS (heads.c) and by PEFT in float64
    low_rank.py merged DIR OUT      OUT: a directory that `export --merge` made from DIR
    low_rank.py trained DIR RUN     20 steps of AdamW by sft.so, on the texts of curve.py, and by PEFT

Needs torch, transformers, tokenizers and peft. Differences are relative to a tensor's largest number.
"""
import glob
import json
import sys

import peft
import torch
import transformers as hf
from safetensors.torch import load_file

import curve
import families

NAMES = ("gpt2", "llama3", "qwen2", "qwen3", "smollm3-bias", "granite-hybrid", "phi3-part", "olmo2-bias", "qwen3.5-list",
         "lfm2-bias")
RANK, ALPHA, STEPS, LIMIT = 4, 6, 20, 1e-4


def targets(name, kind):
    if kind == "all":
        return "all-linear"
    return {"gpt2": ["c_attn"], "phi3-part": ["qkv_proj", "gate_up_proj"]}.get(name, ["q_proj", "v_proj"])


def names():
    return [f"{n}-{kind}" for n in NAMES for kind in ("some", "all")]


def make(root):
    tok = families.tokenizer()
    for i, name in enumerate(NAMES):
        base = f"{root}/{name}"
        families.fill(hf.AutoModelForCausalLM.from_config(families.FAMILIES[name]()), i).save_pretrained(base)
        tok.save_pretrained(base)
        for kind in ("some", "all"):
            torch.manual_seed(i)
            config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets(name, kind), lora_dropout=0.0,
                                     task_type="CAUSAL_LM", fan_in_fan_out=name == "gpt2")
            model = peft.get_peft_model(hf.AutoModelForCausalLM.from_pretrained(base), config)
            for n, p in model.named_parameters():
                if "lora_B" in n:
                    p.data = torch.randn(p.shape) * 0.1
            model.save_pretrained(f"{root}/{name}-{kind}")
            tok.save_pretrained(f"{root}/{name}-{kind}")


def load(directory, dtype):
    """The adapter on its base; the weights have the dtype, too."""
    with open(f"{directory}/adapter_config.json") as f:
        base = json.load(f)["base_model_name_or_path"]
    model = peft.PeftModel.from_pretrained(families.load(base, dtype), directory, is_trainable=True)
    return model.to(dtype).eval()


def plain(name):
    """The name in a checkpoint of the base for PEFT's name of a parameter."""
    return name.removeprefix("base_model.model.").replace(".default", "")


def apart(got, want):
    return ((got.double() - want.double()).abs().max() / want.double().abs().max()).item()


def say(what, x, limit=LIMIT):
    wrong = not x <= limit
    print(f"{what:<44} {x:9.2e}   limit {limit:.0e}{'   WRONG' if wrong else ''}", flush=True)
    return wrong


def check(root, program):
    bad = 0
    for name in names():
        model = load(f"{root}/{name}", torch.float64)
        rows = families.rows_of(1, 6, 60)
        weight = [(i * 7 % 11 - 3) / 8 for i in range(sum(map(len, rows)))]
        got = families.heads(program, f"{root}/{name}", "f32", rows, weight)
        want = torch.cat([torch.cat([torch.zeros(1), families.row_logp(model, r)[range(len(r) - 1), r[1:]].detach()])
                          for r in rows])
        bad += say(f"{name}: log-probs", apart(got.pop("logp"), want))
        loss, at = 0.0, 0
        for r in rows:
            logp = families.row_logp(model, r)
            loss = loss + sum(weight[at + t] * logp[t - 1, r[t]] for t in range(1, len(r)))
            at += len(r)
        loss.backward()
        worst = 0.0
        for n, p in model.named_parameters():
            if p.grad is not None:
                worst = max(worst, apart(got.pop("grad:" + plain(n)), p.grad.reshape(-1)))
        bad += say(f"{name}: gradients", worst)
        if got:
            sys.exit(f"{name}: gradients that PEFT does not have: {sorted(got)}")
    return bad


def merged(directory, out):
    want = load(directory, torch.float32).merge_and_unload().state_dict()
    got = {k: v for f in glob.glob(f"{out}/*.safetensors") for k, v in load_file(f).items()}
    missing = [n for n in want if n not in got and not n.startswith("lm_head")]
    if missing:
        sys.exit(f"{out} lacks {missing}")
    return say(f"{directory}: merged", max(apart(got[n], w) for n, w in want.items() if n in got), 1e-6)


def trained(directory, run):
    tok = hf.AutoTokenizer.from_pretrained(directory)
    model = load(directory, torch.float64)
    own = {plain(n): p for n, p in model.named_parameters() if p.requires_grad}
    optim = torch.optim.AdamW(own.values(), lr=1e-3, betas=(0.9, 0.95), eps=1e-5, weight_decay=0.1)
    rows = [[1] + tok(t, add_special_tokens=False).input_ids + [2] for t in curve.TEXTS]
    for _ in range(STEPS):
        total = sum(families.row_logp(model, r)[range(len(r) - 1), r[1:]].sum() for r in rows)
        optim.zero_grad()
        (-total / sum(len(r) - 1 for r in rows)).backward()
        torch.nn.utils.clip_grad_norm_(own.values(), 1.0)
        optim.step()
    (folder,) = glob.glob(f"{run}/checkpoints/*{STEPS}")
    got = {plain(n): w for n, w in load_file(f"{folder}/adapter_model.safetensors").items()}
    if sorted(got) != sorted(own):
        sys.exit(f"{folder} has other tensors than PEFT: {sorted(set(got) ^ set(own))}")
    bad = say(f"{directory}: {STEPS} steps", max(apart(got[n], p.detach()) for n, p in own.items()))
    # PEFT reads the written adapter, with the log-probs of the weights that it was written from.
    back = load(folder, torch.float64)
    with torch.no_grad():
        return bad + say(f"{directory}: read back", apart(families.row_logp(back, rows[0]),
                                                         families.row_logp(model, rows[0])))


if __name__ == "__main__":
    torch.set_num_threads(1)
    hf.logging.set_verbosity_error()
    if sys.argv[1] == "make":
        make(sys.argv[2])
    elif sys.argv[1] == "names":
        print("\n".join(names()))
    else:
        sys.exit(bool({"check": check, "merged": merged, "trained": trained}[sys.argv[1]](*sys.argv[2:])))
