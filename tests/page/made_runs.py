"""Directories of runs, made up without a model: good, hostile, damaged, and of 10,000 phases."""
import json
import math
import os

CONFIG = {"run": {"phases": 30, "seed": 1, "dir": "", "note": "", "preset": ""}, "algo": {"plugin": "ppo.so", "kl_coef": 0.02},
          "reward": [{"plugin": "imdb.so", "name": "imdb", "weight": 1.0}],
          "sampling": {"max_new_tokens": 48, "stop_at_eos": "auto"}, "optim": {"lr": 1e-4, "max_grad_norm": 1.0}}
MANIFEST = {"version": "1.0.0-rc1", "compute": {"backend": "cpu", "detail": "two threads"},
            "policy": {"path": "/models/policy", "parameters": 8048001},
            "plugins": [{"role": "algorithm", "path": "/lib/ppo.so", "version": "1.0.0-rc1"}],
            "inputs": [{"setting": "policy.path (the reference)", "path": "/models/policy"}]}


def noise(i):
    """Between -1 and 1, the same every time."""
    return math.sin(12.9898 * i) * 43758.5453 % 2 - 1


def metrics(phase, of, more=0):
    """A run whose reward rises."""
    share = phase / of
    row = {"phase": phase, "episode": 128 * phase, "objective/scores": 0.55 + 0.4 * share + 0.01 * noise(phase),
           "objective/kl": 7 * share, "objective/kl_per_token": 7 * share / 48, "objective/entropy": 195 - 10 * share,
           "objective/entropy_per_token": (195 - 10 * share) / 48, "completions/mean_length": 48,
           "completions/distinct_3": 0.95 - 0.02 * share + 0.002 * noise(phase), "completions/clipped_ratio": 0.97,
           "loss/policy_avg": -0.02 + 0.005 * noise(phase), "loss/value_avg": 0.03 - 0.01 * share,
           "val/var_explained": 0.6 * share, "optim/grad_norm": 0.8 + 0.1 * noise(3 * phase), "optim/skipped_steps": 0,
           "sampling/logp_difference/max": 0, "policy/clipfrac_avg": 0.05 + 0.01 * noise(phase),
           "rewards/imdb/mean": 0.55 + 0.4 * share + 0.01 * noise(phase), "rewards/imdb/failures": 0, "rewards/not_finite": 0,
           "time/rollout": 0.5, "time/reward": 0.4, "time/reference": 0.6, "time/update": 2.1 + 0.1 * noise(phase),
           "time/training": 3.8 + 0.1 * noise(phase), "perf/peak_rss_mb": 540, "lr": 1e-4 * (1 - share)}
    for i in range(more):
        row[f"plugin/measure_{i}"] = round(noise(phase + 31 * i), 12)
    return row


def sample(phase, i, text=None, eval=False):
    pieces = [" one", " of", " the", " finest", "\u00e9", " films", "."] if text is None else text
    n = len(pieces)
    ref = [-2.0 + 0.5 * noise(phase + i + k) for k in range(n)]
    return {"phase": phase, **({"eval": True} if eval else {}), "prompt_row": i, "prompt": f"This is number {i}",
            "response": "".join(pieces), "length": n, "reward": round(0.1 + 0.2 * i, 3), "rewards": {"imdb": 0.5, "length": 0.1},
            "ref_logp": sum(ref), "logp": sum(ref) + phase * 0.1, "pieces": pieces,
            "logp_tokens": [r + 0.1 * phase * noise(k) for k, r in enumerate(ref)], "ref_logp_tokens": ref,
            "value_tokens": [0.5] * n}


def spread(phase):
    values = sorted(0.5 + 0.3 * noise(phase + 7 * k) for k in range(33))
    return {"phase": phase, "reward": {"m": 0.6, "s": 0.2, "q": values}, "length": {"m": 47.5, "n": [[30, 4], [48, 124]]},
            "kl": {"m": 3.0, "s": 2.0, "q": [10 * v for v in values]}, "advantage": {"m": 0, "s": 0.2, "q": [v - 0.5 for v in values]}}


def lines(folder, name, rows):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        for row in rows:
            f.write(json.dumps(row, ensure_ascii=False) + "\n")


