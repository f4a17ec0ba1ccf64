#!/usr/bin/env python3
"""Makes honest runs of all algorithms, and checks that the reference backend finds no fault in them.

Usage: honest.py [SEEDS [FIRST [NAME ...]]]

Each setting, or each NAME, runs with SEEDS seeds (default 1) from FIRST (default 1), in f32 and in bf16, three phases each.
Prints the phases that differ, and those whose limits were raised. Exit status 1 if one differs or cannot be
recomputed. RLHF_BUILD_DIR names the build.
"""
import json
import os
import subprocess
import sys
import tempfile

HOST = os.environ["RLHF_BUILD_DIR"] + "/bin/rlhf-host"
HERE = os.path.dirname(os.path.abspath(__file__))
PHASES = 3
KEEP = {"checkpoint.every": 1, "checkpoint.keep": 0, "compute.backend": "cpu", "run.threads": 1,
        "log.progress": "off", "log.level": "error", "run.phases": PHASES}
ROLL = {"prompts.path": "prompts.txt", "batch.size": 12, "sampling.max_new_tokens": 10, "log.rollouts": "true"}
EVEN = ["--reward", os.environ["RLHF_BUILD_DIR"] + "/tests/e2e/even_judge.so"]
GAME = ["--env", "guess.so:most=9"]


def rl(algo, *args, reward=EVEN, **sets):
    return ["--algo", algo, *reward, *args], {**ROLL, **{k.replace("__", "."): v for k, v in sets.items()}}


def file(algo, path, **sets):
    return (["--algo", algo, "--data", path],
            {"batch.size": 4, **{k.replace("__", "."): v for k, v in sets.items()}})


SETTINGS = {
    "ppo": rl("ppo.so"),
    "ppo_flat": rl("ppo.so", reward=["--reward", "length.so:max_len=9"], sampling__stop_at_eos="false"),
    "ppo_critic": rl("ppo.so:epochs=2,minibatches=3", value__critic="separate", value__init="orthogonal"),
    "ppo_whiten": rl("ppo.so:whiten_scope=minibatch,minibatches=2,normalize_scores=true,entropy_coef=0.01"),
    "ppo_loss_kl": rl("ppo.so:kl_placement=loss,kl_estimator=full,gamma=0.95,value_clip=0.01"),
    "ppo_adaptive": rl("ppo.so:kl_controller=adaptive,kl_target=0.1,dual_clip=3", optim__weight_decay=0.1),
    "ppo_lora": rl("ppo.so", policy__adapter__rank=2),
    "reinforce": rl("ppo.so:advantage=reward_to_go,kl_placement=loss,kl_estimator=k2,gamma=0.9"),
    "grpo": rl("grpo.so:group_size=4"),
    "grpo_tight": rl("grpo.so:group_size=4,epochs=2,minibatches=2,clip_range=1e-4"),
    "dr_grpo": rl("grpo.so:group_size=4,loss=dr_grpo,advantage_scale=none,kl_placement=none"),
    "dapo": rl("grpo.so:group_size=3,loss=dapo,clip_range_high=0.28,epochs=2,mask_truncated=true"),
    "bnpo": rl("grpo.so:group_size=4,loss=bnpo,advantage_scale=batch,kl_placement=reward"),
    "cispo": rl("grpo.so:group_size=4,loss=cispo,epochs=2,entropy_coef=0.01"),
    "gmpo": rl("grpo.so:group_size=4,loss=gmpo,epochs=2,kl_estimator=full"),
    "sapo": rl("grpo.so:group_size=4,loss=sapo,epochs=2,mask_zero_advantage_groups=true"),
    "gspo": rl("grpo.so:group_size=4,ratio=sequence_mean,clip_range=3e-4,epochs=2,kl_placement=none"),
    "gspo_sum": rl("grpo.so:group_size=4,ratio=sequence,epochs=2"),
    "grpo_lora": rl("grpo.so:group_size=4", policy__adapter__rank=3),
    "grpo_dynamic": rl("grpo.so:group_size=3,dynamic_sampling=true,dynamic_rounds=2"),
    "grpo_top": rl("grpo.so:group_size=4", sampling__top_k=40, sampling__min_p=0.01, sampling__temperature=0.8),
    "grpo_ahead": rl("grpo.so:group_size=4,correction=sequence", rollout__ahead=1),
    "grpo_muon": rl("grpo.so:group_size=4", optim__kind="muon"),
    "grpo_layer": rl("grpo.so:group_size=4", compute__recompute="layer", batch__microbatch_tokens=64),
    "iterative": rl("grpo_iterative.so:group_size=4,iteration_phases=1"),
    "rloo": rl("rloo.so:group_size=4,epochs=2"),
    "rloo_token": rl("rloo.so:group_size=4,ratio=token,minibatches=3", optim__max_grad_norm=0.1),
    "opd": rl("opd.so:epochs=2", reward=[], models__teacher="teacher"),
    "opd_js": rl("opd.so:divergence=js,beta=0.3,minibatches=2", reward=[], models__teacher="teacher"),
    "opd_sampled": rl("opd.so:divergence=sampled", reward=[], models__teacher="teacher"),
    "game_grpo": rl("grpo.so:group_size=4", *GAME, reward=[], episodes__turns=3),
    "game_ppo": rl("ppo.so", *GAME, reward=[], episodes__turns=2),
    "sft": file("sft.so", "texts.jsonl"),
    "sft_muon": file("sft.so:aggregation=sequence", "texts.jsonl", optim__kind="muon"),
    "classify": file("classify.so", "labeled.jsonl"),
    "dpo": file("dpo.so", "pairs.jsonl"),
    "dpo_ipo": file("dpo.so:loss=ipo", "pairs.jsonl", policy__adapter__rank=2),
    "dpo_hinge": file("dpo.so:loss=hinge,beta=0.5", "pairs.jsonl"),
    "kto": file("kto.so", "kto.jsonl"),
    "bradley_terry": file("bradley_terry.so:center_coef=0.01", "pairs.jsonl"),
}


