#!/usr/bin/env python3
"""Recomputes one phase of a PPO or GRPO run in float64 PyTorch, and compares.

Usage: recompute.py RUN PHASE [RUN PHASE ...]

Needs torch. A run needs log.rollouts=true, checkpoint.every=1 and compute.dtype=f32.

The script starts from RUN/checkpoints/<PHASE - 1> (weights, value head, AdamW's moments), the lines of PHASE in
RUN/rollouts.jsonl, and RUN/config.json. It computes log-probs, values, advantages, losses, gradients, clipping and steps,
and compares them with rollouts.jsonl and with RUN/checkpoints/<PHASE>. It is independent of the program's code: the
formulas are those of docs/algorithms/, and the model is GPT-2 as published or, for any other model_type, transformers'
model of the checkpoint.

Exit status 0: all agree; 1: something does not; 2: the run uses a feature that this script lacks.
"""
import json
import math
import os
import struct
import sys

import torch

F64 = torch.float64
torch.set_num_threads(1)  # the tensors are tiny

# The expected error of float32 products compared with float64, for small models.
LIMITS = {
    "log-prob": 1e-5,  # largest difference, nats
    "value": 1e-5,  # largest difference
    "advantage": 1e-5,  # largest difference
    "loss": 2e-6,  # relative to 1 + |loss|
    "gradient norm": 1e-5,  # relative to the largest of the phase
    "1 - cosine of the gradient": 1e-7,
    "1 - cosine of the step": 1e-7,
    "length of the step": 1e-5,  # relative
    "parameters": 1e-5,  # length of the difference, relative
}


def refuse(why):
    print(f"recompute.py: {why}")
    sys.exit(2)


def tensors(path):
    """A safetensors file of f32 tensors as float64, without the library."""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8 : 8 + n]).items():
        if name == "__metadata__":
            continue
        if t["dtype"] != "F32":
            refuse(f"{path}: {name} is {t['dtype']}; checkpoint.dtype must be f32")
        a, b = t["data_offsets"]
        flat = torch.frombuffer(bytearray(data[8 + n + a : 8 + n + b]), dtype=torch.float32)
        out[name] = flat.reshape(t["shape"]).to(F64)
    return out


# ---- the model ----


