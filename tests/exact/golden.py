#!/usr/bin/env python3
"""One sha256 for each training run, at every instruction set and with one or two threads.

    golden.py BUILD [--jobs a,b] [--dtypes f32,bf16] [--levels avx2,avx512] [--threads 1,2] [--few] [--update]

Each job trains a small model. The hash is of all tensors of its last checkpoint: weights, moments, value
head. It must equal the hash in golden.txt, which has one hash for each job and dtype, whatever the level and threads.
Metrics and samples of all runs of a job and dtype must also be the same. Levels that this CPU lacks are left out.
Without --threads, levels take one and two threads in turn. --few runs each job twice: in f32 at avx2, in bf16 at
the highest level (on a machine without avx2, both at the highest). At level amx, runs set compute.arithmetic=v1.
--update writes golden.txt; then the highest level defines the hashes. Exit status 1 if a hash differs.
"""
import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

import gguf_model

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden.txt")
LEVELS = ("amx", "avx512_bf16", "avx512", "avx2", "baseline", "neon")
# jobs that `baseline` runs too; it takes ten times as long as avx2
SMALL = ("llama", "qwen3", "smollm3", "window", "granite", "gemma3", "gemma2", "phi3", "olmo2", "olmo3", "lfm2", "qwen3_5", "quantised")

SAMPLED = "--set batch.size=8 --set sampling.max_new_tokens=12 --phases 2"
ROWS = "--set batch.size=8 --phases 2"
BOS = "--set prompts.prepend_bos=true"
TINY = "--set sampling.max_new_tokens=8 --set batch.size=8 --phases 2"
LONG = "--set sampling.max_new_tokens=40 --set batch.size=8 --phases 2"  # three windows and more
RANDOM = "--set policy.init=random"
QUANTISED = f"--prompts prompts.jsonl --reward python.so:file=reward.py,function=score {TINY} --set policy.adapter.rank=4 {BOS}"
# For jobs whose policy is `trained`: the run that makes this policy. (Adapters need a trained model.)
BEFORE = {job: f"--algo sft.so --policy {model} --data texts.jsonl --phases 1 --set batch.size=8 {RANDOM} {BOS}"
          for job, model in (("llama", "llama"), ("smollm3_low_rank", "smollm3"), ("granite_low_rank", "granite"),
                            ("gemma3_low_rank", "gemma3"), ("gemma2_low_rank", "gemma2"), ("phi3_low_rank", "phi3"),
                            ("olmo2_low_rank", "olmo2"), ("olmo3_low_rank", "olmo3"),
                            ("qwen3_5_low_rank", "qwen3_5"))}
