#!/bin/sh
# Called by test_museum.c, in a directory with a model and prompts.txt: museum.sh MUSEUM. Runs the binaries of
# MUSEUM with $HOST: plugins of each kind that were built with an earlier version of the contract. `plugin
# check` finds nothing in them, and training and playing with them, and with a reward that calls all services,
# gives the same weights, whichever compiler made them. Models and kernels are not here, because their contract
# is 0.x.
set -eu
museum=$1
ran=0
for prompt in 'It was' 'The film' 'I think' 'The actors in it'; do
    echo "{\"prompt\": \"$prompt\", \"answer\": \"yes\", \"n\": 3, \"x\": 0.5, \"ok\": true, \"steps\": [{\"text\": \"a\"}, 7]}"
done >rows.jsonl
for folder in "$museum"/*/*/; do
    folder=${folder%/}
    name=$(echo "${folder#"$museum"/}" | tr / -)
    version=$(basename "$(dirname "$folder")")
    case $(basename "$folder") in
    "$(uname -m)"-*) ;;
    *) echo "$name: not run, this machine is $(uname -m)"; continue ;;
    esac
    # Those who can change a plugin's file could change what it does, so the host refuses other people's files.
    mkdir "$name"
    cp "$folder"/*.so "$name/"
    chmod 755 "$name" "$name"/*.so
    for plugin in reward algo sink environment curriculum; do
        "$HOST" plugin check "$name/$plugin.so" >log 2>&1 || { echo "$name/$plugin.so:" >&2; cat log >&2; exit 1; }
    done
    phases="--set run.phases=2 --set checkpoint.every=1"
    common="--policy model --set policy.init=random --set optim.lr=0.01 $phases"
    # shellcheck disable=SC2086
    "$HOST" $common --prompts prompts.txt --reward "$name/reward.so:word=a" --algo "$name/algo.so" --sink "$name/sink.so" \
        --set sampling.max_new_tokens=8 --set batch.size=12 --set run.dir="$name-train" >log 2>&1 ||
        { echo "$name:" >&2; cat log >&2; exit 1; }
    # shellcheck disable=SC2086
    "$HOST" $common --algo grpo.so --env "$name/environment.so:most=9" --sink "$name/sink.so" \
        --set sampling.max_new_tokens=4 --set batch.size=8 --set algo.group_size=4 --set episodes.turns=3 \
        --set run.dir="$name-play" >log 2>&1 || { echo "$name:" >&2; cat log >&2; exit 1; }
    ! grep -q 'sink.0 failed' log || { cat log >&2; exit 1; }
    # the default policy, because the services have models of its vocabulary
    # shellcheck disable=SC2086
    "$HOST" $phases --algo "$name/curriculum.so" --prompts rows.jsonl --reward "$name/services.so" \
        --set sampling.max_new_tokens=4 --set batch.size=4 --set run.dir="$name-served" >log 2>&1 ||
        { echo "$name:" >&2; cat log >&2; exit 1; }
    for what in train play served; do
        sum=$(sha256sum <"$name-$what/checkpoints/000002/model.safetensors")
        [ -e "sum-$version-$what" ] || echo "$sum" >"sum-$version-$what"
        [ "$(cat "sum-$version-$what")" = "$sum" ] || { echo "$name: other weights than another compiler's ($what)" >&2; exit 1; }
    done
    ran=$((ran + 1))
    echo "$name: ok"
done
[ $ran -gt 0 ] || { echo "no binary is for this machine"; exit 77; }
