#!/usr/bin/env python3
"""Float64 reference of grpo.so, which writes the vectors of test_vectors.

An independent implementation of docs/algorithms/grpo.md in plain Python. Derivatives are central
differences of the loss instead of formulas, to reveal mistakes in hand-written derivatives.
Run it in this directory: python3 make_grpo_vectors.py > grpo_vectors.jsonl
"""
import math

from make_batch import (FINISHED, MAX_LEN, N, RESPONSE, f32, flat, groups, kl, make_batch, mean, paid,
                        print_case, ratios, var)

DEFAULTS = dict(
    group_size=3, advantage_scale="group", advantage_eps=1e-4, advantage_std="unbiased",
    advantage_scope="batch", loss="grpo", ratio="token", clip_range=0.2, clip_range_high=-1.0,
    dual_clip=0.0, kl_placement="loss", kl_estimator="k3", kl_coef=0.04, entropy_coef=0.0,
    mask_truncated=False, mask_zero_advantage_groups=False, sapo_temperature_pos=1.0,
    sapo_temperature_neg=1.05)

CASES = [
    ("defaults", {}),
    ("scale_batch", dict(advantage_scale="batch")),
    ("scale_batch_biased", dict(advantage_scale="batch", advantage_std="biased",
                                advantage_eps=0.05)),
    ("scale_none", dict(advantage_scale="none")),
    ("eps", dict(advantage_eps=0.3)),
    ("eps_zero", dict(advantage_eps=0.0)),
    ("std_biased", dict(advantage_std="biased")),
    ("scope_minibatch", dict(advantage_scope="minibatch", advantage_scale="batch")),
    ("bnpo", dict(loss="bnpo")),
    ("dr_grpo", dict(loss="dr_grpo", advantage_scale="none")),
    ("dapo", dict(loss="dapo", clip_range_high=0.28, kl_placement="none")),
    ("cispo", dict(loss="cispo", clip_range_high=0.1)),
    ("cispo_sequence", dict(loss="cispo", ratio="sequence", entropy_coef=0.02)),
    ("cispo_sequence_mean", dict(loss="cispo", ratio="sequence_mean", clip_range=0.02)),
    ("gmpo", dict(loss="gmpo", kl_placement="none", clip_range=0.1)),
    ("gmpo_tight", dict(loss="gmpo", clip_range=0.02, clip_range_high=0.05, entropy_coef=0.02)),
    ("sapo", dict(loss="sapo", kl_placement="none")),
    ("sapo_hard", dict(loss="sapo", sapo_temperature_pos=4.0, sapo_temperature_neg=0.5)),
    ("sapo_sequence", dict(loss="sapo", ratio="sequence", sapo_temperature_neg=3.0)),
    ("sapo_sequence_mean", dict(loss="sapo", ratio="sequence_mean", sapo_temperature_pos=3.0)),
    ("ratio_sequence", dict(ratio="sequence")),
    ("ratio_sequence_dr_grpo", dict(ratio="sequence", loss="dr_grpo")),
    ("gspo", dict(ratio="sequence_mean", clip_range=0.01, clip_range_high=0.02, kl_coef=0.0)),
    ("clip_tight", dict(clip_range=0.05)),
    ("clip_asymmetric", dict(clip_range=0.1, clip_range_high=0.28)),
    ("dual_clip", dict(clip_range=0.1, dual_clip=1.15, loss="bnpo")),
    ("kl_loss_k1", dict(kl_estimator="k1", kl_coef=0.3)),
    ("kl_loss_k2", dict(kl_estimator="k2", kl_coef=0.3, loss="bnpo")),
    ("kl_loss_k3", dict(kl_estimator="k3", kl_coef=0.3, loss="dr_grpo")),
    ("kl_loss_full", dict(kl_estimator="full", kl_coef=0.3, loss="dapo")),
    ("kl_reward_k1", dict(kl_placement="reward", kl_estimator="k1", kl_coef=0.2)),
    ("kl_reward_k2", dict(kl_placement="reward", kl_estimator="k2", kl_coef=0.2,
                          advantage_scale="none")),
    ("kl_reward_k3", dict(kl_placement="reward", kl_estimator="k3", kl_coef=0.2,
                          advantage_scale="batch")),
    ("kl_none", dict(kl_placement="none")),
    ("entropy", dict(entropy_coef=0.1, loss="bnpo")),
    ("mask", dict(mask_truncated=True, entropy_coef=0.1)),
    ("mask_bnpo", dict(mask_truncated=True, loss="bnpo", kl_placement="none")),
    ("mask_dr_grpo", dict(mask_truncated=True, loss="dr_grpo", advantage_scale="none")),
    ("mask_dapo", dict(mask_truncated=True, loss="dapo", clip_range_high=0.28,
                       kl_placement="none")),
    ("mask_cispo_full", dict(mask_truncated=True, loss="cispo", kl_estimator="full", kl_coef=0.3)),
    ("mask_scope", dict(mask_truncated=True, loss="dapo", advantage_scope="minibatch")),
    ("flat", dict(mask_zero_advantage_groups=True, entropy_coef=0.1)),
    ("flat_bnpo", dict(mask_zero_advantage_groups=True, loss="bnpo")),
    ("flat_dr_grpo", dict(mask_zero_advantage_groups=True, loss="dr_grpo")),
    ("flat_dapo", dict(mask_zero_advantage_groups=True, loss="dapo", mask_truncated=True)),
    ("flat_gmpo", dict(mask_zero_advantage_groups=True, loss="gmpo", mask_truncated=True)),
    ("flat_scope", dict(mask_zero_advantage_groups=True, advantage_scope="minibatch")),
    ("flat_full", dict(mask_zero_advantage_groups=True, kl_estimator="full", kl_coef=0.3)),
    ("flat_not", dict(mask_zero_advantage_groups=True, kl_placement="reward", kl_coef=0.2)),
    ("trl", dict(loss="dapo", kl_placement="none", clip_range=0.2)),
    ("deepseek", dict(loss="grpo", advantage_eps=0.0, kl_coef=0.04)),
]

