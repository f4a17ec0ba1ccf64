#!/usr/bin/env python3
"""GRPO steps of TRL with PEFT on the CPU, at the shape of bench/lora-step; without adapters for bench/run.

    lora_peer.py DIR [--groups 4 --samples 8 --prompt 64 --new 64 --rank 16 --steps 3 --dtype auto]

DIR is an output of make-qwen.py or make-gpt2.py. make-gpt2.py writes no weights, so this script writes random
ones there. Adapters of `rank` are on all linear layers; --rank 0 trains all parameters instead. Uses bfloat16
if the processor has instructions for it, and a k3 penalty against the model without adapters. Prints the
shortest step in seconds and the peak memory. Needs torch, transformers, trl and peft; exits with status 77 and
a message if one is missing.
"""
import argparse
import os
import resource
import sys
import tempfile
import time

try:
    import datasets
    import torch
    import transformers as hf
    from peft import LoraConfig
    from trl import GRPOConfig, GRPOTrainer
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def has_bf16():
    with open("/proc/cpuinfo") as f:
        return "avx512_bf16" in f.read()


class Clock(hf.TrainerCallback):
    def __init__(self):
        self.steps = []

    def on_step_begin(self, args, state, control, **kwargs):
        self.begin = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self.steps.append(time.perf_counter() - self.begin)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    for name, size in (("groups", 4), ("samples", 8), ("prompt", 64), ("new", 64), ("rank", 16), ("steps", 3)):
        p.add_argument(f"--{name}", type=int, default=size)
    p.add_argument("--dtype", choices=("auto", "f32", "bf16"), default="auto")
    a = p.parse_args()
    bf16 = has_bf16() if a.dtype == "auto" else a.dtype == "bf16"
    torch.manual_seed(0)
    tokenizer = hf.AutoTokenizer.from_pretrained(a.dir)
    if a.rank == 0 and not os.path.exists(os.path.join(a.dir, "model.safetensors")):
        # TRL reads the reference from the directory of the model, so the weights must be written.
        hf.AutoModelForCausalLM.from_config(hf.AutoConfig.from_pretrained(a.dir)).save_pretrained(a.dir)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = hf.AutoModelForCausalLM.from_pretrained(a.dir, dtype=torch.bfloat16 if bf16 else torch.float32)
    rows = [{"prompt": tokenizer.decode([1000 * (i + 1)] * a.prompt)} for i in range(a.groups)]
    n = a.groups * a.samples
    clock = Clock()
    with tempfile.TemporaryDirectory() as out:
        args = GRPOConfig(output_dir=out, use_cpu=True, bf16=bf16, per_device_train_batch_size=n,
                          num_generations=a.samples, generation_batch_size=n, num_iterations=1,
                          max_completion_length=a.new, generation_kwargs={"min_new_tokens": a.new},
                          temperature=1.0, top_k=0, beta=0.04, max_steps=a.steps, save_strategy="no", report_to=[],
                          disable_tqdm=True, logging_steps=1000, gradient_checkpointing=False,
                          learning_rate=1e-4)
        trainer = GRPOTrainer(model=model, args=args, processing_class=tokenizer, callbacks=[clock],
                              reward_funcs=lambda completions, **_: [float(len(set(c))) for c in completions],
                              train_dataset=datasets.Dataset.from_list(rows * 8),
                              peft_config=LoraConfig(r=a.rank, lora_alpha=2 * a.rank, target_modules="all-linear",
                                                     task_type="CAUSAL_LM") if a.rank else None)
        sys.stdout.flush()
        trainer.train()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'TRL + PEFT' if a.rank else 'TRL'}, {a.groups} x {a.samples} rows, {a.prompt} + {a.new} tokens, rank {a.rank}, "
          f"{'bf16' if bf16 else 'f32'}: {min(clock.steps):8.2f} s a step, {peak:.2f} GiB")


if __name__ == "__main__":
    main()
