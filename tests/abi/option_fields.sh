#!/bin/sh
# In an option table, a field whose type its macro does not allow must not compile, and the error
# must show the required type. Tested in C11, and in C++11 to C++20.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/good.c" <<'SOURCE'
#include <rlhf/reward.h>
enum mode { FAST, SLOW };
struct config {
    double gain;
    int64_t count;
    const char *word;
    const char *file;
    int32_t loud;
    enum mode mode;
    rlhf_i64_list layers;
    rlhf_f64_list factors;
    struct {
        double gain;
    } inner;
};
static const char *const modes[] = {"fast", "slow", NULL};
static const rlhf_opt options[] = {
    RLHF_OPT_F64(struct config, gain, 1, 0, 1, ""),
    RLHF_OPT_F64_ABOVE(struct config, inner.gain, 1, 0, 1, ""),
    RLHF_OPT_I64(struct config, count, 1, 0, 1, ""),
    RLHF_OPT_I64_OR_NULL(struct config, count, 1, 0, 1, ""),
    RLHF_OPT_STR(struct config, word, NULL, ""),
    RLHF_OPT_PATH(struct config, file, NULL, ""),
    RLHF_OPT_BOOL(struct config, loud, 0, ""),
    RLHF_OPT_ENUM(struct config, mode, 0, modes, ""),
    RLHF_OPT_I64_LIST(struct config, layers, 0, 1, ""),
    RLHF_OPT_F64_LIST(struct config, factors, 0, 1, ""),
};
const rlhf_opt *table(void);
const rlhf_opt *table(void) { return options; }
SOURCE
compile() { # file, compiler and flags...
    file=$1
    shift
    "$@" -Wall -Wextra -Wno-missing-field-initializers -Werror -I"$RLHF_SOURCE_DIR/sdk/include" -fsyntax-only "$file" >"$tmp/said" 2>&1
}
refuse() { # what the line must say, sed command, compiler and flags...
    want=$1
    change=$2
    shift 2
    sed "$change" "$tmp/good.c" >"$tmp/bad.c"
    ! cmp -s "$tmp/good.c" "$tmp/bad.c" || { echo "nothing was changed by $change" >&2; exit 1; }
    ! compile "$tmp/bad.c" "$@" || { echo "compiles after $change: $*" >&2; exit 1; }
    grep -q "$want" "$tmp/said" || { echo "after $change, $* does not say \"$want\":" >&2; cat "$tmp/said" >&2; exit 1; }
}
each() { # compiler and flags...
    compile "$tmp/good.c" "$@" || { echo "a sound table does not compile: $*" >&2; cat "$tmp/said" >&2; exit 1; }
    refuse 'must be a double' 's/^    double gain/    float gain/' "$@"
    refuse 'must be a double' 's/^        double gain/        int64_t gain/' "$@"
    refuse 'must be an int64_t' 's/int64_t count/int32_t count/' "$@"
    refuse 'must be an int64_t' 's/int64_t count/double count/' "$@"
    refuse 'must be an int32_t' 's/int32_t loud/int64_t loud/' "$@"
    refuse 'must be an int32_t' 's/int32_t loud/float loud/' "$@"
    refuse 'must be an int32_t' 's/enum mode mode/char mode/' "$@"
    refuse 'must be a const char \*' 's/const char \*word/char word[8]/' "$@"
    refuse 'must be a const char \*' 's/const char \*file/int64_t file/' "$@"
    refuse 'must be an rlhf_i64_list' 's/rlhf_i64_list layers/rlhf_f64_list layers/' "$@"
    refuse 'must be an rlhf_f64_list' 's/rlhf_f64_list factors/double factors/' "$@"
}
each "$CC" -std=c11 -Wpedantic
[ -n "${CXX:-}" ] || exit 0
case $CXX in *NOTFOUND) exit 0 ;; esac
# Designated initializers are C++20; before it, compilers accept them as an extension.
each "$CXX" -std=gnu++11 -x c++
compile "$tmp/good.c" "$CXX" -std=c++20 -Wpedantic -x c++ || { cat "$tmp/said" >&2; exit 1; }
refuse 'must be a double' 's/^    double gain/    float gain/' "$CXX" -std=c++20 -x c++
