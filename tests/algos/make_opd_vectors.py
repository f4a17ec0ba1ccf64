#!/usr/bin/env python3
"""Float64 reference of opd.so, which writes the vectors of test_opd.

An independent implementation of docs/algorithms/opd.md on the batch of make_batch.py, in which `ref` is the teacher.
Derivatives are central differences. For divergences over the vocabulary, the values are those of the kl head, which
tests/oracle compares with PyTorch and TRL. Run it in this directory:
python3 make_opd_vectors.py > opd_vectors.jsonl
"""
import math

from make_batch import (FINISHED, N, RESPONSE, f32, flat, make_batch, mean, print_case)

CASES = [("defaults", {}), ("forward", dict(divergence="forward")),
         ("js", dict(divergence="js", beta=0.3)), ("sequence", dict(aggregation="sequence")),
         ("unit", dict(logprob_temperature="unit")), ("support", dict(logprob_support="sampled")),
         ("mask", dict(mask_truncated=True)), ("sampled", dict(divergence="sampled")),
         ("tight", dict(divergence="sampled", clip_range=0.05)),
         ("sampled_sequence", dict(divergence="sampled", aggregation="sequence")),
         ("sampled_mask", dict(divergence="sampled", mask_truncated=True, aggregation="sequence"))]
DEFAULTS = dict(divergence="reverse", aggregation="token", clip_range=0.2, mask_truncated=False)


def trained(o):
    return [i for i in range(N) if FINISHED[i] or not o["mask_truncated"]]


def weight(o, i):
    if o["aggregation"] == "token":
        return 1 / sum(RESPONSE[k] for k in trained(o))
    return 1 / (N * RESPONSE[i])


def gaps(b):
    """log q - log p of the sampled tokens, of the policy that sampled them."""
    return [[f - x for f, x in zip(fs, xs)] for fs, xs in zip(b["ref"], b["old"])]


def losses(b, o, a):
    """Each row's loss, and the number of tokens whose gradient the clip removed."""
    out, clipped = [0.0] * N, 0
    for i in trained(o):
        if o["divergence"] != "sampled":
            out[i] = weight(o, i) * math.fsum(b["kl"][i])
            continue
        terms = []
        for t in range(RESPONSE[i]):
            rho = math.exp(b["logp"][i][t] - b["old"][i][t])
            kept = min(max(rho, 1 - o["clip_range"]), 1 + o["clip_range"])
            terms.append(max(-a[i][t] * rho, -a[i][t] * kept))
            clipped += terms[-1] > -a[i][t] * rho
        out[i] = weight(o, i) * math.fsum(terms)
    return out, clipped


def gradient(b, o, a, key):
    out, h = [[0.0] * k for k in RESPONSE], 1e-6
    for i in range(N):
        for t in range(RESPONSE[i]):
            x, side = b[key][i][t], []
            for s in (h, -h):
                b[key][i][t] = x + s
                side.append(losses(b, o, a)[0][i])
            b[key][i][t] = x
            out[i][t] = (side[0] - side[1]) / (2 * h)
    return out


def metrics(b, o, a):
    of = lambda key: flat([b[key][i] for i in trained(o)])
    rows, clipped = losses(b, o, a)
    m = {"objective/loss": math.fsum(rows)}
    if o["divergence"] == "sampled":
        m["policy/clipfrac_avg"] = clipped / len(of("old"))
    else:
        m["opd/divergence"] = mean(of("kl"))
    m["opd/kl_sampled"] = -mean(flat([a[i] for i in trained(o)]))
    m["opd/teacher_logp"] = mean(of("ref"))
    m["policy/entropy_avg"] = mean(of("entropy"))
    if o["mask_truncated"]:
        m["policy/masked_ratio"] = 1 - len(trained(o)) / N
    return m


def main():
    b = make_batch()
    a = gaps(b)
    a32 = [[f32(x) for x in row] for row in a]  # the plugin hands them over as floats
    for name, changes in CASES:
        o = dict(DEFAULTS, **changes)
        arrays = {"advantage": a, "returns": a, "d_logp": gradient(b, o, a32, "logp"),
                  "d_kl": gradient(b, o, a32, "kl")}
        print_case(name, changes, arrays, metrics(b, o, a32))


if __name__ == "__main__":
    main()
