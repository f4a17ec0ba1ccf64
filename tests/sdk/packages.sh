#!/bin/sh
# The Debian packages. Tests their contents and dependencies, that the unpacked program runs and a
# plugin builds with it, that files do not occur in two packages, and that dpkg installs and purges
# them completely. scripts/check-packages tests what needs a network and root.
set -eu
for tool in dpkg-deb dpkg-shlibdeps file cpack; do # of dpkg, dpkg-dev, file, cmake
    command -v $tool >/dev/null || { echo "$tool is not there: not tried" >&2; exit 77; }
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
(cd "$tmp" && cpack -G DEB --config "$RLHF_BUILD_DIR/CPackConfig.cmake" -B "$tmp/packed") >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
deb() { find "$tmp/packed" -maxdepth 1 -name "$1_*.deb"; }
field() { dpkg-deb -f "$(deb "$1")" "$2"; }
for name in rlhf-host rlhf-models librlhf-sdk-dev; do
    [ -n "$(deb $name)" ] || { echo "there is no package $name" >&2; ls "$tmp/packed" >&2; exit 1; }
    dpkg-deb -c "$(deb $name)" | awk '$1 !~ /^d/ {print $6}' | sort >"$tmp/$name.files"
    cat "$tmp/$name.files" >>"$tmp/all"
    dpkg-deb -x "$(deb $name)" "$tmp/root"
done
twice=$(sort "$tmp/all" | uniq -d)
[ -z "$twice" ] || { echo "in two packages: $twice" >&2; exit 1; }
has() { grep -q "$2" "$tmp/$1.files" || { echo "$1 has no $2" >&2; exit 1; }; }
has rlhf-host '/usr/bin/rlhf-host$'
has rlhf-host '/usr/share/man/man1/rlhf-host-generate.1.gz$'
has rlhf-host '/bash-completion/completions/rlhf-host$'
has rlhf-host '/usr/share/doc/rlhf-host/docs/writing-a-plugin.md$'
has rlhf-host '/usr/share/doc/rlhf-host/LICENSE$'
for name in rlhf-host rlhf-models librlhf-sdk-dev; do
    has $name "/usr/share/doc/$name/copyright\$"
    has $name "/usr/share/doc/$name/changelog.gz\$"
done
has rlhf-models '/policy/model.safetensors$'
has librlhf-sdk-dev '/rlhf/test.h$'
has librlhf-sdk-dev '/librlhf-transformer.a$'
has librlhf-sdk-dev '/templates/reward.c$'
has librlhf-sdk-dev '/examples/reinforce.c$'
for library in libc6 libjansson4 libpcre2-8-0 libutf8proc zlib1g; do
    field rlhf-host Depends | grep -q "$library" || { echo "rlhf-host does not depend on $library: $(field rlhf-host Depends)" >&2; exit 1; }
done
[ "$(field rlhf-models Architecture)" = all ]

# The packages are unpacked but not installed. The program runs, and a plugin is built with it.
export CUDA_VISIBLE_DEVICES= HOME="$tmp" PATH="$tmp/root/usr/bin:$PATH"
unset XDG_DATA_HOME RLHF_PLUGIN_PATH
cd "$tmp"
rlhf-host --version --json | grep -qF "$tmp/root/usr"
rlhf-host generate --prompt It --max-new 2 --seed 1 >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
rlhf-host plugin new reward unpacked >"$tmp/log"
"$CMAKE" -S unpacked -B unpacked/build -DCMAKE_PREFIX_PATH="$tmp/root/usr" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
"$CMAKE" --build unpacked/build >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
unpacked/build/test_unpacked unpacked/build/unpacked.so >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }

# The packages are installed by dpkg in a separate root, and purged.
mkdir -p "$tmp/admin/updates" "$tmp/admin/info" "$tmp/system"
: >"$tmp/admin/status"
debian() { # runs dpkg with separate records and a separate root
    # --force-depends: dpkg's records here do not contain the libraries. --force-not-root: files
    # keep this user as their owner.
    dpkg --admindir="$tmp/admin" --instdir="$tmp/system" --log="$tmp/dpkg.log" --force-not-root --force-depends \
        --force-bad-path "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
}
debian --install "$tmp"/packed/*.deb
(cd "$tmp/system" && find . ! -type d | sed 's/^.//' | sort) >"$tmp/installed"
sed 's/^.//' "$tmp/all" | sort | diff - "$tmp/installed"
"$tmp/system/usr/bin/rlhf-host" --version --json | grep -qF "$tmp/system/usr/lib"
debian --purge rlhf-host rlhf-models librlhf-sdk-dev
left=$(cd "$tmp/system" && find . -mindepth 1)
[ -z "$left" ] || { echo "a purge leaves: $left" >&2; exit 1; }
