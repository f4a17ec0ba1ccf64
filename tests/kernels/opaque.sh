#!/bin/sh
# opaque.sh: checks that a host or a model plugin cannot dereference device memory. The compiler
# must reject each of these bodies, and must accept the correct one.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

compiles() {
    {
        echo '#include <rlhf/compute.h>'
        echo "float f(rlhf_dev p, uint64_t i);"
        echo "float f(rlhf_dev p, uint64_t i) { $1 }"
    } >"$work/body.c"
    "$CC" -std=c11 -Wall -Wextra -Werror -I "$RLHF_SOURCE_DIR/sdk/include" -c "$work/body.c" \
        -o "$work/body.o" 2>"$work/errors"
}

refused() {
    if compiles "$1"; then
        echo "compiles, but must not: $1" >&2
        bad=1
    fi
}

if ! compiles 'return (float)(rlhf_dev_at(p, 4 * i) == p);'; then
    echo 'rlhf_dev_at does not compile:' >&2
    cat "$work/errors" >&2
    bad=1
fi
refused '(void)i; return (float)*p;'
refused 'return (float)p[i];'
refused 'return (float)(p + i == p);'
refused 'p++; return (float)i;'
refused 'const float *x = p; return x[i];'
refused 'char *x = p; return x[i];'
exit $bad
