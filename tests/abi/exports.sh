#!/bin/sh
# Every plugin exports only rlhf_plugin_v1, and imports nothing that would make a run
# irreproducible, start a process or end the current process.
set -eu
[ -z "$RLHF_SANITIZE" ] || exit 77 # sanitizers add symbols of their own
forbidden='rand|random|srand|srandom|drand48|time|gettimeofday|fork|vfork|system|popen|exit|_exit|abort|setlocale|signal'
bad=0 seen=0
for so in "$RLHF_LIB_DIR"/algos/*.so "$RLHF_LIB_DIR"/rewards/*.so "$RLHF_LIB_DIR"/models/*.so \
    "$RLHF_LIB_DIR"/sinks/*.so "$RLHF_LIB_DIR"/kernels/*.so; do
    [ -e "$so" ] || continue
    seen=$((seen + 1))
    exports=$(nm -D --defined-only "$so" | awk '{print $NF}' | sort | tr '\n' ' ')
    if [ "$exports" != "rlhf_plugin_v1 " ]; then
        echo "$so exports: $exports" >&2
        bad=1
    fi
    # the reference backend's guard ends the process of a plugin that reads device memory
    case $so in */kernels/*) continue ;; esac
    imports=$(nm -D --undefined-only "$so" | awk '{print $NF}' | sed 's/@.*//' |
        grep -Ex "$forbidden" || true)
    if [ -n "$imports" ]; then
        echo "$so imports: $imports" >&2
        bad=1
    fi
done
[ "$seen" -gt 0 ] || { echo "no plugin in $RLHF_LIB_DIR" >&2; exit 1; }
exit $bad
