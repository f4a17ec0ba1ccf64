#!/bin/sh
# Shows that the layout test can fail. A field inserted in the middle of any kind of struct must
# make it fail, and the unpatched headers must pass.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passes() { # the layout test with the headers below $1
    "$CC" -std=c11 -D_GNU_SOURCE -I"$1" "$RLHF_SOURCE_DIR/tests/abi/test_offsets.c" -lcmocka \
        -o "$tmp/offsets"
    "$tmp/offsets" >"$tmp/log" 2>&1
}
passes "$RLHF_SOURCE_DIR/sdk/include" || { cat "$tmp/log" >&2; exit 1; }
while read -r header struct; do
    rm -rf "$tmp/include"
    cp -r "$RLHF_SOURCE_DIR/sdk/include" "$tmp/include"
    # after the first line of members
    sed -i "/^\(typedef \)\?struct $struct {\$/{n;s/\$/\n    uint64_t intruder;/}" \
        "$tmp/include/rlhf/$header"
    grep -q intruder "$tmp/include/rlhf/$header" || { echo "$struct was not patched" >&2; exit 1; }
    if passes "$tmp/include"; then
        echo "a field inserted in $struct went unnoticed" >&2
        exit 1
    fi
    grep -q "^$struct: offsets.txt" "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
done <<EOF
reward.h rlhf_reward_in
algo.h rlhf_loss_in
model.h rlhf_gen_step
compute.h rlhf_compute
plugin.h rlhf_plugin
host.h rlhf_host
service.h rlhf_tokenizer_service
option.h rlhf_opt
EOF
