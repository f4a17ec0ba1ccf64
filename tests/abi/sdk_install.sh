#!/bin/sh
# Installs only the SDK (component sdk), as on a machine where plugins are built without rlhf-host.
# Builds the examples out of tree, with CMake and with one pkg-config command, and opens them with
# rlhf-host.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$CMAKE" --install "$RLHF_BUILD_DIR" --component sdk --prefix "$tmp/prefix" >"$tmp/log"
[ -e "$tmp/prefix/include/rlhf/draft/iteration.h" ] || { echo "the drafts were not installed" >&2; exit 1; }
flags="-Wall -Wextra -Wpedantic -Wconversion -Werror"
for name in gold baseline; do
    "$CMAKE" -G Ninja -S "$tmp/prefix/share/rlhf/examples/$name" -B "$tmp/$name" -DCMAKE_PREFIX_PATH="$tmp/prefix" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release >"$tmp/log"
    "$CMAKE" --build "$tmp/$name" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
    "$CMAKE" --install "$tmp/$name" --prefix "$tmp/theirs" >"$tmp/log"
done
reward=$(find "$tmp/theirs" -path '*/rlhf/1/rewards/gold.so')
[ -n "$reward" ] || { echo "gold.so was not installed where plugins lie" >&2; exit 1; }
exports=$(nm -D --defined-only "$reward" | awk '{print $NF}')
[ "$exports" = rlhf_plugin_v1 ] || { echo "gold.so exports $exports" >&2; exit 1; }

pc=$(dirname "$(find "$tmp/prefix" -name rlhf-sdk.pc)")
if command -v pkg-config >/dev/null; then
    cflags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags rlhf-sdk)
    "$CC" -std=c11 $cflags -shared -fPIC -fvisibility=hidden -Wl,-z,defs \
        -o "$tmp/by_hand.so" "$tmp/prefix/share/rlhf/examples/gold/gold.c"
    case ${CXX:-} in "" | *NOTFOUND) ;; *)
        "$CXX" -std=c++20 -Wall -Wextra -Werror $cflags -shared -fPIC -fvisibility=hidden -Wl,-z,defs \
            -o "$tmp/by_hand_cc.so" "$tmp/prefix/share/rlhf/templates/reward.cc" ;;
    esac
    PKG_CONFIG_PATH=$pc pkg-config --variable=plugindir rlhf-sdk | grep -q '/rlhf/1$'
fi

host=$RLHF_BUILD_DIR/bin/rlhf-host
[ -x "$host" ] || { echo "rlhf-host is not built: plugin info was not tried" >&2; exit 0; }
[ -z "$RLHF_SANITIZE" ] || exit 0 # the examples were built without
"$host" plugin info "$reward" >"$tmp/info"
grep -q org.example.gold "$tmp/info"
grep -q rare "$tmp/info"
