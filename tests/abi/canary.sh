#!/bin/sh
# Shows that scripts/check-abi can fail: any change of a declaration must make it fail, and a change of
# a comment or of line breaks must not. Once the contract is frozen, --update accepts only additions.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/tests/abi"
cp -r "$RLHF_SOURCE_DIR/scripts" "$RLHF_SOURCE_DIR/sdk" "$tmp/"
cp "$RLHF_SOURCE_DIR"/tests/abi/*.awk "$tmp/tests/abi/"
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
    grep -q '^+[0-9]* [0-9]* 8 uint64_t intruder$' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
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

# ---- a frozen contract ----
echo 'frozen: 1.0' >"$tmp/sdk/ABI-HISTORY"
update() { # header, sed command: seen=1 if --update refuses the change
    cp "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1"
    sed -i "$2" "$tmp/sdk/include/rlhf/$1"
    sed -i 's/^#define RLHF_ABI_MINOR .*/#define RLHF_ABI_MINOR 7/' "$tmp/sdk/include/rlhf/base.h"
    ! cmp -s "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1" ||
        { echo "nothing in $1 was changed by $2" >&2; exit 1; }
    cp "$RLHF_SOURCE_DIR/sdk/layout.txt" "$tmp/sdk/layout.txt"
    seen=0
    "$tmp/scripts/check-abi" --update >"$tmp/log" 2>&1 || seen=1
    cp "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1"
}
accepted() {
    update "$@"
    [ $seen = 0 ] || { cat "$tmp/log" >&2; exit 1; }
}
refused() {
    update "$@"
    [ $seen = 1 ] || { echo "in frozen $1, --update accepts $2" >&2; exit 1; }
    cmp -s "$RLHF_SOURCE_DIR/sdk/layout.txt" "$tmp/sdk/layout.txt" || { echo "--update wrote it anyway" >&2; exit 1; }
}
accepted sink.h 's/^} rlhf_sink_run;/    int64_t appended;\n&/'
[ "$(grep -c '^7 ' "$tmp/sdk/layout.txt")" = 1 ] || { echo "the new member has not minor 7" >&2; exit 1; }
grep -q '^7 .* int64_t appended$' "$tmp/sdk/layout.txt"
awk -f "$RLHF_SOURCE_DIR/lib/runtime/plugin/growth.awk" "$tmp/sdk/layout.txt" |
    awk -F'[(), ]+' '$2 == "rlhf_sink_run" { found = NF == 11 && $3 == $9 && $10 == $3 + 8 }
        $2 == "rlhf_sink_phase" { same = $3 == $10 } END { exit !(found && same) }' ||
    { echo "the table of sizes is wrong" >&2; exit 1; }
accepted algo.h 's/^    RLHF_SOURCE_ROLLOUT = 1,$/&\n    RLHF_SOURCE_APPENDED = 99,/'
accepted algo.h 's/^#define RLHF_NAMED_MAX 8$/&\n#define RLHF_APPENDED 1/'
accepted compute.h 's/^    uint32_t size, flags;/    uint32_t size, flags, inserted, more;/' # not frozen
refused sink.h 's/^    int64_t phase; .*planned.*/    int64_t inserted;\n&/; s/^    int64_t phases; .*/    int64_t inserted;\n&/'
refused sink.h '/^    int64_t phases; /d'
refused sink.h 's/^    int64_t phases; /    double phases; /'
refused host.h 's/int32_t combine);/int64_t combine);/'
refused algo.h 's/^    RLHF_SOURCE_ROLLOUT = 1,/    RLHF_SOURCE_ROLLOUT = 9,/'
echo '1.7 rlhf_sink_run to show it' >>"$tmp/sdk/ABI-HISTORY"
accepted sink.h 's/^    int64_t phases; /    double phases; /'
