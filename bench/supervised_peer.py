#!/usr/bin/env python3
"""SFT and DPO steps of TRL on the CPU, at the shapes of bench/supervised-step.

    supervised_peer.py sft|dpo DIR [--steps 4 --dtype auto]
    supervised_peer.py --rows sft|dpo         prints the rows, for bench/supervised-step

DIR is an output of make-gpt2.py. Weights are random. Uses bfloat16 if the processor has instructions for it.
Prints the shortest step in seconds and the peak memory. Needs torch, transformers and trl; exits with status 77
and a message if one is missing.
"""
import argparse
import json
import resource
import sys
import tempfile


def rows(kind):
    # Every pair of letters is one token of make-gpt2.py's vocabulary, because it merges "ab" before "ba".
    pairs = [a + b for a in "abcdefgh" for b in "stuvwxyz"]
    if kind == "sft":
        return [{"text": pairs[i] * 64} for i in range(64)]
    return [{"prompt": pairs[i] * 16, "chosen": pairs[i + 1] * 47, "rejected": pairs[i + 2] * 47} for i in range(32)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("kind", nargs="?", choices=("sft", "dpo"))
    p.add_argument("dir", nargs="?")
    p.add_argument("--rows", choices=("sft", "dpo"))
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--dtype", choices=("auto", "f32", "bf16"), default="auto")
    a = p.parse_args()
    if a.rows:
        for row in rows(a.rows):
            print(json.dumps(row))
        return
    try:
        import datasets
        import torch
        import transformers as hf
        import trl
        from lora_peer import Clock, has_bf16
    except ImportError as e:
        print(f"skipped: {e}")
        sys.exit(77)
    bf16 = has_bf16() if a.dtype == "auto" else a.dtype == "bf16"
    torch.manual_seed(0)
    tokenizer = hf.AutoTokenizer.from_pretrained(a.dir)
    tokenizer.pad_token = tokenizer.eos_token
    hf.AutoModelForCausalLM.from_config(hf.AutoConfig.from_pretrained(a.dir)).save_pretrained(a.dir)
    model = hf.AutoModelForCausalLM.from_pretrained(a.dir, dtype=torch.bfloat16 if bf16 else torch.float32)
    clock = Clock()
    data = datasets.Dataset.from_list(rows(a.kind))
    with tempfile.TemporaryDirectory() as out:
        n = 16 if a.kind == "sft" else 8
        common = dict(output_dir=out, use_cpu=True, bf16=bf16, per_device_train_batch_size=n, max_length=64,
                      max_steps=a.steps, save_strategy="no", report_to=[], disable_tqdm=True, logging_steps=1000,
                      gradient_checkpointing=False)
        config, trainer = (trl.SFTConfig, trl.SFTTrainer) if a.kind == "sft" else (trl.DPOConfig, trl.DPOTrainer)
        trainer(model=model, args=config(**common), processing_class=tokenizer, train_dataset=data,
                callbacks=[clock]).train()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"TRL {trl.__version__}, {a.kind}, {n} rows, {'bf16' if bf16 else 'f32'}: {min(clock.steps):8.2f} s a step, "
          f"{peak:.2f} GiB")


if __name__ == "__main__":
    main()
