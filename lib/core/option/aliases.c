// aliases.c: see aliases.h.
#include "option/aliases.h"

#include <string.h>

static const struct rlhf__alias all[] = {
#include "trl_rows.inc"
};

const struct rlhf__alias *rlhf__aliases(size_t *n) {
    *n = sizeof all / sizeof *all;
    return all;
}

// Returns 1 if the words are equal. A '-' in `a` also matches a '_' in `b`.
static int same_word(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if (*a != *b && !(*a == '-' && *b == '_')) return 0;
    return !*a && !*b;
}

const struct rlhf__alias *rlhf__alias_find(const char *typed) {
    const char *dot = strrchr(typed, '.');
    if (dot) typed = dot + 1;
    while (*typed == '-')
        typed++;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (same_word(typed, all[i].theirs)) return &all[i];
    return NULL;
}

int rlhf__alias_brief(const struct rlhf__alias *a) {
    const char *end = strstr(a->note, ". ");
    return (int)(end ? (size_t)(end - a->note) : strlen(a->note));
}

int rlhf__alias_hint(const char *typed, int as_flag, struct rlhf__buf *out) {
    const struct rlhf__alias *a = rlhf__alias_find(typed);
    if (!a || strcmp(typed, a->ours) == 0) return 0;
    if (!*a->ours) {
        rlhf__buf_printf(out, " (%s: %.*s)", a->is, rlhf__alias_brief(a), a->note);
        return 1;
    }
    const int is_flag = a->ours[0] == '-';
    rlhf__buf_printf(out, " (here it is %s%s%s%s%.*s)", as_flag && !is_flag ? "--set " : "",
                     a->ours, as_flag && !is_flag ? "=" : "", *a->note ? ": " : "",
                     rlhf__alias_brief(a), a->note);
    return 1;
}
