# layout.awk: prints the saved form of the contract's layout (sdk/layout.txt) from the public headers.
#   awk -f layout.awk -v saved=sdk/layout.txt rlhf/NAME.h ... (from sdk/include)
# Every declaration and every enumerator of a header is one line; comments, the bodies of inline functions and
# the inside of the headers (names with rlhf_x_ or RLHF_X_) do not count.
# A member of a struct is a line "MINOR OFFSET BYTES DECLARATION". MINOR is the contract's minor
# version in which the member was added: the one in `saved`, or else RLHF_ABI_MINOR in base.h.
function count(text, c) { return gsub(c, "", text) }
function frozen(header) {
    return header !~ /\/draft\// && header !~ /\/(model|compute)\.h$/ ? "frozen" : "draft"
}
# Adds one declarator of a struct's member, with its base type.
function member(base, declarator,   name, stars, times) {
    name = declarator
    stars = declarator ~ /^[a-z_ ]*\*/ || declarator ~ /\(\*/
    times = 1
    if (match(name, /\[[0-9]+\]/)) times = substr(name, RSTART + 1, RLENGTH - 2)
    n_members[struct]++
    text_of[struct, n_members[struct]] = base (base ~ /\*$/ ? "" : " ") declarator
    type_of[struct, n_members[struct]] = stars ? "*" : base
    times_of[struct, n_members[struct]] = times
}
function members(line,   base, n, part, i) {
    sub(/;$/, "", line)
    if (line ~ /\(\*/) { # a pointer to a function
        match(line, /\(\*/)
        base = substr(line, 1, RSTART - 1)
        sub(/ $/, "", base)
        member(base, substr(line, RSTART))
        return
    }
    n = split(line, part, / ?, ?/)
    # The base type is everything before the first declarator.
    match(part[1], /(\*(const )?)*\*?[a-z_0-9]+(\[[^]]*\])?$/)
    base = substr(part[1], 1, RSTART - 1)
    sub(/ $/, "", base)
    part[1] = substr(part[1], RSTART)
    for (i = 1; i <= n; i++) member(base, part[i])
}
function refuse(text) {
    print "layout.awk: " text >"/dev/stderr"
    failed = 1
}
function bytes(type) {
    sub(/^const /, "", type)
    sub(/^struct /, "", type)
    if (type == "*" || type == "rlhf_dev") return 8
    if (type ~ /^u?int8_t$/ || type == "char") return 1
    if (type ~ /^(u?int32_t|float|rlhf_status)$/) return 4
    if (type ~ /^(u?int64_t|double)$/) return 8
    if (type in n_members) {
        if (text_of[type, 1] == "uint32_t size")
            refuse("a struct contains " type " by value, which has a size and could not grow there; use a pointer")
        return whole(type)
    }
    refuse("the size of the type \"" type "\" is not known")
    return 0
}
function whole(name,   i, sum) {
    sum = 0
    for (i = 1; i <= n_members[name]; i++) sum += bytes(type_of[name, i]) * times_of[name, i]
    return sum
}
function say(line) { out[++n_out] = line }
# Whether a declaration is the inside of the headers (base.h).
function is_inside(text) {
    return text ~ /^#define RLHF_X_/ || text ~ /^#include .rlhf\/exact\// || text ~ /^template .* struct rlhf_x_/ ||
        match(text, /[a-z_0-9]+\(/) && substr(text, RSTART) ~ /^rlhf_x_/
}
# Writes an enum, or a part of one, with one line for each enumerator.
function enumerators(text,   n, i, part) {
    if (sub(/^enum [a-z_0-9]* ?\{ ?/, "&", text)) {
        match(text, /\{ ?/)
        say(substr(text, 1, RSTART))
        text = substr(text, RSTART + RLENGTH)
        if (text == "") return
    }
    n = split(text, part, /, ?/)
    for (i = 1; i <= n; i++)
        if (part[i] != "") say(part[i] (i < n ? "," : ""))
}
BEGIN {
    while (saved != "" && (getline line < saved) > 0) {
        if (line ~ /^struct /) { split(line, word, " "); old = word[2] }
        else if (line ~ /^[0-9]+ +[0-9]+ +[0-9]+ /) {
            split(line, word, " ")
            sub(/^[0-9]+ +[0-9]+ +[0-9]+ /, "", line)
            since[old, line] = word[1]
        }
    }
}
FNR == 1 { say("== " FILENAME " " frozen(FILENAME)); text = more = struct = ""; body = list = 0 }
{ sub(/^ *\/\/.*|[ \t]+\/\/ .*/, ""); sub(/[ \t]+$/, "") }
/\\$/ { sub(/[ \t]*\\$/, ""); more = more $0; next }
{ $0 = more $0; more = ""; gsub(/[ \t]+/, " ") }
/^ ?$/ { next }
body { if (/^}/) body = 0; next }
/^#/ {
    if (/^#define RLHF_ABI_MINOR /) { split($0, word, " "); minor = word[3] }
    if (!is_inside($0)) say($0)
    next
}
{
    sub(/^ /, "")
    text = text (text == "" ? "" : " ") $0
    if (text !~ (list ? "[;{},]$" : "[;{}]$") || count(text, "\\(") > count(text, "\\)")) next
    if (text ~ /\) ?\{$/) { sub(/ ?\{$/, "", text); body = 1 }
    if (struct == "" && is_inside(text)) {
        if (text ~ /\{$/) body = 1
        text = ""
        next
    }
    was = list
    list = text ~ /enum [a-z_]* ?\{$/ || list && text !~ /;$/
    if (text ~ /^(typedef )?struct rlhf_[a-z_0-9]+ \{$/) {
        struct = text
        sub(/^(typedef )?struct /, "", struct)
        sub(/ \{$/, "", struct)
        n_members[struct] = 0
        say("struct " struct)
    } else if (struct != "" && text ~ /^\}/) {
        say("}" struct) # the members are written at the end
        say(text)
        struct = ""
    } else if (struct != "")
        members(text)
    else if (was || text ~ /^enum [a-z_0-9]* ?\{/)
        enumerators(text)
    else
        say(text)
    text = ""
}
END {
    minor += 0
    print "# The layout of the contract, made by `scripts/check-abi --update`. A member of a struct is a line of"
    print "# four columns: the minor version in which it was added, its offset, its size in bytes, and its"
    print "# declaration. All other lines are declarations of the headers."
    for (k = 1; k <= n_out; k++) {
        if (out[k] !~ /^\}rlhf_/) { print out[k]; continue }
        name = substr(out[k], 2)
        at = 0
        for (i = 1; i <= n_members[name]; i++) {
            size = bytes(type_of[name, i]) * times_of[name, i]
            key = text_of[name, i]
            added = (name, key) in since ? since[name, key] + 0 : minor
            print (added > minor ? minor : added), at, size, key
            at += size
        }
    }
    exit failed
}
