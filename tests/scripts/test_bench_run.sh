#!/usr/bin/env bash
# Tests bench/run with programs that print the output of rlhf-bench and its peers: shortest, median,
# ratio, and the lines for missing peers.
#   test_bench_run.sh SOURCE_DIR
set -euo pipefail
bench=$1/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/bin" "$work/venv/bin"
cat >"$work/build/bin/rlhf-bench" <<'EOT'
#!/usr/bin/env bash
n=$(cat "$0.n" 2>/dev/null || echo 0)
echo $((n + 1)) >"$0.n"
ms=(300.0 100.0 110.0)
echo "cpu: some processor"
echo "product peak, f32                                   334 GFLOP/s"
echo "training step, 16 x 64 tokens                     ${ms[n]} ms, 1184 tokens/s, 879 GFLOP/s, 80.5 % of peak"
EOT
cat >"$work/venv/bin/python" <<'EOT'
#!/usr/bin/env bash
case "$*" in
*compiled*) echo "no compiler here"; exit 77 ;;
*) echo "training step, 16 x 64 tokens, eager               200.0 ms, 99 tokens/s" ;;
esac
EOT
chmod +x "$work/build/bin/rlhf-bench" "$work/venv/bin/python"
python3 -B "$bench/run" "$work/build" --venv "$work/venv" --only train --rounds 3 --out "$work/table" >/dev/null 2>&1
expect() { grep -qF -- "$1" "$work/table" || { echo "bench/run: no line with: $1"; cat "$work/table"; exit 1; }; }
expect "cpu: some processor"
expect "product peak in f32: 334 GFLOP/s"
expect "| training step 16 x 64, rlhf-host | 100.0 ms | 110.0 ms | 3 |"
expect "| PyTorch, eager | 200.0 ms | 200.0 ms | 3 | 2.00, 1.82 |"
expect "| PyTorch, torch.compile | not measured: no compiler here |"
python3 -B "$bench/run" "$work/build" --only wrong >/dev/null 2>"$work/said" && exit 1
grep -q "allowed are train, decode, grpo, dpo, sft, ppo" "$work/said"
