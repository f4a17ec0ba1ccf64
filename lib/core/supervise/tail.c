// tail.c: see tail.h.
#include "supervise/tail.h"

#include <stdint.h>
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

const char *rlhf__tails_end(struct rlhf__tails *t) {
    const char *touched = NULL;
    while (t->n > 0) {
        const size_t i = --t->n;
        for (size_t k = 0; k < RLHF__TAIL; k++)
            if (t->of[i].end[k] != MARK) touched = t->of[i].name;
        memcpy(t->of[i].end, t->of[i].kept, RLHF__TAIL);
    }
    return touched;
}