JOBS = {
    "ppo": f"--algo ppo.so --reward imdb.so {SAMPLED}",
    "grpo": f"--algo grpo.so --reward imdb.so {SAMPLED} --set algo.group_size=4 "
            "--set sampling.top_p=0.9 --set optim.kind=muon",
    "sft": f"--algo sft.so --data texts.jsonl {ROWS}",
    "dpo": f"--algo dpo.so --data preferences.jsonl {ROWS} --set prompts.prepend_bos=false",
    "bradley_terry": f"--algo bradley_terry.so --data preferences.jsonl {ROWS} --set score.calibrate=16 --set prompts.prepend_bos=false "
                     "--set sampling.max_new_tokens=12",
    "classify": f"--algo classify.so --data labels.jsonl {ROWS}",
    "llama": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {TINY} "
             f"--set policy.adapter.rank=4 {BOS}",
    "qwen3": f"--algo grpo.so --policy qwen3 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {TINY} {RANDOM} {BOS} "
             "--set algo.group_size=4",
    "smollm3": f"--algo grpo.so --policy smollm3 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {TINY} "
               f"{RANDOM} {BOS} --set algo.group_size=4",
    "smollm3_low_rank": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score "
                        f"{TINY} --set policy.adapter.rank=4 {BOS}",
    "window": f"--algo ppo.so --policy mistral --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {LONG} {RANDOM} {BOS}",
    "window_layers": f"--algo grpo.so --policy qwen2 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {LONG} "
                     f"{RANDOM} {BOS} --set algo.group_size=4",
    "granite": f"--algo grpo.so --policy granite --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {TINY} "
               f"{RANDOM} {BOS} --set algo.group_size=4",
    "granite_low_rank": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score "
                        f"{TINY} --set policy.adapter.rank=4 {BOS}",
    "gemma3": f"--algo grpo.so --policy gemma3 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {LONG} "
              f"{RANDOM} {BOS} --set algo.group_size=4",
    "gemma3_low_rank": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score "
                       f"{LONG} --set policy.adapter.rank=4 {BOS}",
    "gemma2": f"--algo grpo.so --policy gemma2 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {LONG} "
              f"{RANDOM} {BOS} --set algo.group_size=4",
    "gemma2_low_rank": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score "
                       f"{LONG} --set policy.adapter.rank=4 {BOS}",
    "phi3": f"--algo grpo.so --policy phi3 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {LONG} "
            f"{RANDOM} {BOS} --set algo.group_size=4",
    "phi3_low_rank": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score "
                     f"{LONG} --set policy.adapter.rank=4 {BOS}",
    # An adapter on quantised weights, and on the same weights read as f32: the hashes are equal.
    "quantised": f"--algo grpo.so --policy llama.gguf {QUANTISED}",
    "dequantised": f"--algo grpo.so --policy llama.gguf {QUANTISED} --set policy.dequantize=true",
    "quantised_tied": f"--algo ppo.so --policy qwen3.gguf {QUANTISED}",
    "olmo2": f"--algo grpo.so --policy olmo2 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {TINY} "
             f"{RANDOM} {BOS} --set algo.group_size=4",
    "olmo2_low_rank": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score "
                      f"{TINY} --set policy.adapter.rank=4 {BOS}",
    "olmo3": f"--algo grpo.so --policy olmo3 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {LONG} "
             f"{RANDOM} {BOS} --set algo.group_size=4",
    "olmo3_low_rank": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score "
                      f"{LONG} --set policy.adapter.rank=4 {BOS}",
    "lfm2": f"--algo grpo.so --policy lfm2 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {LONG} "
            f"{RANDOM} {BOS} --set algo.group_size=4",
    "qwen3_5": f"--algo grpo.so --policy qwen3_5 --prompts prompts.jsonl --reward python.so:file=reward.py,function=score {LONG} "
               f"{RANDOM} {BOS} --set algo.group_size=4",
    "qwen3_5_low_rank": f"--algo ppo.so --policy trained --prompts prompts.jsonl --reward python.so:file=reward.py,function=score "
                        f"{LONG} --set policy.adapter.rank=4 {BOS}",
}
QUIET = "--set log.tensorboard=false --set log.samples_every=1 --out run"

# 600 and 1100 inputs: f32 products of several chains, the last of which is not full.
SHAPE = {"hidden_size": 96, "num_hidden_layers": 2, "max_position_embeddings": 64, "hidden_act": "silu",
         "rms_norm_eps": 1e-6, "initializer_range": 0.02}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "intermediate_size": 600,
         "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False,
         "attention_bias": False, "rope_parameters": {
             "rope_type": "llama3", "rope_theta": 1e4, "factor": 2.0, "low_freq_factor": 1.0,
             "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}
QWEN3 = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "intermediate_size": 1100,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "tie_word_embeddings": True,
         "attention_bias": False, "rope_theta": 1e6}
SMOLLM3 = {"model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], "intermediate_size": 600,
           "num_attention_heads": 4, "num_key_value_heads": 2, "no_rope_layers": [1, 0], "attention_bias": True}
MISTRAL = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "intermediate_size": 600,
           "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 13}
QWEN2 = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "intermediate_size": 600, "tie_word_embeddings": True,
         "num_attention_heads": 4, "num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 5,
         "layer_types": ["sliding_attention", "full_attention"]}
GRANITE = {"model_type": "granite", "architectures": ["GraniteForCausalLM"], "intermediate_size": 600,
           "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True, "embedding_multiplier": 12.0,
           "residual_multiplier": 0.22, "attention_multiplier": 0.05, "logits_scaling": 10.0}

# Norms around the blocks, a window and positions of its own in the first layer. The width's square root is rounded in bf16.
GEMMA3 = {"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "intermediate_size": 600, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 32, "query_pre_attn_scalar": 24, "sliding_window": 13,
          "layer_types": ["sliding_attention", "full_attention"], "rope_parameters": {
              "sliding_attention": {"rope_type": "default", "rope_theta": 1e3},
              "full_attention": {"rope_type": "linear", "rope_theta": 1e5, "factor": 2.0}}}