class Policy:
    """GPT-2 with a value head: linear, or d -> 4d -> ReLU -> 1, after the final norm."""

    def __init__(self, checkpoint, inv_temperature):
        with open(os.path.join(checkpoint, "config.json")) as f:
            self.c = json.load(f)
        self.p = tensors(os.path.join(checkpoint, "model.safetensors"))
        head = os.path.join(checkpoint, "state", "value_head.safetensors")
        if os.path.exists(head):
            self.p.update(tensors(head))
        for t in self.p.values():
            t.requires_grad_(True)
        self.inv_temperature = inv_temperature

    def linear(self, x, name):
        return x @ self.p[f"{name}.weight"] + self.p[f"{name}.bias"]

    def norm(self, x, name):
        w, b = self.p[f"{name}.weight"], self.p[f"{name}.bias"]
        return torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, self.c["layer_norm_epsilon"])

    def block(self, x, h):
        heads, n = self.c["n_head"], x.shape[0]
        qkv = self.linear(self.norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn")
        q, k, v = (t.reshape(n, heads, -1).transpose(0, 1) for t in qkv.split(x.shape[1], dim=1))
        a = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        a = a.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
        x = x + self.linear((a @ v).transpose(0, 1).reshape(n, -1), f"{h}.attn.c_proj")
        m = self.linear(self.norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc")
        m = torch.nn.functional.gelu(m, approximate="tanh")
        return x + self.linear(m, f"{h}.mlp.c_proj")

    def value(self, x):
        if "v_head.fc.weight" in self.p:
            x = torch.relu(x @ self.p["v_head.fc.weight"].T + self.p["v_head.fc.bias"])
        return (x @ self.p["v_head.out.weight"].T + self.p["v_head.out.bias"])[:, 0]

    def states(self, ids):
        """After the final norm, [len, d]."""
        x = self.p["transformer.wte.weight"][ids] + self.p["transformer.wpe.weight"][: len(ids)]
        for layer in range(self.c["n_layer"]):
            x = self.block(x, f"transformer.h.{layer}")
        return self.norm(x, "transformer.ln_f")

    def logits(self, x):
        return x @ self.p.get("lm_head.weight", self.p["transformer.wte.weight"]).T

    def __call__(self, row):
        """Log-prob and entropy of each response token, value of the state before it (or None)."""
        ids = torch.tensor(row["ids"])
        n, first = len(ids), row["prompt_length"]
        x = self.states(ids)[first - 1 : n - 1]
        logp = (self.logits(x) * self.inv_temperature).log_softmax(-1)
        value = self.value(x) if "v_head.out.weight" in self.p else None
        return logp.gather(1, ids[first:, None])[:, 0], -(logp.exp() * logp).sum(-1), value


class Published(Policy):
    """Any causal language model of transformers in float64, with the same kind of value head."""

    def __init__(self, checkpoint, inv_temperature):
        import transformers

        super().__init__(checkpoint, inv_temperature)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            checkpoint, dtype=F64, attn_implementation="eager")
        for name, t in self.model.named_parameters():
            if name not in self.p or not torch.equal(t, self.p[name]):
                refuse(f"{checkpoint}: transformers has other values of {name} than its file")
            self.p[name] = t

    def states(self, ids):
        return self.model.base_model(input_ids=ids[None]).last_hidden_state[0]

    def logits(self, x):
        config = self.model.config
        z = self.model.get_output_embeddings()(x) / getattr(config, "logits_scaling", 1.0)
        cap = getattr(config, "final_logit_softcapping", None)
        return cap * torch.tanh(z / cap) if cap else z


def policy_of(checkpoint, inv_temperature):
    with open(os.path.join(checkpoint, "config.json")) as f:
        kind = json.load(f)["model_type"]
    return (Policy if kind == "gpt2" else Published)(checkpoint, inv_temperature)


# ---- formulas ----


def kl(kind, x, f):
    d = f - x
    if kind == "full":
        refuse("kl_estimator full needs the reference's weights")
    return {"k1": -d, "k2": 0.5 * d * d, "k3": torch.expm1(d) - d}[kind]


def whiten(xs, o, shift):
    flat = torch.cat(xs)
    std = flat.var(correction=0).add(o["whiten_eps"]).sqrt()
    if o["whiten_form"] == "std":
        std = flat.std(correction=1) + o["whiten_eps"]
    return [(x - flat.mean()) / std + (0 if shift else flat.mean()) for x in xs]


def gae(r, v, gamma, lam):
    adv, ahead, nxt = torch.zeros_like(r), 0.0, 0.0
    for t in reversed(range(len(r))):
        ahead = r[t] + gamma * nxt - v[t] + gamma * lam * ahead
        adv[t], nxt = ahead, v[t]
    return adv


def critic_advantages(o, coef, rows, batch):
    """ppo with a critic: advantages and returns of `rows`, one tensor per row."""
    score = torch.tensor([r["score"] for r in rows], dtype=F64)
    if o["normalize_scores"]:
        every = torch.tensor([r["score"] for r in batch], dtype=F64)
        score = (score - every.mean()) / (every.std(correction=1) + 1e-5)
    reward = []
    for r, s in zip(rows, score):
        x = r["token_reward"].clone()
        if o["kl_placement"] == "reward":
            x -= coef * kl(o["kl_estimator"], r["logp_old"], r["logp_ref"])
        x[-1:] += s
        reward.append(x)
    if o["whiten_rewards"]:
        reward = whiten(reward, o, False)
    if o["advantage"] == "gae":
        adv = [gae(x, r["value"], o["gamma"], o["lambda"]) for x, r in zip(reward, rows)]
    elif o["advantage"] == "one_step":
        adv = [gae(x, r["value"], 1.0, 0.0) for x, r in zip(reward, rows)]
    else:
        refuse(f"advantage {o['advantage']} is not covered")
    returns = [a + r["value"] for a, r in zip(adv, rows)]
    if o["whiten_advantages"] != "off":
        adv = whiten(adv, o, True)
    return adv, returns


def group_advantages(o, coef, rows):
    """grpo: one advantage per response, from the rewards of its group."""
    total = []
    for r in rows:
        s = r["score"] + r["token_reward"].sum()
        if o["kl_placement"] == "reward":
            s = s - coef * kl(o["kl_estimator"], r["logp_old"], r["logp_ref"]).sum()
        total.append(s)
    total = torch.stack(total)
    unbiased = 1 if o["advantage_std"] == "unbiased" else 0
    out = torch.zeros_like(total)
    group = torch.tensor([r["group"] for r in rows])
    for g in group.unique():
        x = total[group == g]
        centred = x - x.mean()
        if o["advantage_scale"] == "group":
            centred = centred / (x.std(correction=unbiased) + o["advantage_eps"])
        out[group == g] = centred if (x != x[0]).any() else 0.0
    if o["advantage_scale"] == "batch":
        out = out / (total.std(correction=unbiased) + o["advantage_eps"])
    spread = [torch.full_like(r["logp_old"], a.item()) for r, a in zip(rows, out)]
    return spread, [torch.full_like(r["logp_old"], s.item()) for r, s in zip(rows, total)]


def counted(rows):
    """The number of response tokens in rows that are not masked."""
    return sum(len(r["logp_old"]) for r in rows if not r["masked"])


def weight(o, algo, rows, batch, row, longest):
    """The weight of a response token's term in the loss."""
    kind = o["loss"] if algo == "grpo" else o["aggregation"]
    if kind in ("sequence", "grpo"):
        return 1 / (len(rows) * len(row["logp_old"]))
    if kind in ("max_len", "dr_grpo"):
        return 1 / (len(rows) * longest)
    if kind == "dapo":
        return o["parts"] / counted(batch)
    if kind in ("token", "bnpo"):
        return 1 / counted(rows)
    return refuse(f"loss {kind} is not covered")


def loss(o, algo, coef, policy, rows, adv, returns, batch, longest):
    total = torch.zeros((), dtype=F64)
    low, high = o["clip_range"], o["clip_range_high"]
    high = low if high < 0 else high
    if o["ratio"] != "token" or o["dual_clip"]:
        refuse("ratios of sequences and dual_clip are not covered")
    value_tokens = sum(len(r["logp_old"]) for r in rows)
    for r, a, ret in zip(rows, adv, returns):
        if r["masked"]:
            continue
        logp, entropy, value = policy(r)
        ratio = (logp - r["logp_old"]).exp()
        term = torch.maximum(-a * ratio, -a * ratio.clamp(1 - low, 1 + high))
        if o["kl_placement"] == "loss":
            term = term + coef * kl(o["kl_estimator"], logp, r["logp_ref"])
        term = term - o["entropy_coef"] * entropy
        total = total + weight(o, algo, rows, batch, r, longest) * term.sum()
        if algo == "ppo":
            error = (value - ret) ** 2
            if o["value_clip"] > 0:
                near = value.clamp(r["value"] - o["value_clip"], r["value"] + o["value_clip"])
                error = torch.maximum(error, (near - ret) ** 2)
            total = total + 0.5 * o["value_coef"] * error.sum() / value_tokens
    return total


class AdamW:
    def __init__(self, checkpoint, c, head_lr, factor):
        state = tensors(os.path.join(checkpoint, "state", "optimizer.safetensors"))
        with open(os.path.join(checkpoint, "state", "run.json")) as f:
            self.t = json.load(f)["optim"]["step"]
        self.m = {k[2:]: v for k, v in state.items() if k.startswith("m.")}
        self.v = {k[2:]: v for k, v in state.items() if k.startswith("v.")}
        self.c, self.head_lr, self.factor = c, head_lr, factor

    def step(self, p):
        """Clips and steps; returns the gradient norm before clipping."""
        c = self.c
        norm = math.sqrt(sum(t.grad.square().sum().item() for t in p.values()))
        scale = min(1.0, c["max_grad_norm"] / norm) if c["max_grad_norm"] > 0 and norm > 0 else 1.0
        self.t += 1
        fix1, fix2 = 1 - c["beta1"] ** self.t, 1 - c["beta2"] ** self.t
        for name, w in p.items():
            g, lr = w.grad * scale, self.factor * c["lr"]
            if name.startswith("v_head."):
                lr = self.factor * self.head_lr
            m = self.m[name] = c["beta1"] * self.m[name] + (1 - c["beta1"]) * g
            v = self.v[name] = c["beta2"] * self.v[name] + (1 - c["beta2"]) * g * g
            if c["epsilon"] == "torch":
                step = lr * (m / fix1) / ((v / fix2).sqrt() + c["eps"])
            else:
                step = lr * math.sqrt(fix2) / fix1 * m / (v.sqrt() + c["eps"])
            decay = lr * c["weight_decay"] if w.ndim == 2 else 0.0
            w.data -= step + decay * w.data
            w.grad = None
        return norm


# ---- the comparison ----


class Report:
    def __init__(self):
        self.worst = {}

    def add(self, what, error):
        self.worst[what] = max(self.worst.get(what, 0.0), float(error))

    def status(self):
        bad = 0
        for what, error in self.worst.items():
            wrong = not error <= LIMITS[what]
            bad += wrong
            print(f"{what:<28} {error:9.2e}   limit {LIMITS[what]:.0e}{'   WRONG' if wrong else ''}")
        return 1 if bad else 0


def difference(a, b):
    return (a - b).abs().max() if len(a) else 0.0


def flat(tensors_by_name, names):
    return torch.cat([tensors_by_name[n].detach().reshape(-1) for n in names])


def without_key_bias(p, d):
    """Leaves out the biases of keys. A constant added to every key of a head does not change attention, so the gradient
    of such a bias is rounding error, which AdamW scales up like any other gradient."""
    out = {name: t.detach().clone() for name, t in p.items()}
    for name in out:
        if name.endswith("attn.c_attn.bias"):
            out[name][d : 2 * d] = 0
    return out


def read_phase(run, phase):
    rows, updates = [], []
    with open(os.path.join(run, "rollouts.jsonl")) as f:
        for line in f:
            v = json.loads(line)
            if v["phase"] == phase:
                (rows if "row" in v else updates).append(v)
    for r in rows:
        for key in ("logp_sampled", "logp_old", "logp_ref", "value", "token_reward"):
            if r[key] is not None:
                r[key] = torch.tensor(r[key], dtype=F64)
    if not rows or not updates:
        refuse(f"{run}/rollouts.jsonl has no phase {phase}")
    return rows, updates


def check_heads(policy, rows, report):
    with torch.no_grad():
        for r in rows:
            logp, _, value = policy(r)
            report.add("log-prob", difference(logp, r["logp_sampled"]))
            report.add("log-prob", difference(logp, r["logp_old"]))
            if r["value"] is not None:
                report.add("value", difference(value, r["value"]))


def compare_step(before, after, policy, optim, run, phase, report):
    """Compares weights and first moments of the phase's checkpoint with those computed here."""
    end = os.path.join(run, "checkpoints", f"{phase:06d}")
    theirs = policy_of(end, 1.0).p
    moments = tensors(os.path.join(end, "state", "optimizer.safetensors"))
    d, names = policy.c.get("n_embd"), sorted(before)
    x, y = flat(theirs, names), flat(after, names)
    report.add("parameters", (x - y).norm() / y.norm())
    a, b, w = (without_key_bias(p, d) for p in (theirs, after, before))
    x, y = (flat(p, names) - flat(w, names) for p in (a, b))
    report.add("1 - cosine of the step", 1 - torch.dot(x, y) / (x.norm() * y.norm()))
    report.add("length of the step", (x.norm() / y.norm() - 1).abs())
    mine = without_key_bias(optim.m, d)
    x = flat(without_key_bias({n: moments[f"m.{n}"] for n in names}, d), names)
    y = flat(mine, names)
    report.add("1 - cosine of the gradient", 1 - torch.dot(x, y) / (x.norm() * y.norm()))


def recompute(run, phase):
    with open(os.path.join(run, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(run, "metrics.jsonl")) as f:
        metrics = next(m for m in map(json.loads, f) if m["phase"] == phase)
    o, sampling, c = config["algo"], config["sampling"], config["optim"]
    algo = os.path.basename(o["plugin"]).removesuffix(".so")
    if algo not in ("ppo", "grpo") or c["kind"] != "adamw" or config["value"]["critic"] != "shared":
        refuse("only ppo and grpo with AdamW and a shared critic are covered")
    if o["logprob_support"] != "full" and (sampling["top_k"] or sampling["top_p"] < 1):
        refuse("logprob_support sampled is not covered")
    unit = o["logprob_temperature"] == "unit"
    begin = os.path.join(run, "checkpoints", f"{phase - 1:06d}")
    policy = policy_of(begin, 1.0 if unit else 1 / sampling["temperature"])
    before = {k: v.detach().clone() for k, v in policy.p.items()}
    factor = metrics["lr"] / c["lr"]
    optim = AdamW(begin, c, config["value"]["lr"] or c["lr"], factor)
    coef = metrics.get("objective/kl_coef", 0)
    rows, updates = read_phase(run, phase)
    for r in rows:
        r["masked"] = o.get("mask_truncated", False) and not r["finished"]
    o["parts"] = o["minibatches"]
    report = Report()
    check_heads(policy, rows, report)
    scope = o.get("whiten_scope") if algo == "ppo" else o.get("advantage_scope")

    def advantages(part):
        if algo == "ppo":
            return critic_advantages(o, coef, part, rows)
        return group_advantages(o, coef, part)

    whole = None if scope == "minibatch" else advantages(rows)
    for u in updates:
        part = [rows[i] for i in u["rows"]]
        if [r["row"] for r in part if r["masked"]] != u.get("masked", []):
            raise SystemExit(f"masked rows are {u.get('masked')}")
        if whole:
            adv, returns = ([x[i] for i in u["rows"]] for x in whole)
            told = [r["advantage"] for r in part]
        else:
            (adv, returns), told = advantages(part), u["advantage"]
        for a, t in zip(adv, told):
            report.add("advantage", difference(a, torch.tensor(t, dtype=F64)))
        value = loss(o, algo, coef, policy, part, adv, returns, rows, sampling["max_new_tokens"])
        value.backward()
        norm = optim.step(policy.p)
        report.add("loss", abs(value.item() - u["loss"]) / (1 + abs(u["loss"])))
        # If all groups of a minibatch lack spread, the gradient is only noise.
        report.add("gradient norm", abs(norm - u["grad_norm"]) / max(v["grad_norm"] for v in updates))
    compare_step(before, policy.p, policy, optim, run, phase, report)
    print(f"{algo}, phase {phase}: {len(rows)} rows, {len(updates)} updates")
    return report.status()


def main():
    if len(sys.argv) < 3 or len(sys.argv) % 2 == 0:
        refuse("usage: recompute.py RUN PHASE [RUN PHASE ...]")
    pairs = zip(sys.argv[1::2], sys.argv[2::2])
    sys.exit(max([recompute(run, int(phase)) for run, phase in pairs]))


if __name__ == "__main__":
    main()
