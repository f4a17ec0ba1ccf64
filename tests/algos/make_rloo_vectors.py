#!/usr/bin/env python3
"""Float64 reference of rloo.so, which writes the vectors of test_rloo.

An independent implementation of docs/algorithms/rloo.md on the batch of make_batch.py. The baseline is computed as the
mean of the other responses. Derivatives are central differences. Run it in this directory:
python3 make_rloo_vectors.py > rloo_vectors.jsonl
"""
import math

from make_batch import (FINISHED, N, RESPONSE, f32, flat, groups, make_batch, mean, paid, print_case, ratios, var)

CASES = [("defaults", {}), ("kl_strong", dict(kl_coef=0.4)), ("no_kl", dict(kl_coef=0.0)),
         ("token", dict(ratio="token")), ("token_tight", dict(ratio="token", clip_range=0.05)),
         ("tight", dict(clip_range=0.02)), ("mask", dict(mask_truncated=True)),
         ("mask_token", dict(mask_truncated=True, ratio="token", kl_coef=0.0)),
         ("flat", dict(mask_zero_advantage_groups=True, kl_coef=0.0)),
         ("flat_mask_token", dict(mask_zero_advantage_groups=True, mask_truncated=True,
                                  ratio="token", kl_coef=0.0)),
         ("flat_not", dict(mask_zero_advantage_groups=True))]
DEFAULTS = dict(ratio="sequence", clip_range=0.2, kl_coef=0.05, mask_truncated=False,
                mask_zero_advantage_groups=False)


def counted(b, o):
    """The rows that count in the mean over rows."""
    total = advantages(b, o)[1]
    flat_rows = [i for at in groups() for i in at if len({total[k] for k in at}) == 1]
    return [i for i in range(N) if i not in flat_rows or not o["mask_zero_advantage_groups"]]


def trained(b, o):
    """The rows that have a loss."""
    return [i for i in counted(b, o) if FINISHED[i] or not o["mask_truncated"]]


def advantages(b, o):
    """Returns A, S, and S without the KL penalty, for every row."""
    plain = paid(b)
    total = [s - o["kl_coef"] * math.fsum(x - f for x, f in zip(xs, fs))
             for s, xs, fs in zip(plain, b["old"], b["ref"])]
    a = [0.0] * N
    for at in groups():
        for i in at:
            a[i] = total[i] - mean([total[j] for j in at if j != i])
    return a, total, plain


def policy(b, o, a, rows):
    """Loss of some rows, and the number of their tokens whose ratio no longer affects it."""
    lo, hi = 1 - o["clip_range"], 1 + o["clip_range"]
    loss, clipped = 0.0, 0
    for i in rows:
        if i not in trained(b, o):
            continue
        rho = ratios(b["logp"][i], b["old"][i], o["ratio"])
        terms = [max(-a[i] * r, -a[i] * min(max(r, lo), hi)) for r in rho]
        clipped += sum(t > -a[i] * r for t, r in zip(terms, rho))
        loss += (math.fsum(terms) if o["ratio"] == "token" else terms[0]) / len(counted(b, o))
    return loss, clipped


def gradient(b, o, a):
    out, h = [[0.0] * k for k in RESPONSE], 1e-6
    for i in range(N):
        for t in range(RESPONSE[i]):
            x = b["logp"][i][t]
            side = []
            for s in (h, -h):
                b["logp"][i][t] = x + s
                side.append(policy(b, o, a, [i])[0])
            b["logp"][i][t] = x
            out[i][t] = (side[0] - side[1]) / (2 * h)
    return out


def metrics(b, o, a, total, plain):
    loss, clipped = policy(b, o, a, range(N))
    of = lambda rows: [rows[i] for i in trained(b, o)]
    n = sum(of(RESPONSE))
    d = [x - y for x, y in zip(flat(of(b["logp"])), flat(of(b["old"])))]
    rho = flat([ratios(x, y, o["ratio"]) for x, y in zip(of(b["logp"]), of(b["old"]))])
    ret = flat([[s] * k for s, k in zip(total, RESPONSE)])
    m = {"loss/policy_avg": loss, "loss/total": loss, "objective/loss": loss,
         "policy/approxkl_avg": mean([x * x / 2 for x in d]), "policy/clipfrac_avg": clipped / n,
         "policy/entropy_avg": mean(flat(of(b["entropy"]))),
         "objective/entropy": -math.fsum(flat(b["old"])) / N,
         "val/ratio": mean(rho), "val/ratio_var": var(rho, False),
         "returns/mean": mean(ret), "returns/var": var(ret, False),
         "objective/rlhf_reward": mean(total), "reward_std": math.sqrt(var(plain, True)),
         "frac_reward_zero_std": mean([float(len({plain[i] for i in at}) == 1)
                                       for at in groups()])}
    if o["mask_truncated"] or o["mask_zero_advantage_groups"]:
        m["policy/masked_ratio"] = 1 - len(trained(b, o)) / N
    if o["kl_coef"] > 0:
        k = [x - f for x, f in zip(flat(b["old"]), flat(b["ref"]))]
        m["objective/kl"], m["objective/kl_per_token"] = math.fsum(k) / N, mean(k)
        m["objective/kl_coef"] = o["kl_coef"]
        m["objective/non_score_reward"] = -o["kl_coef"] * math.fsum(k) / N
    return m


def main():
    b = make_batch()
    for name, changes in CASES:
        o = dict(DEFAULTS, **changes)
        a, total, plain = advantages(b, o)
        a32 = [f32(x) for x in a]  # the plugin hands them over as floats
        arrays = {"advantage": [[x] * k for x, k in zip(a, RESPONSE)],
                  "returns": [[x] * k for x, k in zip(total, RESPONSE)],
                  "d_logp": gradient(b, o, a32)}
        print_case(name, dict(group_size=3, **changes), arrays, metrics(b, o, a32, total, plain))


if __name__ == "__main__":
    main()
