#!/bin/sh
# Builds the examples from the installed SDK, with CMake and with make and pkg-config, in C++11 to
# C++20. rlhf-host must describe each, and one run uses all of them together. With RLHF_PREFIX, it
# uses the SDK and the program installed there.
set -eu
case $CXX in "" | *NOTFOUND) echo "there is no C++ compiler" >&2; exit 77 ;; esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
loud() { "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }; }
prefix=${RLHF_PREFIX:-$tmp/a prefix} models=${RLHF_PREFIX:+$RLHF_PREFIX/share/rlhf/models}
[ -n "${RLHF_PREFIX-}" ] || loud "$CMAKE" --install "$RLHF_BUILD_DIR" --component sdk --prefix "$prefix"
cp -r "$prefix/share/rlhf/examples" "$tmp/mine"
flags="-Wall -Wextra -Wconversion -Werror"
for std in 11 14 17 20; do
    # standard-library code that is not inlined must not be exported
    if [ $std = 11 ]; then type=Debug; else type=Release; fi
    loud "$CMAKE" -S "$tmp/mine" -B "$tmp/build$std" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_C_FLAGS="$flags -Wpedantic" \
        -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_CXX_STANDARD=$std -DCMAKE_BUILD_TYPE=$type
    loud "$CMAKE" --build "$tmp/build$std"
    loud "$CTEST" --test-dir "$tmp/build$std" --output-on-failure
done

built="$tmp/build11"
if command -v pkg-config >/dev/null && command -v make >/dev/null; then
    pc=$(dirname "$(find "$prefix/lib" -name rlhf-sdk.pc)")
    loud env PKG_CONFIG_PATH="$pc" make -C "$tmp/mine" CC="$CC" CXX="$CXX" check
    built="$tmp/mine"
fi
names="distinct_words reinforce bigram"
if command -v rustc >/dev/null; then
    names="$names exclamations"
else
    echo "exclamations.rs was not tried: there is no rustc"
fi
only_the_entry() { # of a plugin's file
    exports=$(nm -D --defined-only "$1" | awk '{print $NF}')
    [ "$exports" = rlhf_plugin_v1 ] || { echo "$1 exports $exports" >&2; exit 1; }
}
for name in $names; do
    only_the_entry "$built/$name.so"
    only_the_entry "$tmp/build11/$name.so"
done

host=${RLHF_PREFIX:-$RLHF_BUILD_DIR}/bin/rlhf-host
[ -x "$host" ] || { echo "rlhf-host is not built: nothing was run" >&2; exit 0; }
for name in $names; do
    loud "$host" plugin info "$built/$name.so"
    grep -q org.example "$tmp/log"
    [ $name = bigram ] || loud "$host" plugin check "$built/$name.so"
done
rewards="--reward distinct_words.so"
case $names in *exclamations*) rewards="$rewards --reward exclamations.so:weight=0.1" ;; esac
mkdir "$tmp/model"
models=${models:-$RLHF_SOURCE_DIR/models}
cp "$models/policy/vocab.json" "$models/policy/merges.txt" "$tmp/model"
cat >"$tmp/model/config.json" <<'END'
{"model_type": "bigram", "vocab_size": 8192, "d_model": 16, "n_positions": 128, "eos_token_id": 0}
END
for i in 1 2 3 4 5 6 7 8; do echo '{"text": "It was a good film, and I was glad."}'; done >"$tmp/texts.jsonl"
cd "$tmp"
export RLHF_PLUGIN_PATH="$built"
model="--policy model --set policy.init=random --set compute.dtype=f32 --threads 1"
loud "$host" --algo reinforce.so $rewards $model --set batch.size=8 --set sampling.max_new_tokens=4 \
    --prompts texts.jsonl --phases 2 --out a
# Sampled log-probs equal trained ones, bit for bit.
[ "$(grep -c '"sampling/logp_difference/max": *0[,}.]' a/metrics.jsonl)" -ge 1 ] ||
    { echo "the bigram model samples other log-probs than it trains on" >&2; exit 1; }
# The model learns from 8 equal texts: its loss falls from the logarithm of the vocabulary's size.
loud "$host" --algo sft.so $model --data texts.jsonl --set optim.lr=0.1 --set optim.warmup=0 --set batch.size=8 --phases 20 --out s
tail -1 s/metrics.jsonl | sed 's/.*"objective\/loss": *\([0-9.]*\).*/\1/' |
    awk '{ if ($1 < 4) exit 0; print "the loss is still " $1 > "/dev/stderr"; exit 1 }'
