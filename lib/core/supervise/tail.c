// tail.c: see tail.h.
#include "supervise/tail.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = 0xc5 };

void *rlhf__tail_alloc(size_t n, size_t size) {
    if (size && n > (SIZE_MAX - RLHF__TAIL) / size) return NULL;
    return calloc(1, n * size + RLHF__TAIL);
}

void rlhf__tails_mark(struct rlhf__tails *t, const char *name, void *array, size_t bytes) {
    if (!array || t->n == RLHF__TAILS) return;
    unsigned char *end = (unsigned char *)array + bytes;
    t->of[t->n].name = name;
    t->of[t->n].end = end;
    memcpy(t->of[t->n++].kept, end, RLHF__TAIL);
    memset(end, MARK, RLHF__TAIL);
}

void rlhf__tails_lend(struct rlhf__tails *t, const char *name, void *at, size_t bytes) {
    assert(t->n_loans < RLHF__LOANS && bytes <= RLHF__LOAN_MAX);
    t->loan[t->n_loans].name = name;
    t->loan[t->n_loans].at = at;
    t->loan[t->n_loans].bytes = bytes;
    memcpy(t->loan[t->n_loans++].was, at, bytes);
}

// Restores a struct. Returns the offset of the first 4 bytes that were changed, or its length. (The
// low bytes of a pointer may be those of another one.)
static size_t take_back(void *at, const unsigned char *was, size_t bytes) {
    size_t k = 0;
    while (k < bytes && ((const unsigned char *)at)[k] == was[k])
        k++;
    memcpy(at, was, bytes);
    return k == bytes ? k : k / 4 * 4;
}

const char *rlhf__tails_end(struct rlhf__tails *t, char *why, size_t cap) {
    const char *found = NULL;
    while (t->n > 0) {
        const size_t i = --t->n;
        int touched = 0;
        for (size_t k = 0; k < RLHF__TAIL; k++)
            touched |= t->of[i].end[k] != MARK;
        memcpy(t->of[i].end, t->of[i].kept, RLHF__TAIL);
        if (!touched) continue;
        snprintf(why, cap, "it wrote past the end of %s", t->of[i].name);
        found = why;
    }
    while (t->n_loans > 0) {
        const size_t i = --t->n_loans, bytes = t->loan[i].bytes;
        const size_t k = take_back(t->loan[i].at, t->loan[i].was, bytes);
        if (k == bytes) continue;
        snprintf(why, cap,
                 "it changes byte %zu of the host's %s; a plugin must leave a struct that it gets "
                 "as a pointer to const as it is",
                 k, t->loan[i].name);
        found = why;
    }
    return found;
}
