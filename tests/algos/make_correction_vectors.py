#!/usr/bin/env python3
"""Float64 reference of the correction for rows that an older policy sampled; writes the vectors of test_correction.

The objective is used as published, with PyTorch's derivatives, and not in the form of the plugins, which scale the
advantage that a surrogate gets. b: log-probs when the tokens were sampled; p: at the start of the phase; x: of the policy that learns;

    L = -sum_t w_t min(u_t A_t, clip(u_t, 1 - low, 1 + high) A_t),   u_t = exp(x_t - p_t),   w_t = exp(p_t - b_t)

(Hilton et al. 2022, "Batch size-invariance for policy optimization"; Fu et al. 2025, arXiv 2505.24298). w is constant.
GMPO (Zhao et al. 2025, arXiv 2507.20673) has one ratio per response, the geometric mean of its tokens' clipped ratios. Its
weight from weights per token is their geometric mean, as in verl (core_algos, geo_mean). The statistics have the definitions of verl's metrics rollout_corr/*. All inputs are exact in float32.

Needs PyTorch. Run it in this directory: python3 make_correction_vectors.py > correction_vectors.json
"""
import json

import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(29)

ROWS, TOKENS, LOW, HIGH = 6, 7, 0.2, 0.28
CASES = [(level, mode, cap, dual) for level in ("token", "sequence") for mode in ("truncate", "mask")
         for cap in (0.0, 1.05, 2.0, 5.0) for dual in (0.0, 3.0)]


def f32(x):
    """The nearest numbers that are exact in float32, as float64."""
    return x.to(torch.float32).to(torch.float64)


def clipped(x, p, a, dual):
    u = torch.exp(x - p)
    loss = torch.max(-a * u, -a * u.clamp(1 - LOW, 1 + HIGH))
    return torch.where((a < 0) & (loss > -a * dual), -a * dual, loss) if dual else loss


def raw_weight(p, b, level):
    r = p - b if level == "token" else (p - b).sum(-1, keepdim=True).expand_as(p)
    return torch.exp(r.clamp(-20, 20))


def used_weight(w, mode, cap):
    if cap == 0:
        return w
    return w.clamp(max=cap) if mode == "truncate" else torch.where(w > cap, torch.zeros_like(w), w)


def gmpo(x, p, a, used):
    """The loss with weights per token. a has one advantage for each row."""
    r = x - p
    bounded = torch.where(a[:, None] > 0, r.clamp(max=HIGH), r.clamp(min=-LOW))
    weight = used.prod(-1) ** (1 / TOKENS)
    return -(a * weight * torch.exp(bounded.mean(-1))).mean()


def statistics(p, b, w, level, mode, cap):
    """Names and values of the metrics."""
    near = w.clamp(1 / cap, cap) if cap else w
    r = p - b
    found = {"rollout_is_mean": w.mean(), "rollout_is_std": near.std(unbiased=False), "rollout_is_min": w.min(),
             "rollout_is_max": w.max(), "rollout_is_eff_sample_size": 1 / ((near / near.mean()) ** 2).mean()}
    if cap:
        high = w > cap if level == "token" else w[:, 0] > cap
        found["rollout_is_ratio_fraction_high"] = high.to(torch.float64).mean()
    if mode == "mask":
        found["rollout_rs_masked_fraction"] = (w > cap).to(torch.float64).mean() if cap else torch.tensor(0.0)
    found.update({"kl": (-r).mean(), "k3_kl": (torch.exp(r) - r - 1).mean(),
                  "chi2_token": torch.exp(2 * r).mean() - 1, "training_log_ppl": -p.mean(-1).mean(),
                  "rollout_log_ppl": -b.mean(-1).mean(), "log_ppl_diff": (b.mean(-1) - p.mean(-1)).mean()})
    return found


def main():
    b = f32(-3 * torch.rand(ROWS, TOKENS) - 0.1)
    p = f32(b + 0.4 * torch.randn(ROWS, TOKENS))
    p[1] = b[1]  # a row that the same policy sampled
    a = f32(torch.randn(ROWS, TOKENS))
    x = f32(p + 0.3 * torch.randn(ROWS, TOKENS))
    flat = lambda values: values.flatten().tolist()
    out = {"low": LOW, "high": HIGH, "sampled": flat(b), "old": flat(p), "new": flat(x), "advantage": flat(a), "cases": []}
    for level, mode, cap, dual in CASES:
        w = raw_weight(p, b, level)
        used = used_weight(w, mode, cap)
        y = x.clone().requires_grad_()
        (used * clipped(y, p, a, dual)).sum().backward()
        out["cases"].append({
            "level": level, "mode": mode, "cap": cap, "dual": dual, "weight": flat(used), "derivative": flat(y.grad),
            "metrics": {f"rollout_corr/{k}": v.item() for k, v in statistics(p, b, w, level, mode, cap).items()}})
    out["gmpo"] = []
    for mode, cap in (("truncate", 0.0), ("truncate", 1.05), ("truncate", 2.0), ("mask", 1.05), ("mask", 2.0)):
        used = used_weight(raw_weight(p, b, "token"), mode, cap)
        y = x.clone().requires_grad_()
        loss = gmpo(y, p, a[:, 0], used)
        loss.backward()
        out["gmpo"].append({"mode": mode, "cap": cap, "loss": loss.item(), "derivative": flat(y.grad)})
    print(json.dumps(out).replace('{"level"', '\n{"level"').replace('{"mode"', '\n{"mode"'))


if __name__ == "__main__":
    main()
