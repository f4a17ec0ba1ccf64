#!/usr/bin/env python3
"""Trains the same tiny model on the same rows with TRL and with the settings that rlhf_host.from_trl makes of TRL's
configuration, and compares losses, learning rates, gradient norms and the trained weights.

Usage: from_trl.py PACKAGES PROGRAM WORK

PACKAGES is the folder with rlhf_host. TRL's trainers run unchanged, on the CPU and in float32. GRPO's responses are those
that the program sampled: rollout_func hands them to TRL, which scores them and computes advantages and the loss itself.
"""
import json
import os
import shlex
import subprocess
import sys

sys.path.insert(0, sys.argv[1])
import tokenizers
import torch
import transformers as hf
import trl
from datasets import Dataset
from rlhf_host.from_trl import from_trl

PROGRAM, WORK = sys.argv[2], sys.argv[3]
MODEL = os.path.join(WORK, "model")
STEPS = 4
# Values that differ from the defaults of both sides. The large epsilon keeps rounding errors of tiny gradients small.
COMMON = dict(max_steps=STEPS, warmup_steps=1, learning_rate=5e-3, weight_decay=0.1, adam_beta1=0.8, adam_beta2=0.95,
              adam_epsilon=1e-4, max_grad_norm=0.5, bf16=False, use_cpu=True, report_to="none", logging_steps=1,
              save_strategy="no", disable_tqdm=True, seed=3)
TEMPLATE = ("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}<|endoftext|>{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}")


