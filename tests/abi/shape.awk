# Prints a header as another version would have it. With -v first=FILE (lines "struct member"), each
# listed struct ends at that member. Without it, every struct that can grow has two more members.
BEGIN {
    while (first != "" && (getline line < first) > 0)
        if (line !~ /^#/) { split(line, word, " "); last[word[1]] = word[2] }
}
/^(typedef )?struct rlhf_[a-z_]+ \{$/ {
    name = $0
    sub(/^(typedef )?struct /, "", name)
    sub(/ \{$/, "", name)
    inside = 1
    grows = name == "rlhf_opt" # its size is the table's stride
    print
    next
}
inside && /^    uint32_t size[,;]/ { grows = 1 }
inside && /^}/ {
    if (first == "" && grows) print "    uint64_t later_number;\n    const void *later_pointer;"
    inside = found = cut = 0
}
inside && cut { next }
{ print }
inside && (name in last) {
    if ($0 ~ "[ *]" last[name] "(\\[[^]]*\\])?(;|\\)\\()") found = 1
    if (found && /;/) { found = 0; cut = 1 }
}
