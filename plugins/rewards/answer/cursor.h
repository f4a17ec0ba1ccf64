// cursor.h: a position in a cleaned text that is read from left to right. If a take_* function does
// not find what it looks for, the position stays where it is.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_CURSOR_H
#define RLHF_PLUGINS_REWARDS_ANSWER_CURSOR_H

#include "answer/letters.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rlhf__cursor {
    const char *begin, *at, *end;
    int32_t over;  // 1: a number had too many digits
    int32_t loose; // 1: spaces are allowed around the slash of a fraction
};

static inline int rlhf__left(const struct rlhf__cursor *c) { return c->at < c->end; }

static inline int rlhf__next_is(const struct rlhf__cursor *c, const char *word) {
    size_t n = strlen(word);
    return (size_t)(c->end - c->at) >= n && memcmp(c->at, word, n) == 0;
}

static inline int rlhf__take(struct rlhf__cursor *c, const char *word) {
    if (!rlhf__next_is(c, word)) return 0;
    c->at += strlen(word);
    return 1;
}

static inline int rlhf__digit_at(const struct rlhf__cursor *c, ptrdiff_t k) {
    return c->end - c->at > k && rlhf__is_digit(c->at[k]);
}

static inline int rlhf__take_space(struct rlhf__cursor *c) {
    return rlhf__take(c, " ") || rlhf__take(c, RLHF__NBSP);
}

static inline void rlhf__skip_spaces(struct rlhf__cursor *c) {
    while (rlhf__left(c) && (rlhf__take_space(c) || rlhf__is_space(*c->at)))
        if (rlhf__is_space(*c->at)) c->at++;
}

static inline int32_t rlhf__take_sign(struct rlhf__cursor *c) {
    return rlhf__take(c, "-") ? -1 : rlhf__take(c, "+") ? 1 : 0;
}

#endif
