// why_unused.h: rlhf_plugin.why_unused as a table. It says which options are unused, and why.
#ifndef RLHF_ALGOS_COMMON_WHY_UNUSED_H
#define RLHF_ALGOS_COMMON_WHY_UNUSED_H

#include <string.h>

// If `unused` is set, option `key` is unused because of `why`, a static text.
struct rlhf__unused {
    const char *key;
    int unused;
    const char *why;
};

// The reason of the first of n rules that says that `key` is unused, or NULL. [any]
static inline const char *rlhf__why_unused(const struct rlhf__unused *rules, size_t n,
                                           const char *key) {
    for (size_t i = 0; i < n; i++)
        if (rules[i].unused && strcmp(rules[i].key, key) == 0) return rules[i].why;
    return NULL;
}

#endif
