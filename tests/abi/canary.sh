#!/bin/sh
# Shows that scripts/check-abi can fail: any change of a declaration must make it fail, and a change of
# a comment or of line breaks must not. After a release, only additions in a later minor version are accepted.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/tests/abi"
cp -r "$RLHF_SOURCE_DIR/scripts" "$RLHF_SOURCE_DIR/sdk" "$tmp/"
cp "$RLHF_SOURCE_DIR"/tests/abi/*.awk "$tmp/tests/abi/"
echo open >"$tmp/sdk/ABI-HISTORY" # without the real releases
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
noticed algo.h 's/^\(#define RLHF_METRIC_KL .*"\)objective/\1other/'
noticed exact.h 's/^static inline double rlhf_exp(double x)/static inline double rlhf_exp(float x)/'
noticed reward.h 's/^    rlhf_str meta;.*/    rlhf_option_in meta;/' # by value, although it has a size
grep -q 'contains rlhf_option_in by value' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
passes algo.h 's|// |// Other words. |'
passes algo.h 's/^    uint32_t epochs, minibatches;/    uint32_t epochs,\n        minibatches;/'
passes reward.h 's/^\(enum rlhf_verdict {\) \(.*,\) \(.*,\) \(.*\) };/\1\n    \2\n    \3\n    \4\n};/'
passes exact.h 's/rlhf_x_exp_quick/rlhf_x_exp_first/'
passes option.h 's/RLHF_X_OPT_AT/RLHF_X_OPT_PLACE/; s/rlhf_x_opt_i32/rlhf_x_opt_int/'