def write(folder, phases=30, config=CONFIG, more=0, change=lambda row: row):
    """A whole run; `change` may alter each row of metrics."""
    os.makedirs(folder)
    config = {**config, "run": {**config["run"], "phases": phases, "dir": folder}}
    for name, value in (("config.json", config), ("manifest.json", MANIFEST)):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f)
    lines(folder, "metrics.jsonl", (change(metrics(p, phases, more)) for p in range(1, phases + 1)))
    shown = sorted({1, (phases + 1) // 2, phases})
    lines(folder, "samples.jsonl",
          [sample(0, i, eval=True) for i in range(3)] + [sample(p, i, eval=e) for p in shown for e in (False, True) for i in range(5 - 2 * e)])
    lines(folder, "spread.jsonl", map(spread, range(1, phases + 1)))
    machine = {"host": "h", "system": "Linux", "cpu": "a processor", "cores": 2, "memory_mib": 8192}
    argv = ["/bin/rlhf-host", "--algo", "ppo.so", "--reward", "imdb.so", "--set", "run.note=it's mine"]
    lines(folder, "events.jsonl", [{"time": 1.8e9, "phase": 0, "event": "start", "argv": argv, "version": "1.0.0-rc1", "machine": machine},
                                   {"time": 1.8e9 + 99, "phase": phases, "event": "end", "status": "done", "reason": ""}])
    return folder


EVIL = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1><!-- \u2028\u2029\u202eabc\x1b[2J\x00\ufeff"


# Four rows: invalid UTF-8 and a lone surrogate; lists of different lengths; members of the wrong type; numbers
# that are not finite.
ODD = (b'"prompt": "bad \xff\xfe bytes", "response": "r\\ud800 \\udc00", "reward": 1}',
       b'"prompt": "short lists", "pieces": ["a", "b"], "logp_tokens": [1], "response": "ab", "reward": 1}',
       b'"prompt": 5, "response": {"a": 1}, "reward": "much", "pieces": [1, 2]}',
       b'"prompt": "not finite", "response": "n", "reward": NaN, "logp": Infinity}')


def hostile(folder):
    """A run in which every text is invalid or tries to become markup."""
    config = json.loads(json.dumps(CONFIG))
    config["run"]["note"] = config["algo"]["plugin"] = config["algo"][EVIL.replace("\0", "")] = EVIL
    config["reward"][0]["name"] = config["reward"][0]["plugin"] = EVIL

    def change(row):
        row["x/" + EVIL.replace("\0", "")] = row["phase"]
        row["rewards/" + EVIL.replace("\0", "") + "/mean"] = row["phase"]
        return row
    write(folder, 12, config, change=change)
    with open(folder + "/manifest.json", "w") as f:
        json.dump({"version": EVIL, "compute": {"backend": EVIL, "detail": EVIL}, "policy": {"path": "/" + EVIL, "parameters": EVIL},
                   "plugins": [{"path": EVIL, "version": EVIL}, 3, None], "inputs": {"setting": 1}}, f)
    with open(folder + "/samples.jsonl", "wb") as f:
        for phase in (1, 12):
            for row in (sample(phase, i, [EVIL, "</script>", "x"]) for i in range(3)):
                row.update(prompt=EVIL + row["prompt"], response=EVIL, rewards={EVIL.replace("\0", ""): 1, "b": EVIL})
                f.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            for line in ODD:
                f.write(b'{"phase": %d, ' % phase + line + b"\n")
        f.write(b'[1, 2]\n"text"\n{"phase": -3}\n{"phase": "x"}\n' + b"[" * 100000 + b"\n" + b'{"phase": 12, "prompt": "' + b"x" * 9000000 + b'"}\n')
    lines(folder, "events.jsonl", [{"time": "now", "phase": 0, "event": "start", "argv": [EVIL, "--out", EVIL, 7, {"a": EVIL}], "machine": EVIL},
                                   {"time": 1e300, "phase": 0, "event": "end", "status": EVIL, "reason": EVIL}])
    lines(folder, "spread.jsonl", [spread(1), {"phase": 2, "reward": {"m": 1, "q": [3, 2, 1]}}, {"phase": 3, "reward": {"m": "x", "n": [[1]]}},
                                   {"phase": 4, "reward": 5, "length": {"m": 1, "n": [[1, -5]]}}, spread(5)])
    return folder
