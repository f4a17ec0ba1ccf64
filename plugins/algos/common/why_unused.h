// why_unused.h: implements rlhf_plugin.why_unused with a table of options, conditions and reasons.
#ifndef RLHF_ALGOS_COMMON_WHY_UNUSED_H
#define RLHF_ALGOS_COMMON_WHY_UNUSED_H

#include <string.h>

// If `unused` is set, the option `key` has no effect; `why`, a static string, is the reason.
struct rlhf__unused {
    const char *key;
    int unused;
    const char *why;
};

// Returns `why` of the first of the n rules that has this key and is set, or NULL. [any]
static inline const char *rlhf__why_unused(const struct rlhf__unused *rules, size_t n,
                                           const char *key) {
    for (size_t i = 0; i < n; i++)
        if (rules[i].unused && strcmp(rules[i].key, key) == 0) return rules[i].why;
    return NULL;
}

#endif