AGGREGATION = {"grpo": "sequence", "bnpo": "token", "dapo": "token", "cispo": "token",
               "dr_grpo": "max_len", "gmpo": "sequence", "sapo": "sequence"}


def counted(b, o):
    """The rows that count in a mean over rows."""
    total, _ = rewards(b, o)
    flat_rows = [i for at in groups() for i in at if len({total[k] for k in at}) == 1]
    return [i for i in range(N) if i not in flat_rows or not o["mask_zero_advantage_groups"]]


def trained(b, o):
    """The rows that have a loss."""
    return [i for i in counted(b, o) if FINISHED[i] or not o["mask_truncated"]]


def gmpo(x, old, a, o):
    """Geometric mean of one-sidedly clipped ratios, as in the authors' code; and the clipped tokens."""
    sign = 1 if a > 0 else -1
    eps = o["clip_range"] if o["clip_range_high"] < 0 or a <= 0 else o["clip_range_high"]
    d = [sign * (p - q) for p, q in zip(x, old)]
    return math.exp(sign * mean([min(v, eps) for v in d])), [a != 0 and v > eps for v in d]


def rewards(b, o):
    """S with and without the KL penalty."""
    plain = paid(b)
    if o["kl_placement"] != "reward":
        return plain, plain
    k = [math.fsum(kl(o["kl_estimator"], x, f) for x, f in zip(xs, fs))
         for xs, fs in zip(b["old"], b["ref"])]
    return [p - o["kl_coef"] * q for p, q in zip(plain, k)], plain


def advantages(b, o):
    total, _ = rewards(b, o)
    unbiased = o["advantage_std"] == "unbiased"
    a = [0.0] * N
    for at in groups():
        xs = [total[i] for i in at]
        if max(xs) == min(xs):
            continue
        scale = {"group": lambda: math.sqrt(var(xs, unbiased)) + o["advantage_eps"],
                 "batch": lambda: math.sqrt(var(total, unbiased)) + o["advantage_eps"],
                 "none": lambda: 1.0}[o["advantage_scale"]]()
        for i in at:
            a[i] = (total[i] - mean(xs)) / scale
    return [[x] * k for x, k in zip(a, RESPONSE)], [[x] * k for x, k in zip(total, RESPONSE)]


def parts(b, o, adv, rows, frozen):
    """(policy, kl, entropy) loss of some rows, and the number of clipped tokens. `frozen` has the log-probs
    from which the weights of cispo are computed. These are constants in the derivative."""
    lo, hi = 1 - o["clip_range"], 1 + (o["clip_range"] if o["clip_range_high"] < 0
                                       else o["clip_range_high"])
    policy = kls = entropy = 0.0
    clipped, n, of = 0, len(counted(b, o)), trained(b, o)
    for i in rows:
        if i not in of:
            continue
        w = {"token": 1 / sum(RESPONSE[k] for k in of), "sequence": 1 / (n * RESPONSE[i]),
             "max_len": 1 / (n * MAX_LEN)}[AGGREGATION[o["loss"]]]
        source = frozen[i] if o["loss"] == "cispo" else b["logp"][i]
        rho = ratios(source, b["old"][i], o["ratio"])
        for t in range(RESPONSE[i]):
            a = adv[i][t]
            if o["loss"] == "gmpo":
                mean_ratio, cuts = gmpo(b["logp"][i], b["old"][i], a, o)
                term, cut = -a * mean_ratio, cuts[t]
            elif o["loss"] == "sapo":
                tau = o["sapo_temperature_pos" if a > 0 else "sapo_temperature_neg"]
                term, cut = -a * 4 / (tau * (1 + math.exp(-tau * (rho[t] - 1)))), False
            elif o["loss"] == "cispo":
                term, cut = -min(rho[t], hi) * a * b["logp"][i][t], a != 0 and rho[t] > hi
            else:
                pg1, pg2 = -a * rho[t], -a * min(max(rho[t], lo), hi)
                term, cut = max(pg1, pg2), pg2 > pg1
                if o["dual_clip"] and a < 0 and term > -a * o["dual_clip"]:
                    term, cut = -a * o["dual_clip"], True
            policy += w * term
            clipped += cut
            entropy -= w * o["entropy_coef"] * b["entropy"][i][t]
            if o["kl_placement"] == "loss":
                k = (b["kl"][i][t] if o["kl_estimator"] == "full"
                     else kl(o["kl_estimator"], b["logp"][i][t], b["ref"][i][t]))
                kls += w * o["kl_coef"] * k
    return policy, kls, entropy, clipped


