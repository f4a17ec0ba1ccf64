#!/usr/bin/env python3
"""PPO phases of TRL on the CPU, at the shape of bench/ppo-phase.

    ppo_peer.py DIR [--rows 32 --prompt 16 --new 48 --epochs 4 --micro 16 --phases 3 --dtype auto]

DIR is written by make-gpt2.py; weights are random. Policy, reference, critic and reward classifier each have
a separate trunk of that size, as TRL's trainer requires. Uses bfloat16 autocast if the processor has
instructions for it. Prints the shortest phase in seconds and the peak memory. Needs torch, transformers and a
version of trl that has trl.experimental.ppo (1.12 has it, 1.16 does not). Exits with status 77 and a message
if one is missing.
"""
import argparse
import copy
import resource
import sys
import tempfile
import time

try:
    import datasets
    import torch
    import transformers as hf
    from trl.experimental.ppo import PPOConfig, PPOTrainer
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def has_bf16():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return "avx512_bf16" in f.read()


class Clock(hf.TrainerCallback):
    """Times the phases: TRL's trainer reports only the end of each phase."""

    def __init__(self):
        self.phases = []

    def on_train_begin(self, args, state, control, **kwargs):
        self.begin = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        now = time.perf_counter()
        self.phases.append(now - self.begin)
        self.begin = now


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    for name, size in (("rows", 32), ("prompt", 16), ("new", 48), ("epochs", 4), ("micro", 16), ("phases", 3)):
        p.add_argument(f"--{name}", type=int, default=size)
    p.add_argument("--dtype", choices=("auto", "f32", "bf16"), default="auto")
    a = p.parse_args()
    bf16 = has_bf16() if a.dtype == "auto" else a.dtype == "bf16"
    torch.manual_seed(0)
    tokenizer = hf.AutoTokenizer.from_pretrained(a.dir)
        # Not the id of the end token: rows would be truncated where that token is sampled.
    tokenizer.pad_token_id = 0
    config = hf.AutoConfig.from_pretrained(a.dir, pad_token_id=0)
    policy = hf.AutoModelForCausalLM.from_config(config)
    head = copy.deepcopy(config)
    head.num_labels = 1
    clock = Clock()
    rows = datasets.Dataset.from_list([{"input_ids": [1000 + i] * a.prompt} for i in range(4 * a.rows)])
    with tempfile.TemporaryDirectory() as out:
        args = PPOConfig(output_dir=out, use_cpu=True, bf16=bf16, per_device_train_batch_size=a.micro,
                         gradient_accumulation_steps=a.rows // a.micro, num_mini_batches=1, num_ppo_epochs=a.epochs,
                         total_episodes=a.phases * a.rows, local_rollout_forward_batch_size=a.rows,
                         response_length=a.new, num_sample_generations=0, stop_token_id=None, temperature=1.0,
                         save_strategy="no", eval_strategy="no", report_to=[], disable_tqdm=True,
                         gradient_checkpointing=False, logging_steps=1000)
        trainer = PPOTrainer(args=args, processing_class=tokenizer, model=policy, ref_model=copy.deepcopy(policy),
                             reward_model=hf.AutoModelForSequenceClassification.from_config(copy.deepcopy(head)),
                             value_model=hf.AutoModelForSequenceClassification.from_config(head),
                             train_dataset=rows, eval_dataset=rows.select(range(a.rows)), callbacks=[clock])
        trainer.train()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"TRL's PPO, {a.rows} rows, {a.prompt} + {a.new} tokens, {a.epochs} epochs, "
          f"{'bf16' if bf16 else 'f32'}: {min(clock.phases):8.2f} s a phase, {peak:.2f} GiB")


if __name__ == "__main__":
    main()
