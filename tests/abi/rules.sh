#!/bin/sh
# Rules of the contract that a compiler does not check.
set -eu
cd "$RLHF_SOURCE_DIR"
status=0
refuse() { # what, matching lines
    if [ -n "$2" ]; then
        printf 'rule of the contract broken: %s\n%s\n' "$1" "$2" >&2
        status=1
    fi
}
lines() { # pattern, where...
    pattern=$1
    shift
    grep -rnE --include='*.c' --include='*.h' -e "$pattern" "$@" || true
}
code='host plugins kernels sdk'
# A struct that has grown must still be accepted: a size is a lower bound from RLHF_SIZE_TO, read by
# rlhf_copy_in. Code must not compare it with a sizeof.
op='(==|!=|<=|>=|<|>)'
refuse "a size is compared with sizeof; read the struct with rlhf_copy_in" "$(
    lines "(->|\\.)size *$op *\\(?(\\(uint32_t\\))? *sizeof" $code
    lines "\\bsizeof\\b[^;,]* $op [a-z_]+(->|\\.)size\\b" $code
    lines "(->|\\.)size *(==|!=) *[^ ]" $code | grep -vE 'batch\.size' || true
)"
refuse "the least that rlhf_copy_in takes is a sizeof; say RLHF_SIZE_TO(struct, last field it began with)" "$(
    lines "copy_in\\(.*, *(\\(uint32_t\\) *)?sizeof[^,]*, [^,]*, *(\\(uint32_t\\) *)?sizeof [a-z]+[,)]" $code
)"
# The minimum size is that of the first version, with which test_growth.c builds plugins.
while read -r struct member; do
    case $struct in '#'*) continue ;; esac
    refuse "$struct began with $member as its last member (tests/abi/first.txt)" "$(
        lines "RLHF_SIZE_TO\\($struct," $code |
            grep -v "RLHF_SIZE_TO($struct, $member)" || true
    )"
done <tests/abi/first.txt
# C++ reserves names with two underscores, and these headers are compiled as C++ too.
refuse "a double underscore in a public header" "$(
    grep -rnE '[A-Za-z0-9]__[A-Za-z0-9]' sdk/include sdk/templates plugins/models/transformer/core.h \
        plugins/models/transformer/decoder.h | grep -v __cplusplus || true
)"
exit $status
