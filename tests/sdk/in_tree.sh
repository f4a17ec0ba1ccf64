#!/bin/sh
# `plugin new --in-tree` adds a plugin of each kind to a copy of the tree. The copy is configured,
# and the plugins and their tests are built and run. A second plugin of the same name, and a tree
# that lacks a line to write after, are refused, and nothing changes.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
host=$RLHF_BUILD_DIR/bin/rlhf-host tree=$tmp/tree log=$tmp/log
fail() {
    echo "$*" >&2
    cat "$log" >&2
    exit 1
}
quiet() { "$@" >"$log" 2>&1 || fail "failed: $*"; }
refused() { # TEXT COMMAND...
    text=$1
    shift
    if "$@" >"$log" 2>&1; then fail "not refused: $*"; fi
    grep -qF "$text" "$log" || fail "no '$text'"
}
sums() { find "$tree" -type f | sort | xargs cksum; }

mkdir "$tree"
for what in "$RLHF_SOURCE_DIR"/*; do
    case ${what##*/} in
    build | models) ;;
    *) cp -r "$what" "$tree" ;;
    esac
done
ln -s "$RLHF_SOURCE_DIR/models" "$tree/models"

sums >"$tmp/before"
refused "is not a clone of rlhf-host" "$host" plugin new reward own_words --in-tree --to "$tmp"
refused "and not a model family" "$host" plugin new model own_model --in-tree --to "$tree"
refused "has no effect with --lang c++" "$host" plugin new reward own_words --lang c++ --in-tree --to "$tree"
sed -i 's/^| write an algorithm, model or backend |/| write |/' "$tree/README.md"
sums >"$tmp/before"
refused "README.md has no line that begins with '| write an algorithm" "$host" plugin new reward own_words --in-tree --to "$tree"
sums | cmp - "$tmp/before"
cp "$RLHF_SOURCE_DIR/README.md" "$tree/README.md"

tests=
for kind in reward algo sink environment; do
    quiet "$host" plugin new $kind own_$kind --in-tree --to "$tree"
    tests="$tests test_own_$kind"
done
sums >"$tmp/before"
refused "own_reward.c' is there already" "$host" plugin new reward own_reward --in-tree --to "$tree"
sums | cmp - "$tmp/before"
for line in 'plugins/rewards/CMakeLists.txt:rlhf_add_plugin(own_reward KIND reward SOURCES own_reward.c)' \
    'tests/algos/CMakeLists.txt:rlhf_add_plugin_test(own_algo)' \
    'tests/rewards/test_reward_properties.c:    {"own_reward.so", ""},' \
    'tests/canaries/test_canaries.c:               {"environments/own_environment", ""},' \
    'README.md:| use own_algo.so, an algorithm | [own_algo](docs/algorithms/own_algo.md) |' \
    'docs/sinks/own_sink.md:# own_sink.so: what it is for, in a few words' \
    'plugins/sinks/own_sink.c:    .id = "org.rlhf-host.own_sink",'; do
    grep -qxF -- "${line#*:}" "$tree/${line%%:*}" || { echo "${line%%:*} lacks ${line#*:}" >&2; exit 1; }
done
quiet "$CMAKE" -G Ninja -S "$tree" -B "$tmp/build" -DCMAKE_C_COMPILER="$CC" -DCMAKE_BUILD_TYPE=Debug \
    -DRLHF_TESTS=ON -DRLHF_CUDA=OFF -DRLHF_BENCH=OFF
quiet "$CMAKE" --build "$tmp/build" --target $tests
quiet "$CTEST" --test-dir "$tmp/build" -R '^test_own_'
grep -q '100% tests passed, 0 tests failed out of 4' "$log" || fail "not four tests"
