// idle.h: rlhf_plugin.idle as a table: which options have no effect, and why.
#ifndef RLHF_ALGOS_COMMON_IDLE_H
#define RLHF_ALGOS_COMMON_IDLE_H

#include <string.h>

// Option `key` has no effect if `idle` is set; why: static text.
struct rlhf__idle {
    const char *key;
    int idle;
    const char *why;
};

// The reason of the first of n rules that makes key idle, or NULL. [any]
static inline const char *rlhf__idle_why(const struct rlhf__idle *rules, size_t n,
                                         const char *key) {
    for (size_t i = 0; i < n; i++)
        if (rules[i].idle && strcmp(rules[i].key, key) == 0) return rules[i].why;
    return NULL;
}

#endif
