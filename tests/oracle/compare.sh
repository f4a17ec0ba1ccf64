#!/bin/sh
# compare.sh IMPORTS SCRIPT ARGUMENT...: runs a Python script of this folder in an empty directory, to compare the program
# with other projects. Skipped (77) if RLHF_PYTHON cannot run IMPORTS. Python's messages are shown if the script fails.
set -eu
python=${RLHF_PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export HF_HUB_OFFLINE=1 HF_HOME="$dir/hub" HF_DATASETS_DISABLE_PROGRESS_BARS=1 TOKENIZERS_PARALLELISM=false
export TRL_EXPERIMENTAL_SILENCE=1 PYTHONDONTWRITEBYTECODE=1
"$python" -c "$1" 2>/dev/null || {
    echo "skipped: $python cannot run: $1 (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
script=$here/$2
shift 2
mkdir "$dir/work"
cd "$dir/work"
n=$#
while [ "$n" -gt 0 ]; do # the argument WORK is this directory
    if [ "$1" = WORK ]; then set -- "$@" "$PWD"; else set -- "$@" "$1"; fi
    shift
    n=$((n - 1))
done
"$python" -W ignore "$script" "$@" 2>"$dir/log" || {
    cat "$dir/log"
    exit 1
}
