#!/bin/sh
# scripts/make-reference writes a page for each public header, with every struct, enum, member and
# function, and a header that is changed gets another page.
set -eu
command -v python3 >/dev/null || exit 77
cd "$RLHF_SOURCE_DIR"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
scripts/make-reference "$tmp/pages"
for header in $(cd sdk/include/rlhf && ls *.h draft/*.h) test.h; do
    page=$(echo "${header%.h}" | tr / _).md
    [ -s "$tmp/pages/$page" ] || { echo "there is no page of $header" >&2; exit 1; }
    grep -q "($page)" "$tmp/pages/README.md" || { echo "README.md does not name $page" >&2; exit 1; }
done
# the names in sdk/layout.txt of structs, enums, enumerators and functions of tables
sed -nE 's/^(struct|enum) (rlhf_[a-z_0-9]+)( \{)?$/\2/p; s/^(RLHF_[A-Z_0-9]+)( = .*)?,$/\1/p; s/^[0-9].*\(\*([a-z_]+)\)\(.*$/\1/p' \
    sdk/layout.txt | sort -u >"$tmp/names"
[ "$(wc -l <"$tmp/names")" -gt 300 ] || { echo "sdk/layout.txt has only these names:" >&2; cat "$tmp/names" >&2; exit 1; }
cat "$tmp"/pages/*.md >"$tmp/all"
while read -r name; do
    grep -qw -e "$name" "$tmp/all" || { echo "no page describes $name" >&2; exit 1; }
done <"$tmp/names"
mkdir -p "$tmp/plugins/models/transformer"
cp -r scripts sdk "$tmp/"
cp plugins/models/transformer/core.h plugins/models/transformer/decoder.h "$tmp/plugins/models/transformer/"
sed -i 's/    uint8_t \*verdict;/    uint8_t *verdict, *another;/' "$tmp/sdk/include/rlhf/reward.h"
"$tmp/scripts/make-reference" "$tmp/changed"
grep -q 'uint8_t \*verdict, \*another' "$tmp/changed/reward.md"
