#!/usr/bin/env python3
"""Float64 reference of ppo.so and grpo.so for rows of several turns, which writes the vectors of test_turn_vectors.

The rows of make_batch.py get tokens of an environment between their turns. This file leaves these tokens out by masks over whole rows, as
other trainers do: PPO as verl does it (verl/trainer/ppo/core_algos.py), GRPO with the tool_mask of TRL (GRPOTrainer._compute_loss, 1.16). The
numbers must equal those of make_ppo_vectors.py and make_grpo_vectors.py, which see rows without these tokens. They must not depend on the
values at the masked tokens. Needs numpy.

Run it in this directory: python3 make_turn_vectors.py > turn_vectors.jsonl
"""
import json

import numpy as np

import make_grpo_vectors as grpo
import make_ppo_vectors as ppo
from make_batch import FINISHED, GROUP, MAX_LEN, N, RESPONSE, make_batch, print_case, ragged

# For each row: {k: number of the environment's tokens before the policy's token k}. k counts from 0. Without a token k, they end the row.
GIVEN = [{1: 2, 3: 1}, {2: 3}, {1: 2}, {1: 1, 2: 1, 3: 1}, {}, {2: 6}, {3: 4, 6: 1}, {1: 5}, {2: 1, 4: 2}]
WIDTH = max(k + sum(g.values()) for k, g in zip(RESPONSE, GIVEN))
TOKENS = ("old", "ref", "logp", "entropy", "kl", "value_old", "value", "token_reward")

PPO = ("defaults", "gae_discounted", "one_step", "broadcast_reward", "sequence", "reward_to_go", "reinforce_pp", "group", "kl_reward_k2",
       "kl_reward_k3", "kl_loss_k1", "kl_loss_k3", "kl_loss_full", "whiten_rewards", "normalize_scores", "clip_asymmetric", "dual_clip",
       "ratio_sequence", "ratio_sequence_mean", "aggregation_sequence", "aggregation_max_len", "value_unclipped", "value_tight", "entropy")
GRPO = ("defaults", "scale_batch", "scale_none", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "gspo", "clip_asymmetric", "dual_clip",
        "kl_loss_k3", "mask", "mask_bnpo", "trl")


class Rows:
    """Whole rows, padded to one width: x[key] is [N, WIDTH]; mask is 1 at the policy's tokens; other places hold `junk`."""

    def __init__(self, b, junk):
        rng = np.random.default_rng(junk)
        self.mask = np.zeros((N, WIDTH))
        self.x = {key: rng.normal(-1, 0.7, (N, WIDTH)) for key in TOKENS}
        self.place = []  # of the policy's tokens
        for i in range(N):
            t = 0
            for k in range(RESPONSE[i]):
                t += GIVEN[i].get(k, 0)
                self.mask[i, t] = 1
                self.place.append((i, t))
                for key in TOKENS:
                    self.x[key][i, t] = b[key][i][k]
                t += 1
        self.score = np.array(b["score"])

    def own(self, full):
        """The policy's numbers of an array, as rows."""
        rows = [[] for _ in range(N)]
        for i, t in self.place:
            rows[i].append(float(full[i, t]))
        return rows


def masked_mean(x, m):
    return (x * m).sum() / m.sum()


def masked_var(x, m, unbiased):
    return ((x - masked_mean(x, m)) ** 2 * m).sum() / (m.sum() - unbiased)


def masked_whiten(x, m, o, shift):
    center = masked_mean(x, m)
    if o["whiten_form"] == "rsqrt":
        scale = 1 / np.sqrt(masked_var(x, m, 0) + o["whiten_eps"])
    else:
        scale = 1 / (np.sqrt(masked_var(x, m, 1)) + o["whiten_eps"])
    return (x - center) * scale + (0 if shift else center)


def kl(kind, x, f):
    return {"k1": x - f, "k2": (x - f) ** 2 / 2, "k3": np.exp(f - x) - (f - x) - 1, "full": None}[kind]


def normalized(total, of, o, scale):
    """Per row: (total - mean) / std over the rows with the same number in `of`."""
    a = np.zeros(N)
    for g in set(of):
        at = np.array([i for i in range(N) if of[i] == g])
        xs = total[at]
        if xs.max() > xs.min():
            s = np.std(xs, ddof=int(o["advantage_std"] == "unbiased")) + o["advantage_eps"]
            a[at] = (xs - xs.mean()) / (s if scale else 1)
    return a


def last_token(m):
    """1 at the last token of the policy in each row."""
    return ((m.cumsum(1) == m.sum(1, keepdims=True)) & (m > 0)).astype(float)


# ---- PPO, as verl masks it ----


def gae(r, v, m, gamma, lam):
    adv, next_value, last = np.zeros_like(r), np.zeros(N), np.zeros(N)
    for t in range(WIDTH - 1, -1, -1):
        here = r[:, t] + gamma * next_value - v[:, t] + gamma * lam * last
        next_value = v[:, t] * m[:, t] + (1 - m[:, t]) * next_value
        last = here * m[:, t] + (1 - m[:, t]) * last
        adv[:, t] = last
    return adv


