#!/bin/sh
# Rules of the contract that a compiler does not check.
set -eu
cd "$RLHF_SOURCE_DIR"
status=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
refuse() { # what, matching lines
    if [ -n "$2" ]; then
        printf 'rule of the contract broken: %s\n%s\n' "$1" "$2" >&2
        status=1
    fi
}
lines() { # pattern, where...
    pattern=$1
    shift
    grep -rnE --include='*.c' --include='*.h' -e "$pattern" "$@" || true
}
code='lib/formats lib/runtime host tools plugins kernels sdk'
# A struct that has grown must still be accepted. So rlhf_copy_in reads a struct's size and only
# requires the minimum that RLHF_SIZE_TO gives. Code must not compare the size with a sizeof.
op='(==|!=|<=|>=|<|>)'
refuse "a size is compared with sizeof; read the struct with rlhf_copy_in" "$(
    lines "(->|\\.)size *$op *\\(?(\\(uint32_t\\))? *sizeof" $code
    lines "\\bsizeof\\b[^;,]* $op [a-z_]+(->|\\.)size\\b" $code
    lines "(->|\\.)size *(==|!=) *[^ ]" $code | grep -vE 'batch\.size' || true
)"
refuse "the least that rlhf_copy_in takes is a sizeof; say RLHF_SIZE_TO(struct, last field it began with)" "$(
    lines "copy_in\\(.*, *(\\(uint32_t\\) *)?sizeof[^,]*, [^,]*, *(\\(uint32_t\\) *)?sizeof [a-z]+[,)]" $code
)"
# The minimum size of a struct is its size in its first version; of a draft, it may be less.
awk -v sized="$tmp/sized" '/^== / { frozen = $3 == "frozen" }
    /^struct / { name = $2; n = 0; last = "" }
    /^\}/ && last != "" { print name, last; last = "" }
    /^[0-9]+ [0-9]+ [0-9]+ / {
        if (!n++) began = $1
        if ($1 != began) next
        member = $0
        if (match(member, /\(\*[a-z_0-9]+\)/)) member = substr(member, RSTART + 2, RLENGTH - 3)
        else { sub(/\[.*/, "", member); sub(/.*[ *]/, "", member) }
        if (frozen) last = member
        else print name, member
        if ($2 == 0 && $4 " " $5 == "uint32_t size") print name >sized
    }' sdk/layout.txt >"$tmp/first"
sort -o "$tmp/sized" "$tmp/sized"
lines 'RLHF_SIZE_TO\(rlhf_' $code | grep -oE 'RLHF_SIZE_TO\(rlhf_[a-z_0-9]+, [a-z_0-9]+' |
    sed 's/.*(//; s/,//' | sort -u >"$tmp/least"
refuse "a minimum size (RLHF_SIZE_TO) is not that of the struct's first version (sdk/layout.txt)" \
    "$(grep -vxF -f "$tmp/first" "$tmp/least" || true)"
# A later host must not pass a plugin more than the plugin knows. So the host sets the size of such a
# struct only with RLHF__PASS or RLHF__FILLED (lib/runtime/plugin/growth.h), and not with sizeof. Tables
# of services have their whole size; the copy that an older plugin gets is shorter (services.c).
passed=$(awk '$2 == "host" && $1 !~ /_service$|^rlhf_collective/ { print $1 }' tests/abi/sides.txt |
    grep -xF "$(awk '/^== / { on = $2 !~ /\/(model|compute)\.h$/ } on && /^struct / { print $2 }' sdk/layout.txt)" | paste -sd'|')
[ -n "$passed" ]
refuse "the size of a struct for a plugin is set with sizeof; use RLHF__PASS or RLHF__FILLED" "$(
    find lib/runtime host tools -name '*.[ch]' | while read -r file; do
        tr '\n' ' ' <"$file" | tr -s ' ' |
            grep -oE "\b($passed)(\)| [a-z_]+ =) ?\{ ?(\.size = )?sizeof[^,]*|\{ ?sizeof ?\(($passed)\)|\.(in|out|api) = \{ ?(\.size = )?sizeof[^,]*|(in|out|api|info|plan)(->|\.)size = sizeof[^;]*" |
            sed "s|^|$file: |"
    done
)"
# The top of a header says its contract, the version, and whether it is frozen or a draft.
version=$(sed -nE 's/^#define RLHF_ABI_(MAJOR|MINOR) +([0-9]+).*/\2/p' sdk/include/rlhf/base.h | paste -sd.)
compute=$(sed -nE 's/^#define RLHF_COMPUTE_(MAJOR|MINOR) +([0-9]+).*/\2/p' sdk/include/rlhf/compute.h | paste -sd.)
for header in sdk/include/rlhf/*.h sdk/include/rlhf/draft/*.h sdk/kit/include/rlhf/test.h plugins/models/transformer/core.h \
    plugins/models/transformer/decoder.h; do
    case $header in
    */draft/*) say="DRAFT, not in plugin contract $version: it may change in any minor." ;;
    */rlhf/model.h | */rlhf/compute.h) say="Compute contract $compute, a draft: it may change in any minor." ;;
    */rlhf/exact.h) say="Plugin contract $version, as source code, frozen: it only grows." ;;
    */transformer/*) say="Not part of the contract: it may change in any version." ;;
    */rlhf/*_check.h) say="It is not part of the contract and may change in any version." ;;
    */rlhf/reference.h) say="is not part of the contract, so it may change in any version." ;;
    */rlhf/test.h) say="It is not part of the plugin contract: it may change in any version." ;;
    *) say="Plugin contract $version, frozen: it only grows." ;;
    esac
    sed '/^[^/]/,$d; s|^// \{0,1\}| |' "$header" | tr '\n' ' ' | tr -s ' ' | grep -qF -e "$say" ||
        refuse "the top of a header must say its contract, its version, and whether it is frozen" "$header: $say"
