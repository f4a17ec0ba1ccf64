#!/bin/sh
# Two plugins linked into one program, each with its own entry (RLHF_ENTRY), in C and in C++.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
include=$RLHF_SOURCE_DIR/sdk/include templates=$RLHF_SOURCE_DIR/sdk/templates
cat >"$tmp/main.c" <<'END'
#include <rlhf/plugin.h>
#include <stdio.h>
extern const rlhf_bundle *my_reward(void), *my_algo(void);
static int is(const rlhf_bundle *b, uint32_t kind, const char *id) {
    const rlhf_plugin *p = b->plugins[0];
    return b->abi_major == RLHF_ABI_MAJOR && b->abi_minor == RLHF_ABI_MINOR && b->n_plugins == 1 &&
           p->kind == kind && strcmp(p->id, id) == 0 && p->ops;
}
int main(void) {
    int ok = is(my_reward(), RLHF_KIND_REWARD, "org.example.my_reward") &&
             is(my_algo(), RLHF_KIND_ALGO, "org.example.my_algo");
    puts(ok ? "both" : "not both");
    return !ok;
}
END
link() { # compiler, suffix, flags...
    compiler=$1 suffix=$2
    shift 2
    for name in my_reward my_algo; do
        "$compiler" "$@" -I"$include" -DRLHF_ENTRY=$name -c "$templates/${name#my_}.$suffix" -o "$tmp/$name.o"
    done
    "$CC" -std=c11 -I"$include" -c "$tmp/main.c" -o "$tmp/main.o"
    "$compiler" "$tmp/main.o" "$tmp/my_reward.o" "$tmp/my_algo.o" -lm -o "$tmp/program"
    [ "$("$tmp/program")" = both ] || { echo "the program of $suffix does not have both" >&2; exit 1; }
}
link "$CC" c -std=c11
case $CXX in "" | *NOTFOUND) ;; *) link "$CXX" cc -std=c++20 -Wno-missing-field-initializers ;; esac
