#!/bin/sh
# What an outsider does: install the SDK, copy the templates, build them out of tree, test them and
# show them to rlhf-host. Also pkg-config's view of the same.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$CMAKE" --install "$RLHF_BUILD_DIR" --component sdk --prefix "$tmp/prefix" >"$tmp/log"
cp -r "$tmp/prefix/share/rlhf/templates" "$tmp/mine"
[ -e "$tmp/prefix/include/rlhf/draft/iteration.h" ] || { echo "the drafts were not installed" >&2; exit 1; }
flags="-Wall -Wextra -Wpedantic -Wconversion -Werror"
"$CMAKE" -G Ninja -S "$tmp/mine" -B "$tmp/build" -DCMAKE_PREFIX_PATH="$tmp/prefix" \
    -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release >"$tmp/log"
"$CMAKE" --build "$tmp/build" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
(cd "$tmp/build" && "$CTEST" --output-on-failure) >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
grep -q '100% tests passed' "$tmp/log"
"$CMAKE" --install "$tmp/build" --prefix "$tmp/theirs" >"$tmp/log"
reward=$(find "$tmp/theirs" -path '*/rlhf/0/rewards/my_reward.so')
[ -n "$reward" ] || { echo "my_reward.so was not installed where plugins lie" >&2; exit 1; }
exports=$(nm -D --defined-only "$reward" | awk '{print $NF}')
[ "$exports" = rlhf_plugin_v0 ] || { echo "my_reward.so exports $exports" >&2; exit 1; }

pc=$(dirname "$(find "$tmp/prefix" -name rlhf-sdk.pc)")
if command -v pkg-config >/dev/null; then
    cflags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags rlhf-sdk)
    "$CC" -std=c11 $cflags -shared -fPIC -fvisibility=hidden -Wl,-z,defs \
        -o "$tmp/by_hand.so" "$tmp/mine/reward.c"
    PKG_CONFIG_PATH=$pc pkg-config --variable=plugindir rlhf-sdk | grep -q '/rlhf/0$'
fi

host=$RLHF_BUILD_DIR/bin/rlhf-host
[ -x "$host" ] || { echo "rlhf-host is not built: plugin info was not tried" >&2; exit 0; }
[ -z "$RLHF_SANITIZE" ] || exit 0 # the templates were built without
"$host" plugin info "$reward" >"$tmp/info"
grep -q org.example.my_reward "$tmp/info"
grep -q word "$tmp/info"
