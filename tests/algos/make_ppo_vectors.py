#!/usr/bin/env python3
"""Float64 reference of ppo.so, which writes the vectors of test_vectors.

An independent implementation of docs/algorithms/ppo.md in plain Python. Derivatives are central
differences of the loss instead of formulas, to reveal mistakes in hand-written derivatives.
Run it in this directory: python3 make_ppo_vectors.py > ppo_vectors.jsonl
"""
import math

from make_batch import (MAX_LEN, N, RESPONSE, f32, flat, groups, kl, make_batch, mean, paid,
                        print_case, ratios, var)

DEFAULTS = dict(
    advantage="gae", gamma=1.0, advantage_eps=1e-4, advantage_std="unbiased", group_size=1,
    kl_placement="reward", kl_estimator="k1", kl_coef=0.05, whiten_rewards=False,
    whiten_advantages="auto", whiten_scope="batch", whiten_form="rsqrt", whiten_eps=1e-8,
    normalize_scores=False, clip_range=0.2, clip_range_high=-1.0, dual_clip=0.0, ratio="token",
    aggregation="token", value_coef=0.1, value_clip=0.2, entropy_coef=0.0, **{"lambda": 0.95})

CASES = [
    ("defaults", {}),
    ("gae_discounted", dict(gamma=0.97, **{"lambda": 0.5})),
    ("one_step", dict(advantage="one_step")),
    ("broadcast_reward", dict(advantage="broadcast_reward", gamma=0.99)),
    ("sequence", dict(advantage="sequence")),
    ("sequence_biased", dict(advantage="sequence", advantage_std="biased", advantage_eps=0.01)),
    ("reward_to_go", dict(advantage="reward_to_go")),
    ("reinforce_pp", dict(advantage="reward_to_go", whiten_advantages="on", kl_coef=0.2)),
    ("reinforce_pp_discounted", dict(advantage="reward_to_go", whiten_advantages="on", gamma=0.9,
                                     whiten_scope="minibatch", whiten_form="std")),
    ("group", dict(advantage="group", group_size=3)),
    ("group_biased", dict(advantage="group", group_size=3, advantage_std="biased",
                          kl_placement="loss")),
    ("group_mean", dict(advantage="group_mean", group_size=3, kl_placement="none")),
    ("group_whitened", dict(advantage="group", group_size=3, whiten_advantages="on")),
    ("kl_reward_k2", dict(kl_estimator="k2", kl_coef=0.3)),
    ("kl_reward_k3", dict(kl_estimator="k3", kl_coef=0.3)),
    ("kl_loss_k1", dict(kl_placement="loss", kl_estimator="k1", kl_coef=0.3)),
    ("kl_loss_k2", dict(kl_placement="loss", kl_estimator="k2", kl_coef=0.3)),
    ("kl_loss_k3", dict(kl_placement="loss", kl_estimator="k3", kl_coef=0.3)),
    ("kl_loss_full", dict(kl_placement="loss", kl_estimator="full", kl_coef=0.8)),
    ("kl_none", dict(kl_placement="none")),
    ("whiten_rewards", dict(whiten_rewards=True)),
    ("whiten_rewards_std", dict(whiten_rewards=True, whiten_form="std", whiten_eps=0.05)),
    ("whiten_eps", dict(whiten_eps=0.5)),
    ("whiten_advantages_off", dict(whiten_advantages="off")),
    ("normalize_scores", dict(normalize_scores=True, whiten_advantages="off")),
    ("clip_asymmetric", dict(clip_range=0.1, clip_range_high=0.28)),
    ("dual_clip", dict(clip_range=0.1, dual_clip=1.3, whiten_advantages="off")),
    ("ratio_sequence", dict(ratio="sequence")),
    ("ratio_sequence_group", dict(ratio="sequence", advantage="group", group_size=3,
                                  aggregation="sequence")),
    ("ratio_sequence_mean", dict(ratio="sequence_mean", clip_range=0.01, clip_range_high=0.02,
                                 advantage="group", group_size=3, aggregation="sequence")),
    ("aggregation_sequence", dict(aggregation="sequence", entropy_coef=0.02)),
    ("aggregation_max_len", dict(aggregation="max_len", entropy_coef=0.02)),
    ("aggregation_dapo", dict(aggregation="dapo")),
    ("aggregation_grpo", dict(aggregation="grpo")),
    ("aggregation_bnpo", dict(aggregation="bnpo")),
    ("aggregation_dr_grpo", dict(aggregation="dr_grpo")),
    ("value_unclipped", dict(value_clip=0.0, value_coef=0.5)),
    ("value_tight", dict(value_clip=0.05, value_coef=1.0)),
    ("entropy", dict(entropy_coef=0.1)),
    ("openai_sentiment", dict(whiten_rewards=True, whiten_scope="minibatch", kl_coef=0.15)),
    ("gpt2_sentiment", dict(advantage="one_step", kl_placement="loss", kl_estimator="full",
                            kl_coef=0.8, whiten_scope="minibatch", whiten_form="std",
                            clip_range=0.3, value_coef=0.15, value_clip=0.0, entropy_coef=0.01,
                            normalize_scores=True)),
    ("modular_critic_free", dict(advantage="sequence", advantage_eps=1e-8, ratio="sequence",
                                 kl_coef=0.1, aggregation="sequence")),
    ("deepseek_grpo", dict(advantage="group", group_size=3, advantage_eps=1e-8,
                           kl_placement="loss", kl_estimator="k3", kl_coef=0.04,
                           aggregation="grpo")),
]

