# longer.awk: prints a header as the next minor version might have it: every struct that can grow has two
# more members.
/^#define RLHF_ABI_MINOR / { $3 = $3 + 1 }
/^(typedef )?struct rlhf_[a-z_]+ \{$/ { inside = 1; grows = 0 }
inside && /^    uint32_t size[,;]/ { grows = 1 }
inside && /^}/ {
    if (grows) print "    uint64_t later_number;\n    const void *later_pointer;"
    inside = 0
}
{ print }
