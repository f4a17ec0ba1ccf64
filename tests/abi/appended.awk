# appended.awk: reports each change of a frozen header that is not an addition.
#   awk -f appended.awk sdk/ABI-HISTORY SAVED-LAYOUT NEW-LAYOUT
# Allowed are new members at the end of a struct, new enumerators and new declarations. A line
# "MINOR NAME reason" of ABI-HISTORY allows any change of the declarations that contain NAME.
FNR == 1 { file++ }
file == 1 {
    if ($1 ~ /^[0-9]+\.[0-9]+$/) excepted[$2] = 1
    next
}
/^#( |$)/ { next }
/^== / { header = $2; frozen = $3 == "frozen"; next }
!frozen { next }
/^#define RLHF_(ABI_MINOR|SDK_VERSION) / { next }
/^struct / { struct = $2 }
{
    line = $0
    if (line ~ /^[0-9]+ [0-9]+ [0-9]+ /) sub(/^[0-9]+ /, struct ": ", line) # offset, bytes, declaration
    else sub(/ *(,|\};)?$/, "", line) # a new enumerator follows the last one
    if (file == 2) old[header ": " line] = struct
    else is[header ": " line] = 1
}
END {
    for (line in old) {
        if (line in is) continue
        known = 0
        for (name in excepted)
            if (index(line, name)) known = 1
        if (known) continue
        print "frozen, but changed or removed: " line
        status = 1
    }
    if (status) print "only additions are allowed; an exception needs a line in sdk/ABI-HISTORY"
    exit status
}
