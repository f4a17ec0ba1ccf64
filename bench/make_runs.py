#!/usr/bin/env python3
"""Makes a directory of run directories as the program writes them, with made-up numbers.

usage: make_runs.py DIR [--runs N] [--phases N] [--checkpoints N]
"""
import argparse
import json
import math
from pathlib import Path

METRICS = """completions/clipped_ratio completions/distinct_3 completions/mean_length episode epoch loss/policy_avg loss/total
loss/value_avg lr objective/entropy objective/entropy_per_token objective/kl objective/kl_coef objective/kl_per_token
objective/loss objective/non_score_reward objective/rlhf_reward objective/scores optim/grad_norm optim/grad_norm_clipped
optim/skipped_steps perf/mfu perf/peak_rss_mb perf/rollout_model_tokens_per_s perf/rollout_tokens_per_s
perf/train_tokens_per_s policy/approxkl_avg policy/clipfrac_avg policy/entropy_avg returns/mean returns/var reward_std
rewards/imdb/failures rewards/imdb/mean rewards/imdb/retries rewards/imdb/std rewards/imdb/time rewards/not_finite
sampling/logp_difference/max sampling/logp_difference/mean time/from_scratch time/reference time/reward time/rollout
time/training time/update val/clipfrac val/error val/mean val/num_stop_token_ids val/ratio val/ratio_var
val/sequence_lengths val/var val/var_explained val/vpred""".split()


def value(name, phase, phases):
    share = phase / phases
    known = {
        "objective/scores": 0.5 + 0.4 * share,
        "objective/kl": 6 * share,
        "episode": 128 * phase,
        "completions/mean_length": 48,
        "time/from_scratch": 5.1 * phase,
        "time/training": 5.1,
        "optim/skipped_steps": 0,
        "sampling/logp_difference/max": 0,
    }
    return known.get(name, 0.123456789012345 + math.sin(phase + len(name)))


def make(run, phases, checkpoints, begun):
    run.mkdir(parents=True)
    settings = {f"option_{i}": 0.1 * i for i in range(30)}
    config = {"run": {"dir": str(run), "phases": phases, "seed": 1, "note": ""}, "algo": {"plugin": "ppo.so", **settings}}
    config["reward"] = [{"plugin": "imdb.so", "name": "imdb", "weight": 1.0}]
    config.update({name: settings for name in ("sampling", "optim", "checkpoint", "log")})
    (run / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    plugins = [{"role": "reward", "id": "org.rlhf-host.imdb", "version": "0.10.0", "path": "/x/imdb.so", "sha256": "0" * 64}] * 4
    (run / "manifest.json").write_text(json.dumps({"version": "0.10.0", "plugins": plugins}, indent=2) + "\n")
    (run / "lock").write_text("12345 host\n")
    with open(run / "metrics.jsonl", "w") as f:
        for phase in range(1, phases + 1):
            f.write(json.dumps({"phase": phase, **{m: value(m, phase, phases) for m in METRICS}}) + "\n")
    with open(run / "events.jsonl", "w") as f:
        f.write(json.dumps({"time": begun, "phase": 0, "event": "start", "argv": ["rlhf-host"], "version": "0.10.0"}) + "\n")
        f.write(json.dumps({"time": begun + 5.1 * phases, "phase": phases, "event": "end", "status": "done", "reason": ""}) + "\n")
    (run / "samples.jsonl").write_text(json.dumps({"phase": 1, "prompt": "x" * 100, "response": "y" * 900}) + "\n")
    for i in range(checkpoints):
        phase = phases * (i + 1) // checkpoints
        state = run / "checkpoints" / f"{phase:06}" / "state"
        state.mkdir(parents=True)
        (state / "run.json").write_text(json.dumps({"format": 1, "phase": phase, "episodes": 128 * phase}))
        for name in ("config.json", "merges.txt", "model.safetensors", "vocab.json"):
            (state.parent / name).write_text("")
    if checkpoints:
        (run / "checkpoints" / "latest").symlink_to(f"{phases:06}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--phases", type=int, default=30)
    parser.add_argument("--checkpoints", type=int, default=2)
    args = parser.parse_args()
    for i in range(args.runs):
        make(args.dir / f"run-{i + 1}", args.phases, args.checkpoints, 1763700000 + 600 * i)