def to_go(r, m, gamma):
    out, after = np.zeros_like(r), np.zeros(N)
    for t in range(WIDTH - 1, -1, -1):
        after = np.where(m[:, t] > 0, r[:, t] + gamma * after, after)
        out[:, t] = after
    return out


def ppo_advantages(w, o):
    m, x = w.mask, w.x
    score, paid = w.score, x["token_reward"] * m
    if o["normalize_scores"]:
        total = score + paid.sum(1)
        s = np.std(total, ddof=1) + 1e-5
        score, paid = (score - total.mean()) / s, paid / s
    r = paid + score[:, None] * (m if o["advantage"] == "broadcast_reward" else last_token(m))
    if o["kl_placement"] == "reward":
        r = r - o["kl_coef"] * kl(o["kl_estimator"], x["old"], x["ref"]) * m
    if o["whiten_rewards"]:
        r = masked_whiten(r, m, o, False) * m
    total = (r * m).sum(1)
    if o["advantage"] == "reward_to_go":
        adv = ret = to_go(r, m, o["gamma"])
    elif ppo.critic(o):
        adv = gae(r, x["value_old"], m, *((1, 0) if o["advantage"] == "one_step" else (o["gamma"], o["lambda"])))
        ret = adv + x["value_old"]
    else:
        of = [0] * N if o["advantage"] == "sequence" else GROUP
        adv = normalized(total, of, o, o["advantage"] != "group_mean")[:, None] * np.ones_like(m)
        ret = total[:, None] * np.ones_like(m)
    if o["whiten_advantages"] == "on" or (o["whiten_advantages"] == "auto" and ppo.critic(o)):
        adv = masked_whiten(adv, m, o, True)
    return adv, ret


def ratio(x, m, level):
    d = x["logp"] - x["old"]
    if level == "token":
        return np.exp(d)
    d = (d * m).sum(1, keepdims=True)
    return np.exp(d / (m.sum(1, keepdims=True) if level == "sequence_mean" else 1)) * np.ones_like(m)


def aggregate(loss, m, how, rows=N):
    if how == "token":
        return masked_mean(loss, m)
    if how == "sequence":
        return ((loss * m).sum(1) / np.maximum(m.sum(1), 1)).sum() / rows
    return (loss * m).sum() / (rows * MAX_LEN)


def clipped(rho, adv, o):
    low, high = 1 - o["clip_range"], 1 + (o["clip_range"] if o["clip_range_high"] < 0 else o["clip_range_high"])
    loss = np.maximum(-adv * rho, -adv * np.clip(rho, low, high))
    if o["dual_clip"]:
        loss = np.where(adv < 0, np.minimum(loss, -adv * o["dual_clip"]), loss)
    return loss


def ppo_losses(w, o, adv, ret):
    m, x = w.mask, w.x
    how = {"grpo": "sequence", "bnpo": "token", "dapo": "token", "dr_grpo": "max_len"}.get(o["aggregation"], o["aggregation"])
    policy = aggregate(clipped(ratio(x, m, o["ratio"]), adv, o), m, how)
    entropy = aggregate(-o["entropy_coef"] * x["entropy"], m, how)
    kls = value = 0.0
    if o["kl_placement"] == "loss":
        k = x["kl"] if o["kl_estimator"] == "full" else kl(o["kl_estimator"], x["logp"], x["ref"])
        kls = aggregate(o["kl_coef"] * k, m, how)
    if ppo.critic(o):
        err = (x["value"] - ret) ** 2
        if o["value_clip"]:
            near = np.clip(x["value"], x["value_old"] - o["value_clip"], x["value_old"] + o["value_clip"])
            err = np.maximum(err, (near - ret) ** 2)
        value = o["value_coef"] / 2 * masked_mean(err, m)
    return policy, value, kls, entropy


# ---- GRPO, as TRL masks it ----


def grpo_mask(w, o):
    """completion_mask * tool_mask; without the truncated completions, if they are masked."""
    return w.mask * np.array(FINISHED)[:, None] if o["mask_truncated"] else w.mask


def grpo_advantages(w, o):
    total = w.score + (w.x["token_reward"] * w.mask).sum(1)
    if o["advantage_scale"] == "batch":
        s = np.std(total, ddof=int(o["advantage_std"] == "unbiased")) + o["advantage_eps"]
        a = normalized(total, GROUP, o, False) / s
    else:
        a = normalized(total, GROUP, o, o["advantage_scale"] == "group")
    return a[:, None] * np.ones((N, WIDTH)), total[:, None] * np.ones((N, WIDTH))