def make_model():
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: i for i, letter in enumerate(letters)}
    tok = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, []))
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = tokenizers.decoders.ByteLevel()
    fast = hf.PreTrainedTokenizerFast(tokenizer_object=tok, eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    fast.chat_template = TEMPLATE
    end = fast.eos_token_id
    torch.manual_seed(1)
    config = hf.GPT2Config(vocab_size=len(fast), n_positions=96, n_embd=32, n_layer=2, n_head=2, bos_token_id=end,
                           eos_token_id=end, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.1)
    hf.GPT2LMHeadModel(config).save_pretrained(MODEL)
    fast.save_pretrained(MODEL)


def messages(user, *answers):
    return [[{"role": "user", "content": user}]] + [[{"role": "assistant", "content": a}] for a in answers]


def rows_of(kind, n):
    words = "one two three four five six seven eight nine ten".split()
    rows = []
    for i in range(n):
        prompt, good, bad = messages(f"Count {words[i % 10]}.", words[(i + 1) % 10] + "!", "no " * (1 + i % 3))
        # GRPO's prompts have one length: GPT-2 has absolute positions, which TRL's padding on the left moves.
        rows.append({"SFT": {"prompt": f"After {words[i % 10]} comes", "completion": f" {words[(i + 1) % 10]}" + "." * (i % 4)},
                     "DPO": {"prompt": prompt, "chosen": good, "rejected": bad},
                     "KTO": {"prompt": prompt, "completion": bad if i % 3 else good, "label": i % 3 == 0},
                     "GRPO": {"prompt": f"Count from {i % 10}."}}[kind])
    return rows


def reward(completions, completion_ids, **kwargs):
    """A number that depends on every token."""
    return [sum((k + 1) * i for k, i in enumerate(ids)) % 17 / 17 for ids in completion_ids]


def ours(name, found, rows, more):
    """Runs the program, and returns the directory of the run and its metrics."""
    run, data = os.path.join(WORK, name), os.path.join(WORK, name + ".jsonl")
    with open(data, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    command = [PROGRAM, *shlex.split(found.command())[1:], "--policy", MODEL, "--threads", "1", "--set", "log.progress=off",
               "--set", "log.report=false", *[word.replace("DATA", data) for word in more]]
    at = command.index("--out")
    command[at + 1] = run
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{name}: {shlex.join(command)}\n{ran.stderr}")
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        return run, [json.loads(line) for line in file]


def weights(folder):
    return {k: v.double() for k, v in hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict().items()}


def compare(name, trainer, run, metrics, loss, factors=(1,) * STEPS):
    """Returns whether losses, rates, norms and weights agree. TRL's loss of each step is multiplied by a factor first."""
    to = run + "-exported"
    subprocess.run([PROGRAM, "export", run, "--to", to], check=True, capture_output=True)
    start, here = weights(MODEL), weights(to)
    there = {k: v.double() for k, v in trainer.model.state_dict().items()}
    moved = max((there[k] - start[k]).abs().max().item() for k in start)
    apart = max((there[k] - here[k]).abs().max().item() for k in start)
    steps = [entry for entry in trainer.state.log_history if "loss" in entry]
    phases = [m for m in metrics if "lr" in m]
    worst = {"rate": max(abs(a["learning_rate"] - b["lr"]) / COMMON["learning_rate"] for a, b in zip(steps, phases))}
    if len(steps) == len(phases):
        worst["norm"] = max(abs(a["grad_norm"] * f - b["optim/grad_norm"]) / (1e-6 + a["grad_norm"])
                            for a, b, f in zip(steps, phases, factors))
    if loss:
        worst["loss"] = max(abs(a["loss"] * f - b["objective/loss"]) / (1 + abs(a["loss"])) for a, b, f in zip(steps, phases, factors))
    worst["weights"] = apart / moved
    bad = moved < 1e-3 or any(v > 1e-4 for v in worst.values()) or len(phases) * trainer.steps_of_a_phase != STEPS
    said = ", ".join(f"{k} {v:.1e}" for k, v in worst.items())
    print(f"{name}: weights moved by {moved:.3f}; differences: {said}{'   WRONG' if bad else ''}")
    return not bad


def supervised(name, kind, text=False, **fields):
    config_type, trainer_type = getattr(trl, kind + "Config"), getattr(trl, kind + "Trainer")
    config = config_type(output_dir=name, per_device_train_batch_size=4, max_length=64, train_sampling_strategy="sequential",
                         **COMMON, **fields)
    found = from_trl(config)
    rows = rows_of(kind, 4 * STEPS * config.gradient_accumulation_steps)
    factors = [1] * STEPS
    if text:  # a text is trained from its beginning, and TRL's divisor counts its first token, which has no loss
        rows = [{"text": row["prompt"] + row["completion"]} for row in rows]
        of_step = len(rows) // STEPS
        trained = [sum(len(row["text"]) for row in rows[k:k + of_step]) for k in range(0, len(rows), of_step)]
        factors = [(n + of_step) / n for n in trained]
    run, metrics = ours(name, found, rows, ["--data", "DATA"])
    tok = hf.AutoTokenizer.from_pretrained(MODEL)
    trainer = trainer_type(model=hf.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32), args=config,
                           train_dataset=Dataset.from_list(rows), processing_class=tok)
    trainer.train()
    trainer.steps_of_a_phase = 1
    return compare(name, trainer, run, metrics, True, factors)


def recorded(run):
    """Returns all rows, phase by phase and group by group."""
    with open(os.path.join(run, "rollouts.jsonl"), encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if "row" in row]
    return sorted(rows, key=lambda r: (r["phase"], r["group"], r["row"]))


def grpo(name, **fields):
    config = trl.GRPOConfig(output_dir=name, num_generations=4, max_completion_length=12, temperature=0.7,
                            **{"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, **COMMON, **fields})
    found = from_trl(config)
    rewards = os.path.join(WORK, "rewards.py")
    with open(rewards, "w", encoding="utf-8") as file:
        file.write("def reward(completions, completion_ids, **kwargs):\n"
                   "    return [sum((k + 1) * i for k, i in enumerate(ids)) % 17 / 17 for ids in completion_ids]\n")
    rows = rows_of("GRPO", 8)
    run, metrics = ours(name, found, rows, ["--prompts", "DATA", "--reward", f"python.so:file={rewards},function=reward,python={sys.executable}",
                                            "--set", "log.rollouts=true"])
    left = recorded(run)

    def rollout(prompts, trainer):
        rows = [left.pop(0) for _ in prompts]
        return {"prompt_ids": [r["ids"][:r["prompt_length"]] for r in rows],
                "completion_ids": [r["ids"][r["prompt_length"]:] for r in rows], "logprobs": None}

    tok = hf.AutoTokenizer.from_pretrained(MODEL)
    trainer = trl.GRPOTrainer(model=hf.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32), args=config,
                              reward_funcs=reward, train_dataset=Dataset.from_list(rows), processing_class=tok, rollout_func=rollout)
    trainer.train()
    trainer.steps_of_a_phase = config.num_iterations
    return compare(name, trainer, run, metrics, False)


def defaults():
    """Fields of an object that TRL has filled in count as unchanged."""
    good = True
    for kind in ("GRPO", "RLOO", "SFT", "DPO", "KTO", "Reward", "Distillation"):
        found = from_trl(getattr(trl, kind + "Config")(use_cpu=True))
        changed = [row.field for row in found.report if not row.is_default and row.field not in
                   ("use_cpu", "generation_batch_size", "steps_per_generation", "dataloader_pin_memory")]
        refused = [row.field for row in found.report if row.becomes == "unknown"]
        print(f"{kind}Config: {len(found.report)} fields; differ from the defaults: {changed}; unknown: {refused}")
        good &= not changed and not refused
    return good


def main():
    make_model()
    results = [
        defaults(),
        supervised("sft", "SFT", gradient_accumulation_steps=2),
        supervised("sft-text", "SFT", text=True),
        supervised("sft-cosine", "SFT", lr_scheduler_type="cosine_with_min_lr", lr_scheduler_kwargs={"min_lr_rate": 0.2}),
        supervised("dpo", "DPO", beta=0.3, gradient_accumulation_steps=2),
        supervised("dpo-ipo", "DPO", loss_type="ipo", lr_scheduler_type="constant_with_warmup"),
        supervised("dpo-robust", "DPO", loss_type="robust", label_smoothing=0.2, lr_scheduler_type="polynomial"),
        supervised("dpo-smoothing", "DPO", label_smoothing=0.2),
        supervised("kto", "KTO", beta=0.5, undesirable_weight=2.0),
        supervised("kto-apo", "KTO", loss_type="apo_zero_unpaired", gradient_accumulation_steps=2),
        grpo("grpo"),
        grpo("grpo-kl", beta=0.5),  # TRL's KL with its ratio, ours with k2
        grpo("grpo-kl-k3", beta=0.5, use_bias_correction_kl=False),
        grpo("grpo-grpo", loss_type="grpo", scale_rewards="batch", beta=0.1),
        grpo("grpo-dr", loss_type="dr_grpo", scale_rewards="none"),
        grpo("grpo-bnpo", loss_type="bnpo", gradient_accumulation_steps=1, per_device_train_batch_size=8),
        grpo("grpo-cispo", loss_type="cispo", epsilon_high=5.0),
        grpo("grpo-sapo", loss_type="sapo", sapo_temperature_neg=2.0),
        grpo("grpo-entropy", entropy_coef=0.05, gradient_accumulation_steps=1, per_device_train_batch_size=8),
        grpo("grpo-parts", steps_per_generation=1, loss_type="grpo"),
        grpo("grpo-iterations", num_iterations=2, epsilon=0.1, epsilon_high=0.3, warmup_steps=0,
             lr_scheduler_type="constant"),
        grpo("grpo-sequence", num_iterations=2, importance_sampling_level="sequence", loss_type="grpo", epsilon=0.5, epsilon_high=3.0,
             warmup_steps=0, lr_scheduler_type="constant"),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