# ---- a released contract ----
version=$(sed -nE 's/^#define RLHF_ABI_(MAJOR|MINOR) +([0-9]+).*/\2/p' "$tmp/sdk/include/rlhf/base.h" | paste -sd.)
major=${version%.*} now=${version#*.}
later=$((now + 7))
"$tmp/scripts/check-abi" --release >/dev/null
[ "$(cat "$tmp/sdk/ABI-HISTORY")" = "released $version" ]
cmp "$tmp/sdk/layout.txt" "$tmp/tests/museum/$version/layout.txt"
! "$tmp/scripts/check-abi" --release >"$tmp/log" 2>&1 || { echo "a version is released twice" >&2; exit 1; }
minor=$later
update() { # header, sed command: seen=1 if --update refuses the change, in minor version $minor
    cp "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1"
    sed -i "$2" "$tmp/sdk/include/rlhf/$1"
    ! cmp -s "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1" ||
        { echo "nothing in $1 was changed by $2" >&2; exit 1; }
    sed -i "s/^#define RLHF_ABI_MINOR .*/#define RLHF_ABI_MINOR $minor/" "$tmp/sdk/include/rlhf/base.h"
    cp "$tmp/tests/museum/$version/layout.txt" "$tmp/sdk/layout.txt"
    seen=0
    "$tmp/scripts/check-abi" --update >"$tmp/log" 2>&1 || seen=1
    cp "$RLHF_SOURCE_DIR/sdk/include/rlhf/$1" "$tmp/sdk/include/rlhf/$1"
}
accepted() {
    update "$@"
    [ $seen = 0 ] || { cat "$tmp/log" >&2; exit 1; }
}
refused() { # header, sed command, what the message says
    update "$1" "$2"
    [ $seen = 1 ] || { echo "in frozen $1, --update accepts $2" >&2; exit 1; }
    grep -q "$3" "$tmp/log" || { echo "the message for $2 does not say: $3" >&2; cat "$tmp/log" >&2; exit 1; }
    cmp -s "$tmp/tests/museum/$version/layout.txt" "$tmp/sdk/layout.txt" || { echo "--update wrote it anyway" >&2; exit 1; }
}
history() { # what the message says, or - for none; lines of sdk/ABI-HISTORY
    says=$1
    shift
    printf '%s\n' "$@" >"$tmp/sdk/ABI-HISTORY"
    if "$tmp/scripts/check-abi" >"$tmp/log" 2>&1; then
        [ "$says" = - ] || { echo "check-abi accepts an ABI-HISTORY with: $*" >&2; exit 1; }
    else
        grep -q -e "$says" "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
    fi
}
history 'tests/museum has a released version' open
for line in 'no line of its form' "released $version of the contract" 'released' 'open to all'; do
    history 'must begin with' "$line"
done
history 'must begin with' open "released $version"
history "tests/museum/$major.$later/layout.txt does not exist" "released $version" "released $major.$later"
mkdir "$tmp/tests/museum/$major.$later"
cp "$tmp/sdk/layout.txt" "$tmp/tests/museum/$major.$later/layout.txt"
history "RLHF_ABI_MINOR is $now, but contract $major.$later is released" "released $major.$later" "released $version"
rm -r "$tmp/tests/museum/$major.$later"
history - "released $version"

append='s/^} rlhf_sink_run;/    int64_t appended;\n&/'
accepted sink.h "$append"
[ "$(grep -c "^$later " "$tmp/sdk/layout.txt")" = 1 ] || { echo "the new member has not minor $later" >&2; exit 1; }
grep -q "^$later .* int64_t appended\$" "$tmp/sdk/layout.txt"
awk -f "$RLHF_SOURCE_DIR/lib/runtime/plugin/growth.awk" "$tmp/sdk/layout.txt" |
    awk -F'[(), ]+' -v later="$later" '
        $2 == "rlhf_sink_run" { found = NF == later + 4 && $(later + 2) == $(later + 1) && $(later + 3) == $(later + 2) + 8 }
        $2 == "rlhf_sink_phase" { same = $(later + 3) == $(later + 2) } END { exit !(found && same) }' ||
    { echo "the table of sizes is wrong" >&2; exit 1; }
# The next release has it, and the gate then compares with the next release.
cp "$RLHF_SOURCE_DIR/sdk/include/rlhf/sink.h" "$tmp/sink.h"
sed -i "$append" "$tmp/sdk/include/rlhf/sink.h"
"$tmp/scripts/check-abi" --release >/dev/null
[ "$(paste -sd, "$tmp/sdk/ABI-HISTORY")" = "released $major.$later,released $version" ]
cp "$tmp/sink.h" "$tmp/sdk/include/rlhf/sink.h"
! "$tmp/scripts/check-abi" --update >"$tmp/log" 2>&1 || { echo "a released member was removed" >&2; exit 1; }
grep -q "changed or removed: .* appended" "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
rm -r "$tmp/tests/museum/$major.$later"
echo "released $version" >"$tmp/sdk/ABI-HISTORY"
# What a released version does not have may still change. What the saved layout says is not trusted.
"$tmp/scripts/check-abi" --update
sed -i 's/^0 \(.* int64_t phases_done\)$/'"$later"' \1/' "$tmp/sdk/layout.txt"
! "$tmp/scripts/check-abi" >"$tmp/log" 2>&1 || { echo "a released member has another minor version" >&2; exit 1; }
grep -q "now of $later: .* int64_t phases_done" "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }

accepted algo.h 's/^    RLHF_SOURCE_ROLLOUT = 1,$/&\n    RLHF_SOURCE_APPENDED = 99,/'
accepted algo.h 's/^#define RLHF_NAMED_MAX .*$/&\n#define RLHF_APPENDED 1/'
accepted reward.h 's/^\(enum rlhf_verdict .*\) };/\1, RLHF_VERDICT_APPENDED = 9 };/'
accepted base.h 's/^    RLHF_E_INTERNAL = -8 .*/    RLHF_E_INTERNAL = -8, RLHF_E_APPENDED = -9/'
accepted option.h 's/^    uint64_t n_table;/&\n    uint64_t appended;/' # grows by the stride of its table
accepted compute.h 's/^    uint32_t size, flags;/    uint32_t size, flags, inserted, more;/' # not frozen
accepted base.h 's/rlhf_try_status/rlhf_status_of_try/'
accepted exact.h 's/rlhf_x_exp_quick/rlhf_x_exp_first/'
for struct in rlhf_str rlhf_rng rlhf_i64_list rlhf_f64_list rlhf_tool_call; do
    header=$(cd "$tmp/sdk/include/rlhf" && grep -l "^} $struct;" ./*.h)
    refused "$header" "s/^} $struct;/    uint64_t appended;\n&/" 'does not grow, because it has no size: .* appended$'
done
refused sink.h 's/^    int64_t phase; .*planned.*/    int64_t inserted;\n&/; s/^    int64_t phases; .*/    int64_t inserted;\n&/' 'changed or removed: .* phases$'
refused sink.h '/^    int64_t phases; /d' 'changed or removed: .* phases$'
refused sink.h 's/^    int64_t phases; /    double phases; /' 'changed or removed: .* phases$'
refused sink.h '/^} rlhf_sink_answer;/,$!s/^    uint32_t size, reserved;/    uint32_t size, given_a_meaning;/' 'changed or removed: .* reserved$'
refused host.h 's/int32_t combine);/int64_t combine);/' 'changed or removed: .*metric'
refused algo.h 's/^    RLHF_SOURCE_ROLLOUT = 1,/    RLHF_SOURCE_ROLLOUT = 9,/' 'changed or removed: .*RLHF_SOURCE_ROLLOUT = 1$'
refused algo.h 's/^#define RLHF_NAMED_MAX 8/#define RLHF_NAMED_MAX 9/' 'changed or removed: .*RLHF_NAMED_MAX 8$'
refused service.h 's|"rlhf.row/1"$|"rlhf.row/2"|' 'changed or removed: .*RLHF_SVC_ROW'
refused option.h 's/^#define RLHF_OPT_STR(T, f, def, text)/#define RLHF_OPT_STR(T, f, text)/' 'changed or removed: .*RLHF_OPT_STR(T, f, def, text)$'
refused exact.h 's/^static inline double rlhf_exp(double x)/static inline double rlhf_exp(float x)/' 'changed or removed: .*rlhf_exp(double x)$'
# the released minor version is complete
minor=$now
for change in "$append" 's/^    RLHF_RUN_FAILED = 2$/&,\n    RLHF_RUN_APPENDED = 3/' 's/^#endif$/#define RLHF_APPENDED 1\n&/' \
    's/^#endif$/static inline void rlhf_appended(void) {}\n&/' 's/^#endif$/typedef struct rlhf_new {\n    uint32_t size, number;\n} rlhf_new;\n&/'; do
    refused sink.h "$change" 'RLHF_ABI_MINOR must be greater'
done
accepted sink.h 's|^#ifndef RLHF_SINK_H|// Other words.\n&|'
accepted compute.h 's/^    uint32_t size, flags;/    uint32_t size, flags, inserted, more;/' # has another version
# exceptions
minor=$later
printf '%s\n' "released $version" "$major.$later rlhf_sink_run to show it" >"$tmp/sdk/ABI-HISTORY"
accepted sink.h 's/^    int64_t phases; /    double phases; /'
refused sink.h 's/^    int64_t phases_done; .*the same number.*/    double phases_done;/;s/^    int64_t phases_done; .*goes on.*/    double phases_done;/' 'changed or removed: .*rlhf_sink_'
printf '%s\n' "released $version" "$version rlhf_sink_run spent by the release" >"$tmp/sdk/ABI-HISTORY"
refused sink.h 's/^    int64_t phases; /    double phases; /' 'changed or removed: .* phases$'
printf '%s\n' "released $version" "$major.$later rlhf_sink another word" >"$tmp/sdk/ABI-HISTORY"
refused sink.h 's/^    int64_t phases; /    double phases; /' 'changed or removed: .* phases$'
