#!/bin/sh
# Builds rlhf-host as its next minor version might be, for test_later.c: every struct that can grow has two
# more members, RLHF_ABI_MINOR is one more, sdk/layout.txt says so, and the host sets the members of every
# struct that it passes to a plugin. The plugins stay those of this version.
#   later.sh DIR      DIR/build/bin/rlhf-host
set -eu
dir=$1
mkdir -p "$dir/tree"
cd "$RLHF_SOURCE_DIR"
# Links keep the times of the sources, so a second build compiles only what has changed.
cp -rsfT "$PWD/sdk" "$dir/tree/sdk"
for part in CMakeLists.txt LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md Containerfile SKILL.md llms.txt \
    configs docs host kernels lib models plugins python scripts tools; do
    rm -rf "$dir/tree/${part:?}"
    cp -rs "$PWD/$part" "$dir/tree/$part"
done
mkdir -p "$dir/tree/tests/abi"
cp tests/abi/*.awk "$dir/tree/tests/abi/"
replace() { # file: with standard input, if that is another text
    cat >"$dir/new"
    if [ -L "$1" ] || ! cmp -s "$dir/new" "$1"; then
        rm -f "$1"
        mv "$dir/new" "$1"
    fi
}
for header in $(cd sdk/include && find rlhf -name '*.h' | grep -vE '/(compute|model)\.h$'); do # they have another version
    awk -f tests/abi/longer.awk "sdk/include/$header" | replace "$dir/tree/sdk/include/$header"
done
# check-abi accepts this growth of a released contract, and notes which members are new.
version=$(sed -nE 's/^#define RLHF_ABI_(MAJOR|MINOR) +([0-9]+).*/\2/p' sdk/include/rlhf/base.h | paste -sd.)
echo "released $version" | replace "$dir/tree/sdk/ABI-HISTORY"
mkdir -p "$dir/tree/tests/museum/$version"
cp sdk/layout.txt "$dir/tree/tests/museum/$version/layout.txt"
cp -f --remove-destination sdk/layout.txt "$dir/tree/sdk/layout.txt"
"$dir/tree/scripts/check-abi" --update
grep -q "^$((${version#*.} + 1)) .* uint64_t later_number" "$dir/tree/sdk/layout.txt"
replace "$dir/tree/lib/runtime/plugin/growth.c" <<SOURCE
// The host of the next minor version sets each member that a plugin of this version does not know.
#define rlhf__struct_pass later_struct_pass
#include "$PWD/lib/runtime/plugin/growth.c"
#undef rlhf__struct_pass
void rlhf__struct_pass(enum rlhf__struct which, void *p, uint32_t minor) {
    const uint32_t known = rlhf__struct_size(which, minor), all = table[which].own;
    memset((char *)p + known, 1, all - known);
    later_struct_pass(which, p, minor);
}
SOURCE
# Plugins that this target does not build are this version's.
grep -qs '^RLHF_HOST_ALONE' "$dir/build/CMakeCache.txt" ||
    "$CMAKE" -DRLHF_HOST_ALONE=ON -G Ninja -S "$dir/tree" -B "$dir/build" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O0 -w" -DRLHF_TESTS=OFF \
        -DRLHF_BENCH=OFF -DRLHF_WERROR=OFF -DRLHF_CUDA=OFF -DCMAKE_C_COMPILER="$CC" \
        ${RLHF_LAUNCHER:+"-DCMAKE_C_COMPILER_LAUNCHER=$RLHF_LAUNCHER"} >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
"$CMAKE" --build "$dir/build" --target rlhf-host >"$dir/log" 2>&1 || { tail -40 "$dir/log" >&2; exit 1; }
cp -rsn "$RLHF_BUILD_DIR/lib/rlhf/." "$dir/build/lib/rlhf/"
"$dir/build/bin/rlhf-host" --version
