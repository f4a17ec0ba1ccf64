// why_unused.h: rlhf_plugin.why_unused as a table: which options have no effect, and why.
#ifndef RLHF_ALGOS_COMMON_WHY_UNUSED_H
#define RLHF_ALGOS_COMMON_WHY_UNUSED_H

#include <string.h>

// Option `key` has no effect if `unused` is set; why: static text.
struct rlhf__unused {
    const char *key;
    int unused;
    const char *why;
};

// The reason of the first of n rules that makes key unused, or NULL. [any]
static inline const char *rlhf__why_unused(const struct rlhf__unused *rules, size_t n,
                                           const char *key) {
    for (size_t i = 0; i < n; i++)
        if (rules[i].unused && strcmp(rules[i].key, key) == 0) return rules[i].why;
    return NULL;
}

#endif
