#!/usr/bin/env python3
"""Trains a model directory of transformers with two phases of PPO, and loads the result with transformers.

Usage: round_trip.py HOST WORK POLICY

HOST is the program, WORK an empty directory, and POLICY our directory of the default policy. The script tests a tiny GPT-2
with random weights in f32, in bf16 and with an untied head. It also tests POLICY after transformers has loaded and saved
it and, if peft is installed, after an adapter has been merged into it.

For each model:
- the program accepts the unchanged directory;
- from_pretrained loads the checkpoints in their stored dtype, with the weights of the file;
- the log-probs of the second phase's rows equal those that the program recorded while sampling;
- the bits per byte of a text equal those of `eval`;
- the token ids are the same.
Exit status 0: all of this holds; 1: something does not.
"""
import json
import math
import os
import subprocess
import sys

import torch
import transformers as hf
from safetensors.torch import load_file

HOST, WORK, POLICY = sys.argv[1:4]
HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["The river was better than the bread.", "A film. It wasn't so,\n\n and in 1987 it was."]
PROMPTS = ["The river", "It was", "She said that"]
failed = []


def say(name, what, good, detail=""):
    print(f"{name}: {what}: {'ok' if good else 'WRONG'}{' ' if detail else ''}{detail}", flush=True)
    if not good:
        failed.append(f"{name}: {what}")


def tiny(directory, dtype, **more):
    tok = hf.AutoTokenizer.from_pretrained(os.environ["RLHF_BUILD_DIR"] + "/tests/hf/dirs/gpt2")
    torch.manual_seed(3)
    model = hf.GPT2LMHeadModel(hf.GPT2Config(
        vocab_size=len(tok), n_positions=64, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=tok.bos_token_id, eos_token_id=tok.eos_token_id, **more)).to(dtype)
    model.save_pretrained(directory)
    tok.save_pretrained(directory)


def again(directory, merge):
    """Loads and saves POLICY as a user would. With `merge`, also merges an adapter into POLICY."""
    model = hf.AutoModelForCausalLM.from_pretrained(POLICY, dtype=torch.float32)
    if merge:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", r=4))
        torch.manual_seed(4)
        for name, p in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.01)
        model = model.merge_and_unload()
    model.save_pretrained(directory)
    hf.AutoTokenizer.from_pretrained(POLICY).save_pretrained(directory)


def host(*args):
    done = subprocess.run([HOST, *args], capture_output=True, text=True, cwd=WORK)
    if done.returncode:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def train(name):
    with open(f"{WORK}/prompts.txt", "w") as f:
        f.write("\n".join(PROMPTS) + "\n")
    host("--algo", "ppo.so", "--policy", name, "--reward", "period_count.so", "--prompts",
         "prompts.txt", "--out", f"{name}-run", "--threads", "1", "--set", "run.phases=2",
         "--set", "checkpoint.every=1", "--set", "log.rollouts=true", "--set", "compute.dtype=f32",
         "--set", "batch.size=8", "--set", "sampling.max_new_tokens=8", "--set", "optim.lr=0.001",
         "--set", "sampling.temperature=1")


def check_rows(name, model):
    """Phase 2 was sampled with the checkpoint of phase 1."""
    worst, n = 0.0, 0
    for line in open(f"{WORK}/{name}-run/rollouts.jsonl"):
        row = json.loads(line)
        if row["phase"] != 2 or "ids" not in row:
            continue
        ids, begin = torch.tensor([row["ids"]]), row["prompt_length"]
        with torch.no_grad():
            logp = torch.log_softmax(model(ids).logits[0].double(), -1)
        for k, got in enumerate(row["logp_sampled"]):
            worst = max(worst, abs(got - logp[begin + k - 1, row["ids"][begin + k]].item()))
            n += 1
    say(name, f"{n} log-probs", n > 20 and worst < 2e-5, f"largest difference {worst:.1e}")


def check_eval(name, model, tok):
    directory = f"{WORK}/{name}-run/checkpoints/latest"
    with open(f"{WORK}/texts.jsonl", "w") as f:
        f.writelines(json.dumps({"text": t}) + "\n" for t in TEXTS)
    got = json.loads(host("eval", "--model", directory, "--data", "texts.jsonl", "--json", "--dtype",
                          "f32"))["bits_per_byte"]
    nats, n_bytes = 0.0, 0
    for text in TEXTS:
        ids = torch.tensor([tok(text).input_ids])
        with torch.no_grad():
            logp = torch.log_softmax(model(ids).logits[0, :-1].double(), -1)
        nats -= logp[torch.arange(ids.shape[1] - 1), ids[0, 1:]].sum().item()
        n_bytes += len(tok.decode(ids[0, 1:], skip_special_tokens=True).encode())  # the first token is not predicted
    want = nats / math.log(2) / n_bytes
    say(name, "bits per byte", abs(got - want) < 1e-5 * want, f"{got:.7g} and {want:.7g}")


def check_weights(name, directory, model):
    """from_pretrained without a dtype must not round the weights, whatever the dtype of the starting
    model was."""
    file, mine = load_file(f"{directory}/model.safetensors"), model.state_dict()
    base = {k if k.startswith("lm_head") else "transformer." + k.removeprefix("transformer."): v
            for k, v in file.items()}
    wrong = [k for k, v in base.items() if k not in mine or mine[k].dtype != v.dtype
             or not torch.equal(mine[k], v)]
    lacking = [k for k in mine if k not in base and k != "lm_head.weight"]
    say(name, f"{len(base)} tensors", not wrong and not lacking, " ".join((wrong + lacking)[:4]))


def check(name):
    train(name)
    for phase in (1, 2):
        directory = f"{WORK}/{name}-run/checkpoints/{phase:06d}"
        model = hf.AutoModelForCausalLM.from_pretrained(directory).eval()
        tok = hf.AutoTokenizer.from_pretrained(directory)
        check_weights(name, directory, model)
        if phase == 1:
            check_rows(name, model)
        else:
            check_eval(name, model, tok)
    start = hf.AutoTokenizer.from_pretrained(f"{WORK}/{name}")
    say(name, "ids", all(tok(t).input_ids == start(t).input_ids for t in TEXTS + PROMPTS))


def main():
    hf.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    tiny(f"{WORK}/tiny", torch.float32)
    tiny(f"{WORK}/tiny-bf16", torch.bfloat16)
    tiny(f"{WORK}/tiny-untied", torch.float16, tie_word_embeddings=False)
    again(f"{WORK}/policy", False)
    names = ["tiny", "tiny-bf16", "tiny-untied", "policy"]
    try:
        again(f"{WORK}/merged", True)
        names.append("merged")
    except ImportError:
        print("peft is not there: no merged adapter")
    for name in names:
        check(name)
    if failed:
        sys.exit("wrong: " + "; ".join(failed))


main()