def unflat(xs):
    it = iter(xs)
    return [[next(it) for _ in range(k)] for k in RESPONSE]


def whiten(rows, o, shift):
    xs = flat(rows)
    m = mean(xs)
    if o["whiten_form"] == "rsqrt":
        s = math.sqrt(var(xs, False) + o["whiten_eps"])
    else:
        s = math.sqrt(var(xs, True)) + o["whiten_eps"]
    return unflat([(x - m) / s + (0 if shift else m) for x in xs])


def critic(o):
    return o["advantage"] in ("gae", "one_step", "broadcast_reward")


def normalized(xs, o, scale):
    if max(xs) == min(xs):
        return [0.0] * len(xs)
    s = math.sqrt(var(xs, o["advantage_std"] == "unbiased")) + o["advantage_eps"]
    return [(x - mean(xs)) / (s if scale else 1) for x in xs]


def scored(b, o):
    """Scores and token rewards, normalized on request by mean and std of the rows' total rewards."""
    m, s = (mean(paid(b)), math.sqrt(var(paid(b), True)) + 1e-5) if o["normalize_scores"] else (0, 1)
    return [(x - m) / s for x in b["score"]], [[x / s for x in row] for row in b["token_reward"]]


def advantages(b, o):
    score, r = scored(b, o)
    for i in range(N):
        for t in range(RESPONSE[i]):
            if o["kl_placement"] == "reward":
                r[i][t] -= o["kl_coef"] * kl(o["kl_estimator"], b["old"][i][t], b["ref"][i][t])
            if o["advantage"] == "broadcast_reward" or t == RESPONSE[i] - 1:
                r[i][t] += score[i]
    if o["whiten_rewards"]:
        r = whiten(r, o, False)
    if o["advantage"] == "reward_to_go":
        adv = ret = [[math.fsum(o["gamma"] ** (s - t) * r[i][s] for s in range(t, RESPONSE[i]))
                      for t in range(RESPONSE[i])] for i in range(N)]
    elif critic(o):
        adv = [[0.0] * k for k in RESPONSE]
        g, l = (1, 0) if o["advantage"] == "one_step" else (o["gamma"], o["lambda"])
        for i in range(N):
            v = b["value_old"][i] + [0.0]
            delta = [r[i][t] + g * v[t + 1] - v[t] for t in range(RESPONSE[i])]
            for t in range(RESPONSE[i]):  # the definition, not the recurrence
                adv[i][t] = math.fsum((g * l) ** (s - t) * delta[s] for s in range(t, RESPONSE[i]))
        ret = [[a + v for a, v in zip(ra, rv)] for ra, rv in zip(adv, b["value_old"])]
    else:
        total = [math.fsum(row) for row in r]
        if o["advantage"] == "sequence":
            a = normalized(total, o, True)
        else:
            a = [0.0] * N
            for at in groups():
                for i, x in zip(at, normalized([total[i] for i in at], o, o["advantage"] == "group")):
                    a[i] = x
        adv = [[a[i]] * RESPONSE[i] for i in range(N)]
        ret = [[total[i]] * RESPONSE[i] for i in range(N)]
    if o["whiten_advantages"] == "on" or (o["whiten_advantages"] == "auto" and critic(o)):
        raw_returns = ret
        adv = whiten(adv, o, True)
        ret = raw_returns
    return adv, ret


