#!/bin/sh
# The installed tree works wherever it is: by DESTDIR, moved to a place with spaces, through a link,
# for another user, and for plugins that are built against it there.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
export CUDA_VISIBLE_DEVICES= HOME="$tmp"
unset XDG_DATA_HOME RLHF_PLUGIN_PATH
DESTDIR="$tmp/stage" "$CMAKE" --install "$RLHF_BUILD_DIR" --prefix /opt/rlhf >"$tmp/log"
[ -x "$tmp/stage/opt/rlhf/bin/rlhf-host" ] || { echo "DESTDIR was not heeded" >&2; exit 1; }
mkdir "$tmp/a new place"
mv "$tmp/stage/opt/rlhf" "$tmp/a new place/the program"
place="$tmp/a new place/the program"
ln -s "$place/bin/rlhf-host" "$tmp/rlhf"
if grep -rlI -e "$tmp/stage" -e "$RLHF_BUILD_DIR" "$place" >"$tmp/names"; then
    echo "these name the place they were built or staged in:" >&2
    cat "$tmp/names" >&2
    exit 1
fi
works() { # how it is called
    (cd / && "$@" plugin list) >"$tmp/list" 2>&1 || { cat "$tmp/list" >&2; exit 1; }
    grep -q 'ppo.so' "$tmp/list"
    (cd / && "$@" --version --json) | grep -qF "\"$place/lib" || { echo "$*: other plugins than its own" >&2; exit 1; }
    (cd / && "$@" generate --prompt It --max-new 2 --seed 1) >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
}
works "$place/bin/rlhf-host"
works "$tmp/rlhf"
# another user: nobody, where this is root
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    works setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$tmp/rlhf"
fi
# a plugin is built against it there, found by the link on PATH
mkdir "$tmp/bin" "$tmp/work"
ln -s "$place/bin/rlhf-host" "$tmp/bin/rlhf-host"
cd "$tmp/work"
PATH=$tmp/bin:$PATH
rlhf-host plugin new reward moved >"$tmp/log"
command -v pkg-config >/dev/null || exit 0
make -C moved check >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