# Scores and logits of these weights reach far beyond the caps.
GEMMA2 = {"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "intermediate_size": 600, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 24, "query_pre_attn_scalar": 16, "sliding_window": 5, "initializer_range": 0.2,
          "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}
# Three quarters of each head are rotated, with the long factors of longrope, and the layers have a window.
PHI3 = {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "intermediate_size": 600, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 24, "sliding_window": 13, "partial_rotary_factor": 0.75, "long_factors": True,
        "original_max_position_embeddings": 16, "rope_scaling": {
            "type": "longrope", "short_factor": [1.0] * 9, "long_factor": [1.0, 1.1, 1.3, 1.7, 2.0, 3.0, 5.0, 8.0, 20.0]}}
# The formats that stay quantised.
GGUF = {"hidden_size": 256, "num_hidden_layers": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "intermediate_size": 512,
        "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 1e4}
GGUFS = {"llama": ({"tie_word_embeddings": False}, "q=Q4_0,k=Q8_0,v=Q6_K,o=Q4_1,head=Q6_K,*=Q4_K"),
         "qwen3": ({"tie_word_embeddings": True, "head_dim": 64}, "v=Q5_0,embed=Q8_0,down=Q6_K,*=Q4_K")}
OLMO2 = {"model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "intermediate_size": 600, "num_attention_heads": 4,
         "num_key_value_heads": 2, "attention_bias": True, "rope_theta": 5e5}

# OLMo 2 with a window and positions of its own in the first layer, and stretched positions in the second
OLMO3 = {"model_type": "olmo3", "architectures": ["Olmo3ForCausalLM"], "intermediate_size": 600, "num_attention_heads": 4,
         "num_key_value_heads": 2, "sliding_window": 13, "layer_types": ["sliding_attention", "full_attention"],
         "rope_parameters": {
             "sliding_attention": {"rope_type": "default", "rope_theta": 1e3},
             "full_attention": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}}}
# Two convolutions around attention; biases
LFM2 = {"model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], "intermediate_size": 900, "block_multiple_of": 100, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "layer_types": ["conv", "full_attention", "conv"], "conv_bias": True,
        "norm_eps": 1e-5, "rope_theta": 1e5}
# The delta rule, with two value heads for each key head, and attention with gates and a part of each head rotated
QWEN3_5 = {"model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "intermediate_size": 600, "num_attention_heads": 4,
           "num_key_value_heads": 2, "head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32,
           "linear_value_head_dim": 48, "layer_types": ["linear_attention", "full_attention"], "tie_word_embeddings": True,
           "rope_parameters": {"rope_type": "default", "rope_theta": 1e5, "partial_rotary_factor": 0.5, "mrope_section": [4, 2, 2]}}


def write_lines(path, lines):
    with open(path, "w") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)


def prepare(build, where):
    things = ["tree", "lamp", "boat", "letter", "garden", "window", "song", "clock"]
    said = [f"The {a} was near the {b}, and nobody asked why." for a in things for b in things[:4]]
    write_lines(f"{where}/texts.jsonl", ({"text": t} for t in said))
    write_lines(f"{where}/prompts.jsonl", ({"prompt": f"The {a}"} for a in things))
    write_lines(f"{where}/preferences.jsonl",
                ({"prompt": t[:12], "chosen": t[12:], "rejected": t[12:] + " No."} for t in said))
    write_lines(f"{where}/labels.jsonl", ({"text": t, "label": i % 2} for i, t in enumerate(said)))
    with open(f"{where}/reward.py", "w") as f:  # varies even for texts of an untrained model
        f.write("def score(prompts, completions, **rest):\n"
                "    return [sum(map(ord, c)) % 7 / 7 for c in completions]\n")
    source = os.path.join(build, "tests", "hf", "dirs", "gpt2")
    with open(f"{source}/config.json") as f:
        gpt2 = json.load(f)
    for name, config in (("llama", LLAMA), ("qwen3", QWEN3), ("smollm3", SMOLLM3), ("mistral", MISTRAL), ("qwen2", QWEN2),
                         ("granite", GRANITE), ("gemma3", GEMMA3), ("gemma2", GEMMA2), ("phi3", PHI3), ("olmo2", OLMO2),
                         ("olmo3", OLMO3), ("lfm2", LFM2), ("qwen3_5", QWEN3_5)):
        shutil.copytree(source, f"{where}/{name}")
        ids = {k: gpt2[k] for k in ("vocab_size", "bos_token_id", "eos_token_id") if k in gpt2}
        with open(f"{where}/{name}/config.json", "w") as f:
            json.dump({**SHAPE, **config, **ids}, f)
    for name, (config, formats) in GGUFS.items():
        gguf_model.write(f"{where}/{name}.gguf", f"{source}/tokenizer.json", {**GGUF, **config, **ids, "model_type": name},
                         gguf_model.formats_of(formats))