def gradient(b, o, adv, key):
    frozen = [list(row) for row in b["logp"]]
    out = [[0.0] * k for k in RESPONSE]
    h = 1e-5
    for i in range(N):
        for t in range(RESPONSE[i]):
            x = b[key][i][t]
            side = []
            for s in (h, -h):
                b[key][i][t] = x + s
                side.append(sum(parts(b, o, adv, [i], frozen)[:3]))
            b[key][i][t] = x
            out[i][t] = (side[0] - side[1]) / (2 * h)
    return out


def metrics(b, o, adv, ret):
    p, k, e, clipped = parts(b, o, adv, range(N), b["logp"])
    of = lambda rows: [rows[i] for i in trained(b, o)]
    n = sum(of(RESPONSE))
    d = [x - y for x, y in zip(flat(of(b["logp"])), flat(of(b["old"])))]
    if o["loss"] == "gmpo":
        rho = flat([[gmpo(x, y, a[0], o)[0]] * len(x)
                    for x, y, a in zip(of(b["logp"]), of(b["old"]), of(adv))])
    else:
        rho = flat([ratios(x, y, o["ratio"]) for x, y in zip(of(b["logp"]), of(b["old"]))])
    m = {"loss/policy_avg": p, "loss/total": p + k + e, "objective/loss": p + k + e,
         "policy/approxkl_avg": mean([x * x / 2 for x in d]), "policy/clipfrac_avg": clipped / n,
         "policy/entropy_avg": mean(flat(of(b["entropy"]))),
         "objective/entropy": -math.fsum(flat(b["old"])) / N,
         "val/ratio": mean(rho), "val/ratio_var": var(rho, False),
         "returns/mean": mean(flat(ret)), "returns/var": var(flat(ret), False)}
    k1 = [x - f for x, f in zip(flat(b["old"]), flat(b["ref"]))]
    full, rows = o["kl_estimator"] == "full", N
    if full:  # measured in the updates
        k1, rows = flat(of(b["kl"])), len(trained(b, o))
    pen = k1
    if o["kl_estimator"] in ("k2", "k3"):
        pen = [kl(o["kl_estimator"], x, f) for x, f in zip(flat(b["old"]), flat(b["ref"]))]
    m["objective/kl"], m["objective/kl_per_token"] = math.fsum(k1) / rows, mean(k1)
    m["objective/rlhf_reward"] = mean(paid(b))
    if o["kl_placement"] != "none":
        m["objective/kl_coef"] = o["kl_coef"]
        m["objective/non_score_reward"] = -o["kl_coef"] * math.fsum(pen) / rows
        m["objective/rlhf_reward"] += m["objective/non_score_reward"]
    by = [[rewards(b, o)[1][i] for i in at] for at in groups()]
    m["reward_std"] = math.sqrt(var(rewards(b, o)[1], True))
    if o["mask_truncated"] or o["mask_zero_advantage_groups"]:
        m["policy/masked_ratio"] = 1 - len(trained(b, o)) / N
    if o["loss"] == "sapo":
        del m["policy/clipfrac_avg"]
    m["frac_reward_zero_std"] = mean([float(max(g) == min(g)) for g in by])
    return m


def main():
    b = make_batch()
    for name, changes in CASES:
        o = dict(DEFAULTS, **changes)
        adv, ret = advantages(b, o)
        adv32 = [[f32(x) for x in row] for row in adv]  # the plugin hands them over as floats
        arrays = {"advantage": adv, "returns": ret}
        for key in ("logp", "entropy", "kl"):
            arrays["d_" + key] = gradient(b, o, adv32, key)
        print_case(name, dict(group_size=3, **changes), arrays, metrics(b, o, adv32, ret))


if __name__ == "__main__":
    main()
