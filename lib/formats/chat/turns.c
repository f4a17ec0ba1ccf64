// turns.c: see turns.h.
#include "chat/turns.h"

#include <stdlib.h>

rlhf_status rlhf__turns_add(struct rlhf__turns *t, size_t from, size_t to,
                            struct rlhf__error *err) {
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 8;
        struct rlhf__turn *grown = realloc(t->item, cap * sizeof *grown);
        if (!grown) return RLHF__NOMEM(err, "out of memory for a conversation");
        t->item = grown;
        t->cap = cap;
    }
    t->item[t->n++] = (struct rlhf__turn){from, to, to};
    return RLHF_OK;
}

void rlhf__turns_clear(struct rlhf__turns *t) {
    rlhf__buf_clear(&t->text);
    t->n = 0;
}

void rlhf__turns_finish(struct rlhf__turns *t) {
    rlhf__buf_free(&t->text);
    free(t->item);
    *t = (struct rlhf__turns){0};
}
