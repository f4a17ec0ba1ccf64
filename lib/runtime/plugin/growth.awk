# growth.awk: prints growth_table.inc from sdk/layout.txt. With STRUCT_HEADERS defined, it includes
# the headers. Otherwise it has a line STRUCT(NAME, SIZE, SIZE, ...) for each struct that has a size,
# with its size in each minor version of the contract from 0 on. A struct has the size of its first
# version also in the versions before it. With RESERVED defined, it has only a line RESERVED(NAME) for
# each such struct with a member `reserved`.
/^== / { headers = headers "#include <" $2 ">\n" }
/^#define RLHF_ABI_MINOR / { minors = $3 }
/^struct / { name = $2; n = 0 }
/^[0-9]+ [0-9]+ [0-9]+ / {
    if ($2 == 0 && $4 " " $5 == "uint32_t size") { n = 1; began = $1; kept[++n_kept] = name }
    if (n && $5 == "reserved") has_reserved[name] = 1
    if (n) for (m = $1 == began ? 0 : $1; m <= 99; m++) size[name, m] = $2 + $3
}
END {
    print "#ifdef STRUCT_HEADERS\n" headers "#elif defined RESERVED"
    for (i = 1; i <= n_kept; i++)
        if (kept[i] in has_reserved) print "RESERVED(" kept[i] ")"
    print "#else"
    for (i = 1; i <= n_kept; i++) {
        line = "STRUCT(" kept[i]
        for (m = 0; m <= minors; m++) line = line ", " size[kept[i], m]
        print line ")"
    }
    print "#endif"
}
