#!/usr/bin/env python3
"""Memory by role: the estimate of a dry run next to the measured peak of the run.

usage: memory_table.py MEMORY METRICS
MEMORY: the output of --dry-run --set log.format=json; METRICS: metrics.jsonl of the same run.
"""
import json
import sys


def main():
    memory, metrics = sys.argv[1:]
    with open(memory) as lines:
        told = next(e for e in map(json.loads, lines) if e.get("event") == "memory")
    with open(metrics) as lines:
        peak = max(json.loads(line)["perf/peak_rss_mb"] for line in lines)
    roles = {}
    for buffer in told["buffers"]:
        roles.setdefault(buffer["role"], []).append((buffer["use"], buffer["bytes"] / 2**20))
    print("  memory by role, MiB, when it is most (--dry-run)")
    for role, uses in roles.items():
        parts = ", ".join(f"{use} {mib:.0f}" for use, mib in uses)
        print(f"    {role:10s} {sum(mib for _, mib in uses):7.0f}  {parts}")
    whole = told["total_bytes"] / 2**20
    print(f"    {'all told':10s} {whole:7.0f}")
    print(f"    {'measured':10s} {peak:7.0f}  {peak / 1024:.2f} GiB, told {100 * (whole / peak - 1):+.1f} %")


if __name__ == "__main__":
    main()
