# appended.awk: reports what a released contract does not allow. What is frozen may only get additions, and
# these only in a later minor version.
#   awk -v released=1.0 -f appended.awk sdk/ABI-HISTORY tests/museum/1.0/layout.txt NEW-LAYOUT
# Additions are new declarations, new enumerators, and new members at the end of a struct that has a size.
# A line "MINOR NAME reason" of ABI-HISTORY, for a minor version that is not released, allows any change of
# the declarations that contain the word NAME.
function refuse(text) {
    print text
    status = 1
}
BEGIN {
    split(released, part, ".")
    last = part[2]
}
FNR == 1 { file++ }
file == 1 {
    if ($1 ~ /^[0-9]+\.[0-9]+$/) {
        split($1, part, ".")
        if (part[2] > last + 0) excepted[$2] = 1
    }
    next
}
/^#( |$)/ { next }
/^== / { header = $2; frozen = $3 == "frozen"; next }
/^#define RLHF_ABI_MINOR / { if (file == 3) minor = $3 + 0; next }
!frozen || /^#define RLHF_SDK_VERSION / || /^#(if|ifdef|ifndef|elif|else|endif|undef)( |$)/ { next }
/^struct / { struct = $2; n = 0 }
{
    line = $0
    since = ""
    if (line ~ /^[0-9]+ [0-9]+ [0-9]+ /) { # minor, offset, bytes, declaration
        since = $1 + 0
        sub(/^[0-9]+ /, struct ": ", line)
        if (n++ == 0 && $4 " " $5 == "uint32_t size" || struct == "rlhf_opt") grows[struct] = 1
    } else if (match(line, /^#define [A-Za-z_0-9]+\([^)]*\)/))
        line = substr(line, 1, RLENGTH) # the body of a macro may change, as that of a function
    else sub(/ *(,|\};)?$/, "", line) # a new enumerator follows the last one
    key = header ": " line
    if (file == 2) {
        old[key] = 1
        old_since[key] = since
        if (since != "") began[struct] = 1
    } else {
        is[key] = 1
        new_since[key] = since
        if (!(key in old)) {
            added[++n_added] = key
            struct_of[key] = since == "" ? "" : struct
        }
    }
}
END {
    for (key in old) {
        known = 0
        for (name in excepted)
            if (key ~ ("(^|[^A-Za-z_0-9])" name "($|[^A-Za-z_0-9])")) known = 1
        if (known) continue
        if (!(key in is)) refuse("frozen, but changed or removed: " key)
        else if (new_since[key] != old_since[key])
            refuse("frozen in minor version " old_since[key] ", but now of " new_since[key] ": " key)
    }
    if (minor < last + 0) refuse("RLHF_ABI_MINOR is " minor ", but contract " released " is released")
    for (i = 1; i <= n_added; i++) {
        key = added[i]
        s = struct_of[key]
        if (minor <= last + 0)
            refuse("added to contract " released ", which is released; RLHF_ABI_MINOR must be greater: " key)
        else if (s != "" && new_since[key] <= last + 0)
            refuse("added, but sdk/layout.txt says in minor version " new_since[key] ", which is released: " key)
        if (s in began && !(s in grows)) refuse("added to a struct that does not grow, because it has no size: " key)
    }
    if (status) print "contract " released " is released: only additions are allowed; an exception needs a line in sdk/ABI-HISTORY"
    exit status
}
