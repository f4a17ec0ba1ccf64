#!/usr/bin/env python3
"""Every option of every shipped algorithm changes a run, or is refused. Generated from
`plugin info --json`, so new options are tested automatically.

For each option, runs of a tiny model test other allowed values: each other choice of an enumeration,
otherwise one other value. The test fails if a run is not refused but has the checkpoint and metrics of the
default, if the exit status is neither 0 nor 2, or if a repeated run differs. Each option must change at least
one run. CONTEXT lists other settings that an option needs in order to act. WITHOUT lists options whose effect
cannot be seen in a run, with the reason.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

BUILD = os.environ["RLHF_BUILD_DIR"]
HOST = os.path.join(BUILD, "bin", "rlhf-host")
JUDGE = os.path.join(BUILD, "tests", "e2e", "even_judge.so")
ALGOS = os.path.join(BUILD, "lib", "rlhf", "1", "algos")

COMMON = ["--policy", "model", "--set", "policy.init=random", "--set", "compute.backend=cpu",
          "--set", "optim.lr=0.03", "--set", "optim.warmup=0", "--set", "log.tensorboard=false",
          "--set", "log.samples_every=0", "--threads", "1"]
# sampling.stop: some responses end early, some are cut off
ROLLOUT = ["--reward", JUDGE, "--prompts", "prompts.txt", "--set", "prompts.prepend_bos=true", "--set", "batch.size=16", "--set",
           "sampling.max_new_tokens=8", "--set", "sampling.stop=" + json.dumps(list(range(32, 48))),
           "--phases", "3"]
BM = "bt_rm.so:model=rm"
SOURCE = {
    "ppo": (ROLLOUT, "epochs=2,minibatches=2"),
    "grpo": (ROLLOUT, "epochs=2,minibatches=2,group_size=4"),
    "grpo_iterative": (ROLLOUT, "epochs=2,minibatches=2,group_size=4,iteration_phases=1"),
    "rloo": (ROLLOUT, "epochs=2,minibatches=2,group_size=4"),
    "sft": (["--data", "texts.jsonl", "--set", "batch.size=4", "--phases", "2"], ""),
    "classify": (["--data", "labeled.jsonl", "--set", "batch.size=8", "--phases", "2"], ""),
    "bradley_terry": (["--data", "pairs.jsonl", "--set", "batch.size=4", "--phases", "2", "--set",
                       "score.calibrate=0"], ""),
    "dpo": (["--data", "pairs.jsonl", "--set", "batch.size=4", "--phases", "2"], ""),
    "opd": (ROLLOUT + ["--set", "models.teacher=teacher"], "epochs=2,minibatches=2"),
    "kto": (["--data", "rows.jsonl", "--set", "batch.size=8", "--phases", "2"], ""),
}
AHEAD = ["--set", "rollout.ahead=1"]  # rows of an older policy
ADAPTIVE = "kl_controller=adaptive,kl_horizon=100"
REPLAY = ("replay=true,rm_batch=4,rm_lr=0.01,replay_share=0.5",
          ["--reward", BM, "--judge", JUDGE, "--set", "score.calibrate=16", "--phases", "4"])
# Other options of the algorithm, and flags, that an option requires. A key "algo.option" is for one
# algorithm.
CONTEXT = {
    "advantage_eps": ("advantage=sequence", []),
    "advantage_std": ("advantage=sequence", []),
    "advantage_scope": ("advantage_scale=batch", []),
    "kl_target": (ADAPTIVE, []),
    "kl_horizon": ("kl_controller=adaptive", []),
    "grpo_iterative.kl_target": (ADAPTIVE + ",iteration_phases=9", []),
    "kl_unit": (ADAPTIVE + ",kl_target=0.5", []), # between the KL per token and per response
    "ppo.kl_unit": (ADAPTIVE + ",kl_target=0.08", []),
    "grpo_iterative.kl_unit": (ADAPTIVE + ",kl_target=0.4,iteration_phases=9", []),
    "kl_measure": ("kl_placement=none", []),
    "grpo_iterative.kl_measure": (REPLAY[0] + ",kl_placement=none", REPLAY[1]),
    "dual_clip": ("clip_range=0.001,clip_range_high=0.001", []),
    "logprob_temperature": ("", ["--set", "sampling.temperature=0.6"]),
    "logprob_support": ("", ["--set", "sampling.top_k=9"]),
    "dynamic_sampling": ("group_size=2", []),
    "dynamic_rounds": ("group_size=2,dynamic_sampling=true", []),
    "mask_zero_advantage_groups": ("group_size=2,kl_coef=0", []),
    "sapo_temperature_pos": ("loss=sapo", []),
    "sapo_temperature_neg": ("loss=sapo", []),
    "opd.beta": ("divergence=js", []),
    "opd.clip_range": ("divergence=sampled", []),
    "label_smoothing": ("loss=robust,label_smoothing=0.1", []),
    "correction": ("", AHEAD),
    "correction_cap": ("correction=token", AHEAD),
    "correction_mode": ("correction=token,correction_cap=1.001", AHEAD),
    "replay": ("", ["--reward", BM, "--judge", JUDGE]),
    **{k: REPLAY for k in ("replay_share", "replay_history", "rm_epochs", "rm_batch", "rm_lr",
                           "rm_refit")},
}
# Settings that are combined with an option, one at a time. With each of them, the option must
# change the run.
EACH = {"advantage_scope": ("advantage_scale=group", "advantage_scale=none")}
# Values that replace the generated values.
VALUE = {"dual_clip": "1.0011", "clip_range": "0.001", "clip_range_high": "0.001",
         "kl_target": "1e-5", "target_kl": "1e-9", "value_clip": "1e-5", "group_size": "8",
         "dynamic_rounds": "1", "correction_cap": "1.001", "replay_history": "5", "rm_batch": "2"}
# Values that mean the same as another value.
SAME = {
    ("whiten_advantages", "on"): "what auto is with a critic",
    ("aggregation", "bnpo"): "a published name of token",
}
WITHOUT = {
    "old_logp": "log-probs of a second forward are the sampler's, bit for bit, on an exact backend",
}


def write_inputs():
    spelling, extra = [], 256
    for b in range(256):
        plain = 0x21 <= b <= 0x7e or 0xa1 <= b <= 0xac or b >= 0xae
        spelling.append(chr(b if plain else extra))
        extra += not plain
    vocab = {s: i for i, s in enumerate(spelling)}
    vocab.update({"th": 256, "the": 257, "in": 258, "<|endoftext|>": 259})
    os.mkdir("model")
    json.dump(vocab, open("model/vocab.json", "w"))
    open("model/merges.txt", "w").write("#version: 0.2\nt h\nth e\ni n\n")
    json.dump({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 260,
               "n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2,
               "layer_norm_epsilon": 1e-5, "initializer_range": 0.02,
               "activation_function": "gelu_new", "bos_token_id": 259, "eos_token_id": 259},
              open("model/config.json", "w"))
    words = ["a fine film", "dull work", "the best thing", "awful", "good fun", "poor acting"]
    rows = lambda name, make: open(name, "w").write(
        "".join(json.dumps(make(i)) + "\n" for i in range(24)))
    rows("texts.jsonl", lambda i: {"text": "It was " + words[i % 6] * (1 + i % 3)})
    rows("labeled.jsonl", lambda i: {"text": words[i % 6], "label": i % 2})
    rows("pairs.jsonl", lambda i: {"prompt": "It was", "chosen": " " + words[i % 3],
                                   "rejected": " " + words[3 + i % 2] + "!" * (i % 3)})
    rows("rows.jsonl", lambda i: {"prompt": "It was", "completion": " " + words[i % 6],
                                  "label": i % 3 == 0})
    open("prompts.txt", "w").write("It was\nI think\nThe film\nWe saw\n")


def run(algo, options, flags, at):
    """The results of a run as one text, or None if it was refused."""
    source, base = SOURCE[algo]
    merged = dict(p.split("=", 1) for p in (base + "," + options).split(",") if p)
    cmd = [HOST, "--algo", f"{algo}.so", *source, *COMMON, *flags, "--out", at]
    if "--judge" in flags:  # another reward in place of the default's
        cut = cmd.index(JUDGE)
        del cmd[cut - 1 : cut + 1]
    for k, v in merged.items():
        cmd += ["--set", f"algo.{k}={v}"]
    p = subprocess.run(cmd, capture_output=True, text=True)
    if p.returncode == 2:
        return None, p.stderr.strip().splitlines()[-1]
    if p.returncode:
        raise SystemExit(f"{' '.join(cmd)}: exit status {p.returncode}\n{p.stderr}")
    last = os.path.realpath(os.path.join(at, "checkpoints", "latest"))
    digest = hashlib.sha256(open(os.path.join(last, "model.safetensors"), "rb").read()).hexdigest()
    lines = [json.loads(x) for x in open(os.path.join(at, "metrics.jsonl"))]
    timed = "(^|/)(time|perf)(/|$)|/idle_ratio$"
    kept = [{k: v for k, v in x.items() if not re.search(timed, k)}
            for x in lines]
    shutil.rmtree(at)
    return digest + json.dumps(kept), ""


def other_values(key, spec):
    if "enum" in spec:
        return [v for v in spec["enum"] if v != spec["default"] and (key, v) not in SAME]
    if key in VALUE:
        return [VALUE[key]]
    default = spec["default"]
    if spec["type"] == "boolean":
        return [str(not default).lower()]
    low, high = spec.get("minimum", 0), spec.get("maximum", spec.get("exclusiveMaximum", 1e9))
    if spec["type"] == "integer":
        return [str(default + 1 if default + 1 <= high else default - 1)]
    new = default * 3 if default > 0 else 0.3
    return [repr(new if low <= new <= high else (low + default) / 2)]


def try_option(job):
    """Returns whether any value changed a run, and the errors."""
    n, algo, key, spec, baseline = job
    changed, wrong, reasons = False, [], []
    context = CONTEXT.get(f"{algo}.{key}", CONTEXT.get(key))
    for k, value in enumerate(other_values(key, spec)):
        seen = False
        for c, (options, flags) in enumerate([("", [])] + ([context] if context else [])):
            if seen and "enum" not in spec:
                break
            if key in ("advantage_eps", "advantage_std") and algo != "ppo":
                options = ""
            got, why = run(algo, f"{options},{key}={value}", flags, f"r{n}.{k}.{c}")
            if got is None:
                reasons.append(why)
                continue
            seen |= got != baseline(algo, options, tuple(flags))
        changed |= seen
        if not seen and not reasons:
            wrong.append(f"{algo}.so: {key}={value} changes nothing and is not refused")
        for c, options in enumerate(EACH.get(key, ())):
            got, _ = run(algo, f"{options},{key}={value}", [], f"r{n}.{k}.each{c}")
            if got == baseline(algo, options, ()):
                wrong.append(f"{algo}.so: {key}={value} changes nothing with {options} and is not "
                             "refused")
    if not changed:
        wrong.append(f"{algo}.so: no value of {key} changes a run"
                     + (f" ({reasons[-1]})" if reasons else ""))
    return wrong


# ---- for tests/e2e/every_reward.py too ----

def options_of(file):
    """The options of a plugin: key -> JSON Schema."""
    said = subprocess.run([HOST, "plugin", "info", file, "--json"], check=True, capture_output=True)
    return json.loads(said.stdout)["properties"]


def in_scratch(test):
    """Calls test() in a temporary directory; test returns (errors, the line to print without errors)."""
    work = tempfile.mkdtemp()
    os.chdir(work)
    try:
        wrong, fine = test()
        print("\n".join(wrong) if wrong else fine)
        sys.exit(bool(wrong))
    finally:
        os.chdir("/")
        shutil.rmtree(work, ignore_errors=True)


def try_all():
    write_inputs()
    os.mkdir("wide")
    for name in os.listdir("model"):
        text = open(f"model/{name}").read().replace('"n_embd": 16', '"n_embd": 32')
        open(f"wide/{name}", "w").write(text)
    for cmd in ([HOST, "--algo", "bradley_terry.so", "--data", "pairs.jsonl", *COMMON, "--set",
                 "batch.size=2", "--set", "score.calibrate=0", "--phases", "1", "--out", "r"],
                [HOST, "--algo", "sft.so", "--data", "texts.jsonl", *COMMON, "--policy", "wide", "--set",
                 "batch.size=2", "--phases", "3", "--out", "taught"]):
        p = subprocess.run(cmd, capture_output=True, text=True)
        if p.returncode:
            raise SystemExit(p.stderr)
    shutil.move(os.path.realpath("r/checkpoints/latest"), "rm")
    shutil.move(os.path.realpath("taught/checkpoints/latest"), "teacher")
    open("rm/tokenizer_config.json", "w").write('{"add_bos_token": true}')
    found = sorted(f[:-3] for f in os.listdir(ALGOS) if f.endswith(".so"))
    missing = [f"{a}.so is shipped and has no entry in SOURCE" for a in found if a not in SOURCE]
    known, jobs, lock = {}, [], threading.Lock()

    def baseline(algo, options, flags):
        at = (algo, options, flags)
        with lock:
            if at not in known:
                known[at] = run(algo, options, list(flags), f"b{len(known)}")
                if run(algo, options, list(flags), f"a{len(known)}") != known[at]:
                    raise SystemExit(f"{algo}.so:{options}: the same run ends differently")
        if known[at][0] is None:
            raise SystemExit(f"{algo}.so:{options} is refused: {known[at][1]}")
        return known[at][0]

    for algo in [a for a in found if a in SOURCE]:
        for key, spec in options_of(f"{algo}.so").items():
            base = dict(p.split("=") for p in SOURCE[algo][1].split(",") if p)
            spec["default"] = spec.get("x-rlhf-config", spec["default"])
            if key in base:
                spec["default"] = type(spec["default"])(base[key])
            if key not in WITHOUT:
                jobs.append((len(jobs), algo, key, spec, baseline))
    with ThreadPoolExecutor(2) as pool:
        wrong = missing + [w for ws in pool.map(try_option, jobs) for w in ws]
    return wrong, (f"{len(jobs)} options, each changes a run; without: "
                   + ", ".join(f"{k} ({v})" for k, v in WITHOUT.items()))


if __name__ == "__main__":
    in_scratch(try_all)
