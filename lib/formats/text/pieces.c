// pieces.c: see pieces.h.
#include "text/pieces.h"

#include <stdlib.h>

static rlhf_status grow(struct rlhf__pieces *p, struct rlhf__error *err) {
    size_t cap = p->cap ? p->cap * 2 : 256;
    struct rlhf__piece *item =
        cap <= SIZE_MAX / 2 / sizeof *item ? realloc(p->item, cap * sizeof *item) : NULL;
    if (!item) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu words", cap);
    p->item = item;
    p->cap = cap;
    return RLHF_OK;
}

rlhf_status rlhf__pieces_push(struct rlhf__pieces *p, size_t at, size_t n, uint32_t flags,
                              struct rlhf__error *err) {
    if (!n) return RLHF_OK;
    if (p->n == p->cap) RLHF_TRY(grow(p, err));
    p->item[p->n++] = (struct rlhf__piece){at, n, flags, 0};
    return RLHF_OK;
}

void rlhf__pieces_finish(struct rlhf__pieces *p) {
    free(p->item);
    rlhf__buf_free(&p->own);
    *p = (struct rlhf__pieces){0};
}