def parts(b, o, adv, ret, rows):
    """(policy, value, kl, entropy) loss of some rows, and clipped shares of tokens and values."""
    agg = {"grpo": "sequence", "bnpo": "token", "dapo": "token", "dr_grpo": "max_len"}
    agg = agg.get(o["aggregation"], o["aggregation"])
    tokens = sum(RESPONSE)
    lo, hi = 1 - o["clip_range"], 1 + (o["clip_range"] if o["clip_range_high"] < 0
                                       else o["clip_range_high"])
    policy = value = kls = entropy = 0.0
    clipped = value_clipped = 0
    for i in rows:
        w = {"token": 1 / tokens, "sequence": 1 / (N * RESPONSE[i]), "max_len": 1 / (N * MAX_LEN)}[agg]
        rhos = ratios(b["logp"][i], b["old"][i], o["ratio"])
        for t in range(RESPONSE[i]):
            a, rho = adv[i][t], rhos[t]
            pg1, pg2 = -a * rho, -a * min(max(rho, lo), hi)
            pg, cut = max(pg1, pg2), pg2 > pg1
            if o["dual_clip"] and a < 0 and pg > -a * o["dual_clip"]:
                pg, cut = -a * o["dual_clip"], True
            policy += w * pg
            clipped += cut
            entropy -= w * o["entropy_coef"] * b["entropy"][i][t]
            if o["kl_placement"] == "loss":
                k = (b["kl"][i][t] if o["kl_estimator"] == "full"
                     else kl(o["kl_estimator"], b["logp"][i][t], b["ref"][i][t]))
                kls += w * o["kl_coef"] * k
            if critic(o):
                v, v0, R, e = b["value"][i][t], b["value_old"][i][t], ret[i][t], o["value_clip"]
                err = (v - R) ** 2
                err2 = (min(max(v, v0 - e), v0 + e) - R) ** 2 if e else err
                value += o["value_coef"] / 2 / tokens * max(err, err2)
                value_clipped += err2 > err
    return policy, value, kls, entropy, clipped, value_clipped


def gradient(b, o, adv, ret, key):
    out = [[0.0] * k for k in RESPONSE]
    h = 1e-5
    for i in range(N):
        for t in range(RESPONSE[i]):
            x = b[key][i][t]
            side = []
            for s in (h, -h):
                b[key][i][t] = x + s
                side.append(sum(parts(b, o, adv, ret, [i])[:4]))
            b[key][i][t] = x
            out[i][t] = (side[0] - side[1]) / (2 * h)
    return out


def metrics(b, o, adv, ret):
    p, v, k, e, clipped, value_clipped = parts(b, o, adv, ret, range(N))
    n = sum(RESPONSE)
    d = [x - y for x, y in zip(flat(b["logp"]), flat(b["old"]))]
    m = {"loss/policy_avg": p, "loss/total": p + v + k + e, "objective/loss": p + v + k + e,
         "policy/approxkl_avg": mean([x * x / 2 for x in d]), "policy/clipfrac_avg": clipped / n,
         "policy/entropy_avg": mean(flat(b["entropy"])),
         "objective/entropy": -math.fsum(flat(b["old"])) / N,
         "returns/mean": mean(flat(ret)), "returns/var": var(flat(ret), False)}
    rho = flat([ratios(x, y, o["ratio"]) for x, y in zip(b["logp"], b["old"])])
    m["val/ratio"], m["val/ratio_var"] = mean(rho), var(rho, False)
    k1 = [x - f for x, f in zip(flat(b["old"]), flat(b["ref"]))]
    pen = k1 = k1 if o["kl_estimator"] != "full" else flat(b["kl"])
    if o["kl_estimator"] in ("k2", "k3"):
        pen = [kl(o["kl_estimator"], x, f) for x, f in zip(flat(b["old"]), flat(b["ref"]))]
    m["objective/kl"], m["objective/kl_per_token"] = math.fsum(k1) / N, mean(k1)
    m["objective/rlhf_reward"] = mean(paid(b))
    if o["kl_placement"] != "none":
        m["objective/kl_coef"] = o["kl_coef"]
        m["objective/non_score_reward"] = -o["kl_coef"] * math.fsum(pen) / N
        m["objective/rlhf_reward"] += m["objective/non_score_reward"]
    plain = [s + math.fsum(r) for s, r in zip(*scored(b, o))]
    m["reward_std"] = math.sqrt(var(plain, True))
    together = o["advantage"] == "sequence"
    if o["group_size"] > 1 or together:
        by = [plain] if together else [[plain[i] for i in at] for at in groups()]
        m["frac_reward_zero_std"] = mean([float(max(g) == min(g)) for g in by])
    if critic(o):
        err = mean([(x - y) ** 2 for x, y in zip(flat(b["value"]), flat(ret))])
        m.update({"loss/value_avg": v / o["value_coef"], "val/vpred": mean(flat(b["value"])), "val/error": err,
                  "val/clipfrac": value_clipped / n, "val/mean": mean(flat(b["value_old"])),
                  "val/var": var(flat(b["value_old"]), False),
                  "val/var_explained": 1 - err / var(flat(ret), False)})
    return m


def main():
    b = make_batch()
    for name, changes in CASES:
        o = dict(DEFAULTS, **changes)
        adv, ret = advantages(b, o)
        # the plugin hands advantages and returns over as floats
        adv32 = [[f32(x) for x in row] for row in adv]
        ret32 = [[f32(x) for x in row] for row in ret]
        arrays = {"advantage": adv, "returns": ret}
        for key in ("logp", "entropy", "kl", "value"):
            arrays["d_" + key] = gradient(b, o, adv32, ret32, key)
        print_case(name, changes, arrays, metrics(b, o, adv32, ret32))


if __name__ == "__main__":
    main()
