#!/bin/sh
# Shows that scripts/check-abi can fail: any change of a declaration must make it fail, and a change of
# a comment or of line breaks must not.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/tests/abi"
cp -r "$RLHF_SOURCE_DIR/scripts" "$RLHF_SOURCE_DIR/sdk" "$tmp/"
cp "$RLHF_SOURCE_DIR/tests/abi/sdk.txt" "$tmp/tests/abi/"
"$tmp/scripts/check-abi" >/dev/null
change() { # header, sed command: a header with this change
    cp "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1"
    sed -i "$2" "$tmp/sdk/include/rlhf/$1"
    ! cmp -s "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1" ||
        { echo "nothing in $1 was changed by $2" >&2; exit 1; }
    seen=0
    "$tmp/scripts/check-abi" >"$tmp/log" 2>&1 || seen=1
    cp "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1"
}
noticed() {
    change "$@"
    [ $seen = 1 ] || { echo "in $1, $2 went unnoticed" >&2; exit 1; }
}
passes() {
    change "$@"
    [ $seen = 0 ] || { cat "$tmp/log" >&2; exit 1; }
}
# a field after the first line of members
while read -r header struct; do
    noticed "$header" "/^\(typedef \)\?struct $struct {\$/{n;s/\$/\n    uint64_t intruder;/}"
    grep -q '^+uint64_t intruder;' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
done <<EOF
reward.h rlhf_reward_in
algo.h rlhf_loss_in
model.h rlhf_gen_step
compute.h rlhf_compute
plugin.h rlhf_plugin
host.h rlhf_host
service.h rlhf_tokenizer_service
option.h rlhf_opt
environment.h rlhf_episode_out
EOF
noticed algo.h 's/uint32_t epochs, minibatches;/uint32_t minibatches, epochs;/'
noticed algo.h 's/^    double temperature; /    float temperature; /'
noticed algo.h 's/^    RLHF_PLAN_STALE = /    RLHF_PLAN_OTHER = /'
noticed algo.h 's/#define RLHF_NAMED_MAX 8/#define RLHF_NAMED_MAX 9/'
noticed sink.h '/^    uint32_t n_metrics/d'
noticed host.h 's/int32_t combine);/int64_t combine);/'
noticed host.h 's/^static inline void rlhf_metric_last(const rlhf_host \*host/static inline void rlhf_metric_last(rlhf_host *host/'
noticed rng.h 's/^} rlhf_rng;/} rlhf_random;/'
passes algo.h 's|// |// Other words. |'
passes algo.h 's/^    uint32_t epochs, minibatches;/    uint32_t epochs,\n        minibatches;/'
