#!/usr/bin/env python3
"""Writes cost_vectors.txt: the cost of a phase, computed from the formulas of docs/planning-scale.md
without the program, in float64. test_cost.c compares the program with it.

    python3 tests/scale/cost_vectors.py            (in the source directory; no package is needed)
"""
import json
import os
from math import ceil, floor

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = "draw reward passes compute tree reduce step spread gather other hidden".split()


def along(points, x):
    """Seconds at x on a polyline, which is level below its first point. Above its last point, it
    keeps the slope between that point and the largest point with at most a quarter of its x (or the first point)."""
    if not points:
        return 0.0
    first, last = points[0], points[-1]
    if x <= first[0]:
        return first[1]
    if len(points) == 1:
        return first[1] * x / first[0]
    if x > last[0]:
        low = max([p for p in points if p[0] <= last[0] / 4] or [first])
        return last[1] + (last[1] - low[1]) / (last[0] - low[0]) * (x - last[0])
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x <= x1:
            return y0 + (y1 - y0) / (x1 - x0) * (x - x0)


def kept_nodes(shards, ranks):
    """The largest number of nodes that a rank still holds after it has added, bottom up, all that it can."""
    each, most = shards // ranks, 0
    for r in range(ranks):
        # (level, index) of each leaf; a right child is added to its left sibling, and a node without
        # a right sibling in the whole tree becomes its own parent
        have = {(0, i) for i in range(r * each, (r + 1) * each)}
        width, level = shards, 0
        while width > 1:
            for left in range(0, width, 2):
                pair = {(level, left)} | ({(level, left + 1)} if left + 1 < width else set())
                if pair <= have:
                    have = (have - pair) | {(level + 1, left // 2)}
            width, level = (width + 1) // 2, level + 1
        most = max(most, len(have))
    return most


def waiting_sums(shards, ranks):
    """The most sums that wait on a rank while it computes another shard."""
    each, most = shards // ranks, 0
    for r in range(ranks):
        for done in range(1, each):
            # the nodes that the shards done so far leave, as kept_nodes finds them
            have, width, level = {(0, r * each + i) for i in range(done)}, shards, 0
            while width > 1:
                for left in range(0, width, 2):
                    pair = {(level, left)} | ({(level, left + 1)} if left + 1 < width else set())
                    if pair <= have:
                        have = (have - pair) | {(level + 1, left // 2)}
                width, level = (width + 1) // 2, level + 1
            most = max(most, len(have))
    return most


def leaves(lengths, units, shards):
    """Tokens of each leaf: a unit belongs to the leaf in which its middle token lies."""
    out, before, total = [0.0] * shards, 0.0, sum(lengths)
    at = 0
    while at < len(lengths):
        n = sum(lengths[at:at + units])
        out[floor(shards * (before + n / 2) / total)] += n
        before += n
        at += units
    return out


def forecast(f, ranks, per_host, rows):
    run, machine, net = f["run"], f["machine"], f["network"]
    N, group, M = run["parameters"], run["group"], run["minibatches"]
    steps = M * run["epochs"]
    S = run["shards"] or ranks
    here = min(ranks, per_host)
    slow = here if machine["cores_shared"] else 1
    B, mean = machine["copy_bytes_per_s"], sum(machine["lengths"]) / len(machine["lengths"])
    own = ceil((rows // group) / ranks) * group
    scaled = rows / machine["rows"]
    learn = lambda tokens: along(machine["learn"], tokens)
    each = int(rows // M)
    slowest, longest, average = [], [], []
    for k in range(M):
        lengths = [machine["lengths"][(k * each + i) % len(machine["lengths"])] for i in range(each)]
        together = run["whole_groups"] == 2 or run["whole_groups"] == 1 and each / group >= S
        units = group if together else 1
        leaf = leaves(lengths, units, S)
        share = [leaf[r * (S // ranks):(r + 1) * (S // ranks)] for r in range(ranks)]
        seconds = [sum(learn(t) for t in s if t) for s in share]
        worst = seconds.index(max(seconds))
        slowest.append(seconds[worst])
        longest.append(sum(share[worst]))
        average.append(sum(lengths) / ranks)
    c = dict.fromkeys(PARTS, 0.0)
    c["draw"] = slow * along(machine["draw"], own)
    c["reward"] = slow * machine["reward_s"] * (own / machine["rows"] if run["reward_dealt"] else scaled)
    c["passes"] = slow * machine["passes_s"] * learn(own * mean) / learn(machine["rows"] * mean)
    c["compute"] = slow * steps * sum(slowest) / M
    c["tree"] = slow * steps * (S / ranks - 1) * 12 * N / B
    part = (ranks - 1) / ranks
    c["step"] = slow * steps * (machine["step_s"] / ranks + 4 * N * part / B + machine["pack_s"])
    c["other"] = (slow * machine["other_s"] * own / machine["rows"] +
                  machine["fixed_s"] * max(1, slow / machine["threads"]))
    sent = 0.0
    if ranks > 1:
        W, a = net["bytes_per_s"] * net["ranks_per_host"] / here, net["latency_s"]
        windows, nodes = ceil(N / (262144 * ranks)), kept_nodes(S, ranks)
        way = part * 4 * N / W
        c["reduce"] = steps * (way * nodes + windows * a / 4 + slow * 12 * N * part / ranks / B)
        c["spread"] = steps * (way + windows * a / 4)
        c["gather"] = 3 * (32 * rows * mean / W + a * ranks) + steps * 2 * a * ranks
        sent = steps * part * 4 * N * (nodes + 1) + 3 * 32 * rows * mean * part
        if run["overlaps"]:
            part_of = c["compute"] / steps / (S / ranks)
            if run["microbatch_tokens"]:
                part_of = min(part_of, slow * learn(run["microbatch_tokens"]))
            of_layers = 1 - run["tied_share"]
            all_windows = N / 262144 / ranks
            k = int(of_layers * all_windows)
            if k:
                reduced, spread = (k / all_windows * c[name] / steps for name in ("reduce", "spread"))
                c["hidden"] = (1 - net["slowed"]) * (k - 1) / k * (steps * min(reduced, 2 / 3 * of_layers * part_of) +
                                                                   (steps - 1) * min(spread, of_layers * part_of / 3))
    moments = run["moments"]
    memory = (machine["memory_bytes"] - part * machine["memory_moments_bytes"] -
              part * machine["memory_undo_bytes"] * moments / (1 + moments) +
              machine["memory_rows_bytes"] * (scaled - 1) + 4 * N * waiting_sums(S, ranks) +
              min(16 * 1024 * 1024, part * 4 * N))
    total = sum(c.values()) - 2 * c["hidden"]
    return c, total, sum(longest) / sum(average) - 1, memory, sent


def efficiency(f, ranks, per_host, rows):
    machines = ceil(ranks / per_host) if f["machine"]["cores_shared"] else ranks
    alone = json.loads(json.dumps(f))
    alone["run"]["shards"] = 1
    return (rows / forecast(f, ranks, per_host, rows)[1] / machines /
            (rows / forecast(alone, 1, 1, rows)[1]))


def main():
    cases = {"ppo.json": [(1, 1, 64), (2, 1, 64), (2, 2, 64), (4, 4, 64), (8, 1, 64), (16, 4, 256),
                          (64, 1, 64), (1024, 1, 4096)],
             "grpo.json": [(1, 1, 96), (2, 1, 96), (4, 2, 96), (6, 6, 192), (12, 4, 384)]}
    with open(os.path.join(HERE, "cost_vectors.txt"), "w") as out:
        out.write("# file ranks per_host rows " + " ".join(PARTS) +
                  " total imbalance memory sent efficiency; by cost_vectors.py\n")
        for name, layouts in cases.items():
            with open(os.path.join(HERE, name)) as file:
                f = json.load(file)
            for ranks, per_host, rows in layouts:
                c, total, imbalance, memory, sent = forecast(f, ranks, per_host, rows)
                numbers = [c[p] for p in PARTS] + [total, imbalance, memory, sent,
                                                   efficiency(f, ranks, per_host, rows)]
                out.write(f"{name} {ranks} {per_host} {rows} " +
                          " ".join(repr(float(x)) for x in numbers) + "\n")


if __name__ == "__main__":
    main()
