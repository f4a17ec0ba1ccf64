# asserts.awk: prints a C file that does not compile if a struct has another layout than
# sdk/layout.txt says.
#   awk -f asserts.awk sdk/layout.txt
/^== / { print "#include <" $2 ">" }
/^struct / { name = $2 }
/^[0-9]+ [0-9]+ [0-9]+ / {
    member = $0
    sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", member)
    if (match(member, /\(\*[a-z_0-9]+\)/)) member = substr(member, RSTART + 2, RLENGTH - 3)
    else {
        sub(/\[.*/, "", member)
        sub(/.*[ *]/, "", member)
    }
    assert[++n] = sprintf("_Static_assert(offsetof(%s, %s) == %d && sizeof(((%s *)0)->%s) == %d, \"%s.%s\");",
                          name, member, $2, name, member, $3, name, member)
    length_of[name] = $2 + $3
}
/^\} rlhf_/ || (/^\};/ && name != "") {
    if (length_of[name]) assert[++n] = sprintf("_Static_assert(sizeof(%s) == %d, \"%s\");", name, length_of[name], name)
    name = ""
}
END {
    for (i = 1; i <= n; i++) print assert[i]
}
