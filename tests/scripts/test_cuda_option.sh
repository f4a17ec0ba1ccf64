#!/bin/sh
# Tests the values of RLHF_CUDA and the choice of nvcc. Also tests that a build without the CUDA
# backend removes the backend of an earlier build.
# $1: the source tree
set -eu
unset CUDACXX
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
configure() { "$CMAKE" -S "$1" -B "$tmp/build" -G Ninja -DRLHF_TESTS=OFF -DRLHF_CUDA="$2" >"$tmp/log" 2>&1; }
first_asked() { # the directory whose nvcc was to be taken
    head -1 "$tmp/asked" | grep -q "^$tmp/$1/nvcc" || { echo "not $1:" >&2; cat "$tmp/asked" >&2; exit 1; }
    rm -rf "$tmp/build" "$tmp/asked"
}

if configure "$1" yes; then
    echo "RLHF_CUDA=yes was let pass" >&2
    exit 1
fi
grep -q 'RLHF_CUDA is "yes", allowed are AUTO, ON, OFF' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
if CUDACXX=$tmp/none/nvcc configure "$1" AUTO; then
    echo "a CUDACXX that is not there was let pass" >&2
    exit 1
fi
grep -q "CUDACXX is \"$tmp/none/nvcc\", which is no program" "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
# A compiler named by CUDACXX is tried first, then one on PATH, and only then the one in /usr/local.
mkdir -p "$tmp/one" "$tmp/two"
printf '#!/bin/sh\necho "$0 was asked" >>"%s/asked"\nexit 1\n' "$tmp" |
    tee "$tmp/one/nvcc" >"$tmp/two/nvcc"
chmod +x "$tmp/one/nvcc" "$tmp/two/nvcc"
PATH=$tmp/one:$PATH configure "$1" ON || :
first_asked one
PATH=$tmp/one:$PATH CUDACXX=$tmp/two/nvcc configure "$1" ON || :
first_asked two
# If the compiler is broken or too old, there is a warning and a build without the backend. If the
# backend is required, this is an error.
hindered() { # nvcc's body, what is said
    mkdir -p "$tmp/three"
    printf '#!/bin/sh\n%s\n' "$1" >"$tmp/three/nvcc"
    chmod +x "$tmp/three/nvcc"
    for how in AUTO ON; do
        rm -rf "$tmp/build"
        status=0
        PATH=$tmp/three:$PATH configure "$2" "$how" || status=$?
        tr -s ' \n' ' ' <"$tmp/log" | grep -q "$3" || { cat "$tmp/log" >&2; exit 1; }
        [ "$how" = ON ] || [ $status -eq 0 ] || { cat "$tmp/log" >&2; exit 1; }
        [ "$how" = AUTO ] || [ $status -ne 0 ] || { echo "RLHF_CUDA=ON went on" >&2; exit 1; }
        [ "$how" = ON ] || grep -q 'CUDA backend: not built' "$tmp/log"
    done
    rm -rf "$tmp/build"
}
hindered 'exit 1' "$1" 'nvcc --version does not say one'
hindered 'echo "Cuda compilation tools, release 11.8, V11.8.89"' "$1" 'is of CUDA 11.8, needed is 12.0 or newer'
hindered '[ "$1" = --version ] && echo "Cuda compilation tools, release 13.0, V13.0.48"; exit $(($# != 1))' \
    "$1" 'nvcc does not compile'
old=$tmp/build/lib/rlhf/1/kernels/kernels_cuda.so
mkdir -p "$(dirname "$old")"
: >"$old"
configure "$1" OFF || { cat "$tmp/log" >&2; exit 1; }
grep -q 'CUDA backend: not built' "$tmp/log"
[ ! -e "$old" ] || { echo "$old is still there, and would be used" >&2; exit 1; }
