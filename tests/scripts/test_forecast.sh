#!/bin/sh
# bench/forecast: its numbers are those worked out by hand, from runs with round numbers, and bad input
# is refused in one sentence.
#   test_forecast.sh SOURCE
set -eu
forecast=$(cd "$1" && pwd)/bench/forecast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run DIR ROWS ROLLOUT UPDATE: 3 phases; the first is slow and does not count
run() {
    mkdir -p "$1"
    echo "{\"batch\": {\"size\": $2}, \"parallel\": {\"shards\": 1}, \"algo\": {\"minibatches\": 2, \"epochs\": 1}}" >"$1/config.json"
    echo '{"policy": {"parameters": 1048576}}' >"$1/manifest.json"
    for more in 9 0 1; do
        jq -nc "{\"time/rollout\": ($3 + $more), \"time/reward\": ($3 / 2), \"time/update\": $4,
            \"time/training\": ($3 * 1.5 + $4 + $more + 0.5), \"perf/rollout_model_tokens_per_s\": (1000 / ($3 + $more))}"
    done >"$1/metrics.jsonl"
}
run a 8 1 4
run b 16 2 7

# 16 rows: 2 + 1 + 7 + 0.5 s alone. 2 ranks have 8 rows each; 4 MiB / 2 over 8 MB/s take 0.262144 s,
# in 2 windows with 0.25 ms, twice per phase; the 1000 tokens of a phase 3 (0.004 + 0.002) + 0.008 s.
"$forecast" b a --network 8MB,1ms --ranks 1,2 --layers 1 >out
tr -s ' ' <out >got
cat >want <<'END'
ranks draw reward compute reduce spread gather other hidden phase s rows/s efficiency
 1 2 1 7 0 0 0 0.5 0 10.5 1.52 1
 2 1 0.5 4 0.525 0.525 0.026 0.5 0.394 6.68 2.39 0.786
END
diff want got

# 4 rows for each of 2 ranks on one machine: no less than 8 rows take, twice, at half the rate.
"$forecast" a b --network 8MB,1ms --ranks 2 --ranks-per-host 2 --rows 4 --per-rank >out
tr -s ' ' <out >got
cat >want <<'END'
ranks draw reward compute reduce spread gather other phase s rows/s efficiency
 2 2 1 8 1.05 1.05 0.026 1 14.1 0.566 0.425
END
diff want got

# refuses WORDS ARGUMENTS...: exit status 2, and the last line of errors has the words
refuses() {
    words=$1
    shift
    status=0
    "$forecast" "$@" >out 2>err || status=$?
    [ $status = 2 ] && tail -1 err | grep -q -- "$words" && [ ! -s out ] || {
        echo "forecast $*: status $status, not \"$words\"" >&2
        cat err >&2
        exit 1
    }
}
refuses 'not RATE,LATENCY' a --network 10Gbit
refuses '"0" is not an integer from 1' a --network 1gbit,1us --ranks 1,0
refuses '"2" is not a number from 0 to 1' a --network 1gbit,1us --layers 2
refuses 'a directory of a run is needed' missing --network 1gbit,1us
refuses 'there are 16' a b --network 1gbit,1us --ranks 17
refuses 'have the same batch.size' a a --network 1gbit,1us
sed -i '2,$d' b/metrics.jsonl
refuses 'fewer than 2 phases' b --network 1gbit,1us
sed -i 's/"minibatches": 2/"minibatches": 4/' a/config.json
run b 16 2 7
refuses 'differ in more than batch.size' a b --network 1gbit,1us
sed -i 's/"shards": 1/"shards": 4/' b/config.json
refuses 'without parallel.shards' b --network 1gbit,1us
echo ok
