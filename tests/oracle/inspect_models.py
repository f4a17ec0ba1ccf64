#!/usr/bin/env python3
"""Compares `rlhf-host inspect` with PyTorch's hooks in float64 (inspect_numbers.py).

    inspect_models.py HOST DIR     makes models of every family of families.py in DIR, two of each, an
                                   adapter, a reward model and a critic, and checks all numbers

Needs torch, transformers, tokenizers, peft and safetensors."""
import json
import os
import shutil
import subprocess
import sys

import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import families
import inspect_numbers as numbers

PROMPT, GOOD, BAD = "The river was ", "g/x", "b"  # a token is a byte
LIMIT, SUM_LIMIT, GAP_LIMIT = 1e-4, 1e-5, 1e-5


def run(host, *flags):
    out = subprocess.run([host, "inspect", "--json", "--threads", "2", *flags], stdout=subprocess.PIPE)
    if out.returncode:
        sys.exit(f"rlhf-host inspect {' '.join(flags)} ended with {out.returncode}")
    return json.loads(out.stdout)["subjects"]


def load(directory, kind=hf.AutoModelForCausalLM):
    return kind.from_pretrained(directory, dtype=torch.float64, attn_implementation="eager").eval()


def vary(model, seed):
    """Changes the weights about as much as training could: the noise is a tenth of a parameter's
    mean absolute value."""
    g = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.data = p.data + 0.1 * p.data.abs().mean() * torch.randn(p.shape, generator=g).to(p.dtype)
    return model


def copy_tokenizer(base, to):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{base}/{name}", to)


def ids_of(tok, text):
    return tok(text).input_ids


def sides(tok):
    """The first token of each word, for both sides. The prompt ends in a space, so these tokens can
    follow it."""
    return [[ids_of(tok, w)[0] for w in side.split("/")] for side in (GOOD, BAD)]


def judge(name, ours, theirs, find=None):
    worst = {}
    for what, x in numbers.compare(ours, theirs, find):
        worst[what] = max(worst.get(what, 0.0), x)
    worst["error"], worst["source_error"] = ours["error"], ours["source_error"]
    bad = 0
    for what, x in worst.items():
        limit = SUM_LIMIT if what.startswith(("sum", "error", "source_error")) else LIMIT
        bad += not x <= limit
        if not x <= limit:
            print(f"{name:<14} {what:<24} {x:9.2e}   WRONG: limit {limit:.0e}")
    print(f"{name:<14} worst {max(worst, key=worst.get)}: {max(worst.values()):.1e}; "
          f"sum - measured {ours['error']:.1e}", flush=True)
    return bad


def pair(host, name, base, tuned, models, flags=()):
    tok = hf.PreTrainedTokenizerFast.from_pretrained(base)
    good, bad = sides(tok)
    by_text = {}
    for i in range(len(tok)):
        by_text.setdefault(tok.decode([i]), []).append(i)
    (ours,) = run(host, "--tuned", tuned, "--prompt", PROMPT, "--words", f"{GOOD},{BAD}", *flags)
    of = [numbers.Words(numbers.Parts(m), good, bad) for m in models]
    return judge(name, ours, numbers.numbers(of, ids_of(tok, PROMPT)), lambda text: by_text.get(text, []))


def check_families(host, root):
    wrong = 0
    for name in families.FAMILIES:
        base, tuned = f"{root}/{name}", f"{root}/{name}-tuned"
        vary(hf.AutoModelForCausalLM.from_pretrained(base), 5).save_pretrained(tuned)
        copy_tokenizer(base, tuned)
        wrong += pair(host, name, base, tuned, [load(base), load(tuned)], ["--base", base])
    return wrong


def check_adapters(host, root):
    import peft

    wrong = 0
    for name, targets in (("gpt2", ["c_attn", "c_proj", "c_fc"]), ("qwen3", "all-linear"), ("llama3", ["q_proj", "o_proj"]),
                          ("gemma3", "all-linear"), ("olmo2", "all-linear"), ("olmo3", "all-linear")):
        base, where = os.path.abspath(f"{root}/{name}"), f"{root}/{name}-adapter"
        model = hf.AutoModelForCausalLM.from_pretrained(base)
        made = peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=8, target_modules=targets,
                                                          fan_in_fan_out=name == "gpt2", task_type="CAUSAL_LM"))
        g = torch.Generator().manual_seed(7)
        for n, p in made.named_parameters():
            if "lora_B" in n:
                p.data = 0.1 * torch.randn(p.shape, generator=g)
        made.peft_config["default"].base_model_name_or_path = base
        made.save_pretrained(where)
        merged = peft.PeftModel.from_pretrained(load(base), where).merge_and_unload()
        wrong += pair(host, name + " LoRA", base, where, [load(base), merged])  # the adapter names its base
    return wrong


def check_rewards(host, root):
    wrong = 0
    for name in ("gpt2", "qwen3", "gemma3", "olmo2", "olmo3"):
        where = f"{root}/{name}-reward"
        config = hf.AutoConfig.from_pretrained(f"{root}/{name}", num_labels=1)
        config.pad_token_id = 0
        model = families.fill(hf.AutoModelForSequenceClassification.from_config(config), 9)
        tuned = where + "-tuned"
        for directory, m in ((where, model), (tuned, None)):
            (m or vary(model, 11)).save_pretrained(directory)
            copy_tokenizer(f"{root}/{name}", directory)
        config = json.load(open(f"{tuned}/config.json"))
        config["rlhf_reward"] = {"pooling": "mean", "gain": 1.7, "bias": -0.4}
        json.dump(config, open(f"{tuned}/config.json", "w"))
        kind = hf.AutoModelForSequenceClassification
        parts = [numbers.Parts(load(d, kind)) for d in (where, tuned)]
        ids = ids_of(hf.PreTrainedTokenizerFast.from_pretrained(where), PROMPT)
        of = [numbers.Score(parts[0]), numbers.Score(parts[1], 1.7, -0.4)]
        (ours,) = run(host, "--base", where, "--tuned", tuned, "--prompt", PROMPT)
        wrong += judge(name + " reward", ours, numbers.numbers(of, ids))
        (ours,) = run(host, "--reward-model", tuned, "--prompt", PROMPT)
        wrong += judge(name + " alone", ours, numbers.numbers(of[1:], ids))
    return wrong


def check_critics(host, root):
    wrong = 0
    for name in ("gpt2", "llama2"):
        where = f"{root}/{name}-critic"
        shutil.copytree(f"{root}/{name}", where)
        d = hf.AutoConfig.from_pretrained(where).hidden_size
        g = torch.Generator().manual_seed(3)
        draw = lambda *shape: torch.randn(*shape, generator=g) * 0.2
        head = {"v_head.fc.weight": draw(4 * d, d), "v_head.fc.bias": draw(4 * d), "v_head.out.weight": draw(1, 4 * d),
                "v_head.out.bias": draw(1)}
        os.mkdir(f"{where}/state")
        save_file(head, f"{where}/state/value_head.safetensors")
        (ours,) = run(host, "--critic", where, "--prompt", PROMPT)
        of = [numbers.Value(numbers.Parts(load(where)), load_file(f"{where}/state/value_head.safetensors"))]
        ids = ids_of(hf.PreTrainedTokenizerFast.from_pretrained(where), PROMPT)
        wrong += judge(name + " critic", ours, numbers.numbers(of, ids))
    return wrong


def main():
    host, root = sys.argv[1:]
    families.make(root)
    checks = (check_families, check_adapters, check_rewards, check_critics)
    sys.exit(1 if sum(check(host, root) for check in checks) else 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    hf.logging.set_verbosity_error()
    main()