done
# C++ reserves names with two underscores, and these headers are compiled as C++, too.
refuse "a double underscore in a public header" "$(
    grep -rnE '[A-Za-z0-9]__[A-Za-z0-9]' sdk/include sdk/templates plugins/models/transformer/core.h \
        plugins/models/transformer/decoder.h | grep -v __cplusplus || true
)"
# Structs that grow in their middle, or that hold text by value, would prevent later changes of the
# contract.
headers=$(ls sdk/include/rlhf/*.h sdk/include/rlhf/draft/*.h | grep -v _check.h)
refuse "a public struct has a second reserved field; join them, or regroup the struct" "$(
    grep -nE '\breserved[0-9]' $headers || true
)"
refuse "a comment says since when a field exists; sdk/ChangeLog.md does" "$(
    grep -niE '//.*\b(since|new in|added in|from) (version |contract )?0\.[0-9]' $headers || true
)"
refuse "an array of characters in a public struct; use a pointer, or JSON" "$(
    grep -nE '^    char [a-z_]+(\[|, *[a-z_]+\[)' $headers |
        grep -vE '/log\.h:|/environment\.h:[0-9]+:    char text\[1024\];' || true
)"
# There is one type for numbers that grow with a run, and another type for counts and indices within
# a call (base.h).
plugin_headers=$(printf '%s\n' $headers | grep -vE '/(model|compute|reference|draft/.*)\.h')
members() { # type, names: members of that name and another type
    grep -nE "^    (const )?[a-z_0-9]+ \\*?([a-z_0-9*]+, )*\\*?($2)(\[[^]]*\])?[,;]" $plugin_headers |
        grep -vE ":    (const )?$1 " || true
}
refuse "a phase, step, version or source that is no int64_t" "$(
    members int64_t 'phase|phases|steps|version|source|seen|batch_sequences|batch_tokens|batch_finished_tokens' |
        grep -vE 'int32_t source; +// enum rlhf_source|const char .*version'
)"
refuse "a count or an index within a call that is no uint32_t" "$(
    members uint32_t 'n|total|epoch|epochs|minibatch|minibatches|group_size|resample_rounds|n_labels|max_new_tokens|batch_size|batch_n|shard|shards|max_turns|n_named|n_choose|n_metrics|n_samples|n_plugins|n_opts' |
        grep -vE 'int64_t n; '
)"
refuse "a phase that is passed as another type than int64_t" "$(
    grep -nE '\b(u?int32_t|uint64_t) phase\b' $headers || true
)"
# A test reads or writes every struct that can grow in another size.
grep -v '^#' tests/abi/sides.txt >"$tmp/sides"
while read -r struct allocates writes file; do
    case "$allocates $writes" in "host host" | "host plugin" | "plugin host" | "plugin plugin") ;; *)
        refuse "tests/abi/sides.txt must say host or plugin twice" "$struct" ;;
    esac
    [ "$file" != - ] || continue
    [ -e "$file" ] && grep -q "$struct\b" "$file" ||
        refuse "tests/abi/sides.txt says that $file covers $struct" "it does not name it"
done <"$tmp/sides"
refuse "a struct that can grow is in only one of sdk/layout.txt and tests/abi/sides.txt" "$(
    cut -d' ' -f1 "$tmp/sides" | sort | comm -3 "$tmp/sized" -
)"
# A plugin's function that gets a struct which is not const fills it. (close() of kernels gets a table
# back that is the plugin's own.)
refuse "a plugin fills a struct that tests/abi/sides.txt does not list as \"host plugin\"" "$(
    awk '/^struct / { on = $2 ~ /_ops$/ } on && /^[0-9]/' sdk/layout.txt |
        grep -oE '[(,] ?rlhf_[a-z_0-9]+ \*[a-z_]*[,)]' | grep -oE 'rlhf_[a-z_0-9]+' | sort -u |
        grep -xF -f "$tmp/sized" | grep -vx rlhf_compute |
        while read -r struct; do grep -qE "^$struct +host +plugin " "$tmp/sides" || echo "$struct"; done
)"
# `plugin check` quotes the headers.
while IFS= read -r rule; do
    header=$(printf '%s\n' "$rule" | sed -nE 's/^RULE\([A-Z_]+, "[^"]+", "([^"]+)", ".*/\1/p')
    text=$(printf '%s\n' "$rule" | sed -nE 's/^RULE\([A-Z_]+, "[^"]+", "[^"]+", "(.*)"\)$/\1/p')
    [ -n "$header" ] || continue
    sed 's|^ *// \{0,1\}| |' "sdk/include/rlhf/$header" | tr '\n' ' ' | tr -s ' ' | grep -qF -e "$text" ||
        refuse "tools/check/rules.def quotes what $header does not say" "$text"
done <tools/check/rules.def
exit $status
