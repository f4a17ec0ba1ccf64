#!/usr/bin/env python3
"""Checks the expectations of tests/algos/test_kto.c: compares them with the float64 losses of TRL's KTO trainer for
given log-probs.

Usage: kto_loss.py TEST_KTO.C

Reads the arrays and options of the test and compares its expected losses, reference points and
derivatives with those of KTOTrainer._compute_loss. TRL's method gets the log-probs instead of a model's
outputs and is otherwise unchanged.
"""
import re
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from trl import KTOTrainer

torch.set_default_dtype(torch.float64)


class One:
    """Replaces accelerate's Accelerator with a single process."""

    device = torch.device("cpu")

    def gather_for_metrics(self, x):
        return x


def array(text, name):
    body = re.search(name + r"\[[^=]*=\s*\{([^;]*)\};", text).group(1)
    return [float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", body.replace("f", ""))]


class Model(torch.nn.Module):
    """Returns log-probs by sequence; the fused head omits a row's first token."""

    is_gradient_checkpointing = False

    def __init__(self, matched, mismatched):
        super().__init__()
        self.of = {0: matched, 1: mismatched}

    def forward(self, input_ids, labels, **_):
        logp = self.of[int(input_ids[0, 0])] * (labels != -100)
        logp = logp[:, 1:]
        return SimpleNamespace(log_probs=logp, entropy=logp.detach(), mean_logits=logp.detach())


def loss(case, rows, logp, ref):
    width = max(len(r) for r in logp)

    def pad(which, source):
        out = torch.zeros(len(which), width)
        for k, i in enumerate(which):
            out[k, : len(source[i])] = torch.tensor(source[i])
        return out

    own = [i for i, label in enumerate(rows["label"]) if label >= 0]
    other = [i for i, label in enumerate(rows["label"]) if label < 0]

    def mask(which):
        out = torch.zeros(len(which), width, dtype=torch.long)
        for k, i in enumerate(which):
            out[k, rows["prompt"][i] : len(logp[i])] = 1
        return out

    x = pad(own, logp).requires_grad_()
    policy, reference = Model(x, pad(other, logp)), Model(pad(own, ref), pad(other, ref))
    batch = {
        "input_ids": torch.zeros(len(own), width, dtype=torch.long),
        "attention_mask": torch.ones(len(own), width), "completion_mask": mask(own),
        "KL_input_ids": torch.ones(len(other), width, dtype=torch.long),
        "KL_attention_mask": torch.ones(len(other), width), "KL_completion_mask": mask(other),
        "label": torch.tensor([rows["label"][i] == 1 for i in own]),
    }
    t = SimpleNamespace(
        model=policy, ref_model=reference, accelerator=One(), calculate_KL=not case[3],
        loss_type="apo_zero_unpaired" if case[3] else "kto",
        beta=case[0], desirable_weight=case[1], undesirable_weight=case[2], aux_loss_enabled=False,
        precompute_ref_logps=False, _tp_size=1, _total_train_tokens=0,
        args=SimpleNamespace(gradient_checkpointing_kwargs=None),
        _metrics={"train": defaultdict(list)})
    t._compute_kl_logps = lambda model, b: KTOTrainer._compute_kl_logps(t, model, b)
    value = KTOTrainer._compute_loss(t, policy, batch, False)
    value.backward()
    first = [x.grad[k, rows["prompt"][i]].item() for k, i in enumerate(own)]
    return [value.item(), t._metrics["train"]["kl"][0]] + first


def main():
    text = open(sys.argv[1]).read()
    offset = [int(x) for x in array(text, "offset")]
    rows = {"prompt": [int(x) for x in array(text, "prompt_len")],
            "label": [int(x) for x in array(text, "label")]}

    def ragged(name):
        flat = array(text, name)
        return [flat[a:b] for a, b in zip(offset, offset[1:])]

    own = sum(label >= 0 for label in rows["label"])
    # the test's numbers are floats
    single = lambda r: [torch.tensor(v, dtype=torch.float32).double().tolist() for v in r]
    ref = single(ragged("ref"))
    config, want = array(text, "config"), array(text, "want")
    worst = 0
    for k in range(len(config) // 5):
        case = config[5 * k : 5 * k + 5]
        logp = single(ragged("logp_below" if case[4] else "logp"))
        got = loss(case, rows, logp, ref)
        said = want[k * (2 + own) : (k + 1) * (2 + own)]
        print(", ".join(f"{x:.15g}" for x in got))
        worst = max([worst] + [abs(a - b) for a, b in zip(got, said)]
                    + ([] if len(said) == len(got) else [float("inf")]))
    print("largest difference", worst)
    sys.exit(not worst < 1e-12)


main()
