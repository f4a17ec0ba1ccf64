# Sourced by the tests of this folder: the launchers whose collectives were built.
#
#   each_launcher        names, as words: openmpi mpich
#   start NAME N CMD...  runs CMD as N ranks; the output of all is in $work/out, the status in $status
#   gpu_host             makes a program with an emulated GPU, $gpu_host
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
lib=$RLHF_BUILD_DIR/lib/rlhf/1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A separate session directory, because other jobs share Open MPI's directory in /tmp and remove it.
export TMPDIR=$work
mkdir "$work/ompi.$(hostname).$(id -u)"

launcher_of() {
    case $1 in
    openmpi) command -v mpirun.openmpi ;;
    mpich) command -v mpiexec.mpich ;;
    esac
}

each_launcher() {
    for name in openmpi mpich; do
        if [ -f "$lib/collectives/collective_$name.so" ] && launcher_of $name >/dev/null; then echo $name; fi
    done
}

start() {
    launcher=$(launcher_of "$1")
    processes=$2
    shift 2
    status=0
    timeout -k 5 "${limit:-60}" "$launcher" -n "$processes" "$@" </dev/null >"$work/out" 2>&1 || status=$?
}

# sh -c "$alone" sh CMD... gives each process a separate session directory. Processes of Open MPI that
# another MPI started would otherwise create and remove the same directory at the same time.
alone='export TMPDIR=$(mktemp -d); exec "$@"'

fail() {
    printf 'FAILED: %s (status %s)\n' "$*" "$status" >&2
    cat "$work/out" >&2
    exit 1
}

# Checks that the output contains a sentence exactly once.
says() {
    [ "$(grep -c -- "$1" "$work/out")" = 1 ] || fail "the output should have once: $1"
}

# small_model DIR: makes a model with several blocks of parameters.
small_model() {
    mkdir "$1"
    cp "$RLHF_BUILD_DIR/share/rlhf/models/policy/vocab.json" "$RLHF_BUILD_DIR/share/rlhf/models/policy/merges.txt" "$1"
    cat >"$1/config.json" <<'END'
{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 8192, "n_positions": 64,
 "n_embd": 64, "n_layer": 2, "n_head": 2, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02,
 "activation_function": "gelu_new", "bos_token_id": 0, "eos_token_id": 0}
END
}

# gpu_host: sets gpu_host to a program whose kernels_cuda.so is the emulated backend. RLHF_FAKE_CUDA
# describes the machine (tests/cuda/fake_runtime.h).
gpu_host() {
    there=$work/gpu/lib/rlhf/1
    mkdir -p "$work/gpu/bin" "$there/kernels"
    cp "$RLHF_BUILD_DIR/bin/rlhf-host" "$work/gpu/bin/"
    ln -s "$RLHF_BUILD_DIR/share" "$work/gpu/share"
    ln -s "$lib"/kernels/*.so "$there/kernels/"
    for k in algos models rewards sinks collectives; do ln -s "$lib/$k" "$there/"; done
    ln -sf "$RLHF_BUILD_DIR/tests/cuda/kernels_cuda_emu.so" "$there/kernels/kernels_cuda.so"
    gpu_host=$work/gpu/bin/rlhf-host
    export CUDA_VISIBLE_DEVICES=0,1,2,3 # needed so that the program looks for a backend
}

# Prints hashes of the files that a run leaves, without times.
left() {
    find "$1"/checkpoints/latest/ -name '*.safetensors' | sort | while read -r file; do
        echo "${file#"$1"} $(sha256sum <"$file")"
    done
    for file in metrics samples; do
        [ ! -f "$1/$file.jsonl" ] || sed -E 's/"[^"]*(time|perf|waiting)[^"]*": [^,}]*//g' "$1/$file.jsonl"
    done
}

launchers=$(each_launcher)
if [ -z "$launchers" ]; then
    echo "skipped: no collective was built, or its launcher is missing (libopenmpi-dev openmpi-bin)"
    exit 77
fi