def make_files():
    subprocess.run([sys.executable, HERE + "/tiny_model.py", "model"], check=True)
    words = ["good.", "bad", "a long film.", "short", "the end.", "I think so"]
    start = ["It was", "The film", "I think"]
    with open("prompts.txt", "w") as f:
        f.write("".join(f"{s} {w}\n" for s in start for w in words))
    rows = {"texts": [], "labeled": [], "pairs": [], "kto": []}
    for i in range(24):
        p, a, b = start[i % 3], words[i % 6], words[(i + 1 + i // 6) % 6]
        rows["texts"].append({"text": f"{p} {a} {b}"})
        rows["labeled"].append({"text": f"{p} {a}", "label": i % 2})
        rows["pairs"].append({"prompt": p, "chosen": " " + a, "rejected": " " + b})
        rows["kto"].append({"prompt": p, "completion": " " + a, "label": i % 2 == 0})
    for name, items in rows.items():
        with open(name + ".jsonl", "w") as f:
            f.write("".join(json.dumps(r) + "\n" for r in items))
    for name, seed in (("policy", 1), ("teacher", 2)):
        host("--algo", "sft.so", "--data", "texts.jsonl", "--policy", "model", "--set", "policy.init=random",
             "--seed", seed, "--phases", 1, "--out", "made", "--threads", 1)
        subprocess.run(["cp", "-rL", "made/checkpoints/latest", name], check=True)
        subprocess.run(["rm", "-r", "made"], check=True)


def host(*args, may_fail=False):
    p = subprocess.run([HOST, *map(str, args)], capture_output=True, text=True)
    if p.returncode and not may_fail:
        raise SystemExit(f"exit {p.returncode}: {' '.join(map(str, args))}\n{p.stdout}{p.stderr}")
    return p


def check(name, dtype, seed):
    """The verdicts of the phases of a run."""
    args, sets = SETTINGS[name]
    sets = {**KEEP, "policy.path": "policy", "compute.dtype": dtype, "run.seed": seed, **sets}
    host(*args, "--out", "run", *(w for k, v in sets.items() for w in ("--set", f"{k}={v}")))
    p = host("verify", "run", "--all", "--backend", "reference", "--json", "--threads", 1, may_fail=True)
    found = json.loads(p.stdout) if p.stdout else {"compared": [], "not_recomputed": p.stderr}
    for phase in found["compared"]:
        what = [c for c in phase["checks"] if c["differs"] or c["limit_raised"]]
        if what:
            print(f"{name} {dtype} seed {seed} phase {phase['phase']}: {phase['verdict']}: "
                  + "; ".join(f"{c['what']} {c['where']} {c['relative']} of {c['limit']}" for c in what), flush=True)
    if found["not_recomputed"]:
        print(f"{name} {dtype} seed {seed}: {found['not_recomputed']}", flush=True)
    subprocess.run(["rm", "-r", "run"], check=True)
    return found["compared"]


def main():
    args = sys.argv[1:]
    seeds, first = int((args + ["1"])[0]), int((args[1:] + ["1"])[0])
    phases = raised = differ = skipped = 0
    with tempfile.TemporaryDirectory() as top:
        os.chdir(top)
        make_files()
        for seed in range(first, first + seeds):
            for name in args[2:] or SETTINGS:
                for dtype in ("f32", "bf16"):
                    found = check(name, dtype, seed)
                    skipped += PHASES - len(found)
                    for phase in found:
                        phases += 1
                        differ += phase["verdict"] == "differs"
                        raised += any(c["limit_raised"] for c in phase["checks"])
        os.chdir("/")
    print(f"{phases} phases: {differ} differ, {raised} with limits that were raised, {skipped} left out")
    return 1 if differ or skipped else 0


if __name__ == "__main__":
    sys.exit(main())