def grpo_losses(w, o, adv, frozen):
    m, x = grpo_mask(w, o), w.x
    if o["loss"] == "cispo":
        high = 1 + (o["clip_range"] if o["clip_range_high"] < 0 else o["clip_range_high"])
        loss = -np.minimum(frozen, high) * adv * x["logp"]
    elif o["loss"] == "sapo":
        tau = np.where(adv > 0, o["sapo_temperature_pos"], o["sapo_temperature_neg"])
        loss = -adv * 4 / tau / (1 + np.exp(-tau * (ratio(x, m, o["ratio"]) - 1)))
    else:
        loss = clipped(ratio(x, w.mask, o["ratio"]), adv, o)
    if o["kl_placement"] == "loss":
        loss = loss + o["kl_coef"] * (x["kl"] if o["kl_estimator"] == "full" else kl(o["kl_estimator"], x["logp"], x["ref"]))
    loss = loss - o["entropy_coef"] * x["entropy"]
    how = {"grpo": "sequence", "sapo": "sequence", "dr_grpo": "max_len"}.get(o["loss"], "token")
    return aggregate(loss, m, how), 0.0, 0.0, 0.0


# ---- derivatives and metrics ----


def derivative(w, key, loss):
    """Differences of fourth order, at every place: those of the environment's tokens must be 0."""
    x, out, h = w.x[key], np.zeros((N, WIDTH)), 1e-4
    for i in range(N):
        for t in range(WIDTH):
            was, side = x[i, t], []
            for s in (-2, -1, 1, 2):
                x[i, t] = was + s * h
                side.append(sum(loss()))
            x[i, t] = was
            out[i, t] = (side[0] - 8 * side[1] + 8 * side[2] - side[3]) / (12 * h)
    assert np.all(np.abs(out[w.mask == 0]) < 1e-11)
    return out * w.mask


def f32(x):
    return x.astype(np.float32).astype(np.float64)


def case_of(module, name, junk):
    o = dict(module.DEFAULTS, **dict(module.CASES)[name])
    w = Rows(make_batch(), junk)
    adv, ret = (ppo_advantages if module is ppo else grpo_advantages)(w, o)
    adv32, ret32, frozen = f32(adv), f32(ret), ratio(w.x, w.mask, o["ratio"])
    loss = (lambda: ppo_losses(w, o, adv32, ret32)) if module is ppo else (lambda: grpo_losses(w, o, adv32, frozen))
    out = {"advantage": w.own(adv), "returns": w.own(ret)}
    heads = ("logp", "entropy", "kl", "value") if module is ppo else ("logp", "entropy", "kl")
    for key in heads:
        out["d_" + key] = w.own(derivative(w, key, loss))
    m = w.mask if module is ppo else grpo_mask(w, o)
    x = w.x["logp"] - w.x["old"]
    numbers = {"objective/loss": sum(loss()), "policy/approxkl_avg": masked_mean(x * x / 2, m),
               "policy/entropy_avg": masked_mean(w.x["entropy"], m), "returns/mean": masked_mean(ret, w.mask),
               "returns/var": masked_var(ret, w.mask, 0), "objective/entropy": -(w.x["old"] * w.mask).sum() / N}
    return out, {k: float(v) for k, v in numbers.items()}


def skipping(module, name):
    """The same numbers, by the reference for rows of one turn."""
    b, o = make_batch(), dict(module.DEFAULTS, **dict(module.CASES)[name])
    adv, ret = module.advantages(b, o)
    adv32, ret32 = ([[float(np.float32(x)) for x in row] for row in rows] for rows in (adv, ret))
    out = {"advantage": adv, "returns": ret}
    if module is ppo:
        for key in ("logp", "entropy", "kl", "value"):
            out["d_" + key] = ppo.gradient(b, o, adv32, ret32, key)
        exact = ppo.metrics(b, o, adv32, ret)  # metrics are computed before returns become floats
        return out, dict(ppo.metrics(b, o, adv32, ret32), **{k: exact[k] for k in ("returns/mean", "returns/var")})
    for key in ("logp", "entropy", "kl"):
        out["d_" + key] = grpo.gradient(b, o, adv32, key)
    return out, grpo.metrics(b, o, adv32, ret)


def same(name, a, b, tol):
    for key in a[0]:
        for x, y in zip(ragged(a[0][key]), ragged(b[0][key])):
            assert abs(x - y) <= tol * max(1, abs(y)), (name, key, x, y)
    for key in a[1]:
        assert abs(a[1][key] - b[1][key]) <= tol * max(1, abs(b[1][key])), (name, key, a[1][key], b[1][key])


def show(prefix, module, names):
    """Prints the cases of an algorithm."""
    for name in names:
        masking, numbers = case_of(module, name, 1)
        same(name, (masking, numbers), case_of(module, name, 2), 1e-11)
        same(name, (masking, numbers), skipping(module, name), 1e-9)
        options = dict(dict(module.CASES)[name], **({"group_size": 3} if module is grpo else {}))
        print_case(name, options, masking, numbers, digits=12, so=prefix + ".so")


def main():
    # tokens of the environment before each token of the policy, and after the last one of each row
    before = [g.get(k, 0) for r, g in zip(RESPONSE, GIVEN) for k in range(r)]
    print(json.dumps({"given": [int(x) for x in ragged(split(before))], "after": [g.get(r, 0) for r, g in zip(RESPONSE, GIVEN)]}))
    show("ppo", ppo, PPO)
    show("grpo", grpo, GRPO)


def split(xs):
    it = iter(xs)
    return [[next(it) for _ in range(k)] for k in RESPONSE]


if __name__ == "__main__":
    main()