def available(build):
    """The levels of the cpu backend that this CPU has."""
    said = subprocess.run([f"{build}/bin/rlhf-host", "devices", "--json"], capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"golden.py: {said.stdout}{said.stderr}")
    found = {v["level"] for d in json.loads(said.stdout) if d["backend"] == "cpu" for v in d["levels"] if v["has"]}
    return [level for level in LEVELS if level in found]


def tensors(path):
    """(name, dtype and shape, bytes) of a safetensors file, by name."""
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    head.pop("__metadata__", None)
    for name, t in sorted(head.items()):
        low, high = t["data_offsets"]
        yield name, f"{t['dtype']}{t['shape']}", data[low:high]


def weights_of(run):
    h = hashlib.sha256()
    last = os.path.realpath(f"{run}/checkpoints/latest")
    for folder, _, names in sorted(os.walk(last)):
        for name in sorted(names):
            if not name.endswith(".safetensors"):
                continue
            for tensor, kind, data in tensors(os.path.join(folder, name)):
                h.update(f"{name} {tensor} {kind}\n".encode())
                h.update(data)
    return h.hexdigest()


def metrics_of(run):
    h = hashlib.sha256()
    for name in ("metrics.jsonl", "samples.jsonl"):
        if not os.path.exists(f"{run}/{name}"):
            continue
        with open(f"{run}/{name}") as f:
            for line in f:
                row = {k: v for k, v in json.loads(line).items() if "time" not in k and "perf" not in k}
                h.update(json.dumps(row, sort_keys=True).encode())
    return h.hexdigest()


def train(build, where, words, dtype, level, threads):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RLHF_")}
    env["RLHF_CPU_ISA"] = level
    wrapper = os.environ.get("RLHF_RUN_UNDER", "").split()  # an emulator
    command = [*wrapper, f"{build}/bin/rlhf-host", *words.split(), *QUIET.split(),
               "--set", f"compute.dtype={dtype}", "--set", f"run.threads={threads}"]
    if level == "amx":
        command += ["--set", "compute.arithmetic=v1"]
    done = subprocess.run(command, cwd=where, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"golden.py: {words} in {dtype} at {level}: exit status {done.returncode}\n{done.stdout}")


def run(build, where, job, dtype, level, threads):
    if job in BEFORE:
        train(build, where, BEFORE[job], dtype, level, threads)
        shutil.copytree(os.path.realpath(f"{where}/run/checkpoints/latest"), f"{where}/trained")
        shutil.rmtree(f"{where}/run")
    train(build, where, JOBS[job], dtype, level, threads)
    return weights_of(f"{where}/run"), metrics_of(f"{where}/run")


def read_golden():
    try:
        with open(GOLDEN) as f:
            return dict(((job, dtype), h) for job, dtype, h in
                        (line.split() for line in f if line.strip() and line[0] != "#"))
    except FileNotFoundError:
        return {}


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("build")
    p.add_argument("--jobs", default=",".join(JOBS))
    p.add_argument("--dtypes", default="f32,bf16")
    p.add_argument("--levels")
    p.add_argument("--threads")
    p.add_argument("--few", action="store_true")
    p.add_argument("--update", action="store_true")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    levels = a.levels.split(",") if a.levels else available(a.build)
    golden, bad, runs = read_golden(), 0, 0
    for job in a.jobs.split(","):
        for dtype in a.dtypes.split(","):
            first = None
            mine = [v for v in levels if v != "baseline" or job in SMALL]
            if a.few:
                mine = ["avx2"] if dtype == "f32" and "avx2" in levels else mine[:1]
            for i, level in enumerate(mine):
                for threads in a.threads.split(",") if a.threads else [str(1 + i % 2)]:
                    where = tempfile.mkdtemp(prefix="golden-")
                    prepare(a.build, where)
                    got = run(a.build, where, job, dtype, level, threads)
                    shutil.rmtree(where)
                    runs += 1
                    if a.update and first is None:
                        golden[job, dtype] = got[0]
                    first = first or (got[1], level)
                    what = f"{job} in {dtype} at {level} with {threads} threads"
                    if got[0] != golden.get((job, dtype)):
                        print(f"{what}: the tensors' sha256 is {got[0]}, not {golden.get((job, dtype))}")
                        bad += 1
                    elif got[1] != first[0]:
                        print(f"{what}: metrics or samples differ from those at {first[1]}")
                        bad += 1
    if a.update:
        with open(GOLDEN, "w") as f:
            f.write("# sha256 of all tensors of the last checkpoint; see golden.py\n")
            f.writelines(f"{job} {dtype} {h}\n" for (job, dtype), h in golden.items())
    print(f"{runs} runs, {bad} differ")
    return 1 if bad or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
