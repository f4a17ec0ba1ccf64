#!/bin/sh
# The installed tree works anywhere: with DESTDIR, after a move to a directory with spaces, through
# a link, for another user, and for plugins built against it there. With RLHF_PREFIX, the test uses
# a copy of the files that the packages installed under /usr.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
export CUDA_VISIBLE_DEVICES= HOME="$tmp"
unset XDG_DATA_HOME RLHF_PLUGIN_PATH
if [ -n "${RLHF_PREFIX-}" ]; then
    mkdir -p "$tmp/stage/opt"
    (cd "$RLHF_PREFIX" && dpkg -L rlhf-host rlhf-models librlhf-sdk-dev | sort -u | sed -n "s|^$RLHF_PREFIX/||p" |
        while read -r name; do [ -d "$name" ] && [ ! -L "$name" ] || echo "$name"; done |
        tar -cf "$tmp/files.tar" -T -)
    mkdir "$tmp/stage/opt/rlhf"
    tar -xf "$tmp/files.tar" -C "$tmp/stage/opt/rlhf"
    RLHF_BUILD_DIR=/nowhere
else
    DESTDIR="$tmp/stage" "$CMAKE" --install "$RLHF_BUILD_DIR" --prefix /opt/rlhf >"$tmp/log"
fi
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
# every link of an installed page leads to an installed file
find "$place" -name '*.md' >"$tmp/pages"
while read -r page; do
    grep -o '](\([^)]*\))' "$page" | sed -e 's/^](//' -e 's/)$//' -e 's/#.*//' | grep -v -e '^$' -e '^[a-z]*:' >"$tmp/links" || continue
    while read -r link; do
        [ -e "$(dirname "$page")/$link" ] || { echo "$page: the link $link leads nowhere" >&2; exit 1; }
    done <"$tmp/links"
done <"$tmp/pages"
[ "$(wc -l <"$tmp/pages")" -gt 40 ] || { echo "few pages are installed" >&2; exit 1; }
works() { # how it is called
    (cd / && "$@" plugin list) >"$tmp/list" 2>&1 || { cat "$tmp/list" >&2; exit 1; }
    grep -q 'ppo.so' "$tmp/list"
    (cd / && "$@" --version --json) | grep -qF "\"$place/lib" || { echo "$*: other plugins than its own" >&2; exit 1; }
    (cd / && "$@" generate --prompt It --max-new 2 --seed 1) >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; exit 1; }
}
works "$place/bin/rlhf-host"
works "$tmp/rlhf"
# another user: nobody, if this is root
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    works setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$tmp/rlhf"
fi
# a plugin built against it there is found through the link on PATH
mkdir "$tmp/bin" "$tmp/work"
ln -s "$place/bin/rlhf-host" "$tmp/bin/rlhf-host"
cd "$tmp/work"
PATH=$tmp/bin:$PATH
rlhf-host plugin new reward my_words >"$tmp/log"
command -v pkg-config >/dev/null || exit 0
make -C my_words check >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
# a plugin that needs the mathematical library links with it
rlhf-host plugin new algo roots >"$tmp/log"
printf '#include <math.h>\ndouble roots_of(double x);\ndouble roots_of(double x) { return exp(x) + sqrt(x); }\n' >>roots/roots.c
make -C roots check >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
# if the plugin's test fails, plugin check still runs, and the failure is not lost
printf '#!/bin/sh\nexit 1\n' >my_words/test_my_words
if make -C my_words check >"$tmp/log" 2>&1; then echo "make check forgot that the test failed" >&2; exit 1; fi
grep -q '^nothing found' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
# and with the page's one pkg-config command, although the prefix has spaces
sed -n '/^export PKG_CONFIG_PATH=/,/^```$/p' "$RLHF_SOURCE_DIR/docs/writing-a-plugin.md" | grep -v '^```' >"$tmp/line"
[ "$(wc -l <"$tmp/line")" = 2 ] || { echo "the page has lost its line of pkg-config" >&2; exit 1; }
(unset PKG_CONFIG_PATH; sh -eu "$tmp/line") >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
rlhf-host plugin info ./one.so >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
# a plugin's multiply-adds are not fused on any CPU: with pkg-config, and with CMake
case $(uname -m) in x86_64) ;; *) exit 0 ;; esac
mkdir fused && cd fused
cat >sum.c <<'END'
float sum(float a, float b, float c);
float sum(float a, float b, float c) { return a * b + c; }
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(fused C)
find_package(rlhf-sdk REQUIRED)
rlhf_add_plugin(fused KIND reward SOURCES sum.c)
END
PKG_CONFIG_PATH="$place/lib/pkgconfig"
export PKG_CONFIG_PATH
eval "gcc -O2 -march=haswell $(pkg-config --cflags rlhf-sdk) -c sum.c -o sum.o"
"$CMAKE" -S . -B build -DCMAKE_PREFIX_PATH="$place" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS=-O2 -march=haswell" >"$tmp/log" &&
    "$CMAKE" --build build >>"$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
for file in sum.o build/fused.so; do
    objdump -d "$file" >"$tmp/code"
    if grep -q fmadd "$tmp/code"; then echo "$file: a multiply-add was fused" >&2; exit 1; fi
    grep -q mulss "$tmp/code" || { echo "$file: no product was found" >&2; exit 1; }
done
