#!/bin/sh
# Uses only the installed tree, as an outside author would: `plugin new` of every kind in C and C++,
# built and tested with make and with CMake, installed and used. The prefix has a space in its name,
# and so has the directory with the plugins. With RLHF_PREFIX it uses the installation there and
# leaves it unchanged.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
prefix=${RLHF_PREFIX:-$tmp/a prefix} log="$tmp/log"
[ -n "${RLHF_PREFIX-}" ] || "$CMAKE" --install "$RLHF_BUILD_DIR" --prefix "$prefix" >"$tmp/log"
mkdir "$tmp/my work" "$tmp/home"
cd "$tmp/my work"
export PATH="$prefix/bin:$PATH" HOME="$tmp/home" CUDA_VISIBLE_DEVICES=
unset RLHF_PLUGIN_PATH XDG_DATA_HOME PKG_CONFIG_PATH CMAKE_PREFIX_PATH
fail() {
    echo "$*" >&2
    cat "$log" >&2
    exit 1
}
quiet() { "$@" >"$log" 2>&1 || fail "failed: $*"; }

# A tiny model's tokenizer, and rows.
models="$prefix/share/rlhf/models/policy"
tiny_run="--phases 1 --set batch.size=4 --set sampling.max_new_tokens=4"

use_reward() { quiet rlhf-host --algo ppo.so --reward "$1:word=the" $tiny_run --set algo.minibatches=1 --out "$2"; }
use_algo() { quiet rlhf-host --algo "$1:scale=0.5" --reward period_count.so $tiny_run --out "$2"; }
use_sink() {
    quiet rlhf-host --algo ppo.so --reward period_count.so --sink "$1:metric=objective/kl" $tiny_run --set algo.minibatches=1 --out "$2"
    grep -q '^1 ' "$2"/sinks/*/progress.txt || fail "$1 wrote nothing"
}
use_model() {
    mkdir tiny
    cp "$models/vocab.json" "$models/merges.txt" tiny/
    echo "{\"model_type\": \"$1\", \"vocab_size\": 8192, \"bos_token_id\": 0, \"eos_token_id\": 0}" >tiny/config.json
    quiet rlhf-host --algo ppo.so --reward period_count.so --policy tiny --set policy.init=random $tiny_run --set algo.minibatches=1 --out "$2"
    rm -r tiny
}
use_kernel() {
    quiet rlhf-host devices --backend "$1"
    grep -q 'not usable' "$log" && fail "$1 is not usable"
    quiet rlhf-host --algo ppo.so --reward period_count.so --policy "$tmp/model" --set policy.init=random \
        --set compute.backend="$1" --set algo.minibatches=1 $tiny_run --out "$2"
}
mkdir "$tmp/model" # for backends: the smallest model that has all parts of a decoder
cp "$models/vocab.json" "$models/merges.txt" "$tmp/model/"
echo '{"model_type": "gpt2", "vocab_size": 8192, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2, "activation_function": "relu", "bos_token_id": 0, "eos_token_id": 0}' >"$tmp/model/config.json"

# Builds a plugin of a kind in a language, as its author would.
try() {
    kind=$1 lang=$2 name=my_own_$1
    [ "$lang" = c ] || name=${name}_pp
    file=$name log="$tmp/log-$name"
    [ $kind != kernel ] || file=kernels_$name
    quiet rlhf-host plugin new $kind "$name" --lang $lang
    [ -z "$(grep -rn '@[A-Z]*@' "$name" || true)" ] || fail "a word of a template was left in $name"
    cd "$name"
    quiet sh .ci/run # make and CMake, warnings as errors, and its test with both
    grep -q '100% tests passed' "$log" || fail "the test of $name did not run"
    [ $kind = kernel ] || grep -q '^nothing found' "$log" || fail "plugin check of $name did not run"
    exports=$(nm -D --defined-only build/$file.so | awk '{print $NF}' | grep -v '^GLIBC' || true)
    case $exports in rlhf_plugin_v1) ;; *) fail "$file.so exports $exports" ;; esac
    grep -q 'CMAKE_BUILD_TYPE:STRING=RelWithDebInfo' build/CMakeCache.txt || fail "$name has no build type"
    grep -rqs -- -ffp-contract=off build/CMakeFiles build/build.ninja || fail "multiply-adds of $name may be fused"
    quiet make
    case $kind in
    model) RLHF_PLUGIN_PATH=$PWD use_model "$name" "$tmp/run-$name" ;;
    *) use_$kind "./$file.so" "$tmp/run-$name" ;;
    esac
}
all_in() { # a language
    for kind in reward algo model sink kernel; do (try $kind "$1"); done
}
all_in c &
in_c=$!
all_in c++
wait $in_c

[ -z "${RLHF_PREFIX-}" ] || exit 0
# A plugin that is installed next to rlhf-host's own plugins, with make or with CMake, is found by
# its name alone.
quiet make -C my_own_reward install
quiet "$CMAKE" --install my_own_algo/build --prefix "$prefix"
quiet "$CMAKE" --install my_own_kernel/build --prefix "$prefix"
quiet rlhf-host devices --backend my_own_kernel
grep -q 'not usable' "$log" && fail "the installed backend is not usable"
quiet rlhf-host plugin list
for name in my_own_reward my_own_algo kernels_my_own_kernel; do grep -q "$name.so" "$tmp/log" || fail "$name.so is not listed"; done
cd "$tmp"
use_reward my_own_reward.so "$tmp/run2"
quiet make -C "$tmp/my work/my_own_reward_pp" install DESTDIR="$tmp/stage area"
[ -f "$tmp/stage area$prefix/lib/rlhf/1/rewards/my_own_reward_pp.so" ] ||
    [ -n "$(find "$tmp/stage area" -name my_own_reward_pp.so)" ] || fail "DESTDIR was not heeded"
